"""Compute a part of a statement's expression before, in the elements of a local.

for i: for j: for k:                            for i: for k: t[i, k] = A[i, k] - m[k]
  C[i, j] += (A[i, k] - m[k])*B[k, j]    ->     for i: for j: for k:
                                                  C[i, j] += t[i, k]*B[k, j]

What depends on few of the loops is computed once for all others (loop-invariant code motion with array expansion), and
a product of two elements is left. It is the inverse of `substitute`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import islpy as isl

from codegen.ir.expr import Const, Expr, Index, Load, Logic, Predicate, loads, map_operands, walk
from codegen.ir.integer import Affine
from codegen.ir.promotion import type_of
from codegen.loop_text import expression
from codegen.names import fresh
from microkernels.dtypes import DType
from microkernels.errors import plain, shown
from poly.analysis.values import ValueFlow
from poly.errors import ScheduleError
from poly.ir.coordinates import linear
from poly.ir.edits import rename_repeats
from poly.ir.instances import coordinate, loop_values
from poly.ir.lookups import index_reads
from poly.ir.nest import Array, Nest, Statement
from poly.ir.tree import Leaf, Node, bands
from poly.ir.tree import walk as nodes
from poly.schedules.steps.base import Arguments, loops_over, statement_named, with_beside
from poly.schedules.steps.formulas import Formula


@dataclass(frozen=True)
class Materialize:
    """`value`, a part of what `statement` computes as `poly show` prints it, is read from a local called `into`.

    The local is filled in loops of its own before the part of the nest that has the statement.
    """

    statement: str
    value: Formula
    into: str | None = None
    name: ClassVar[str] = "materialize"
    reorders: ClassVar[bool] = True

    @property
    def local(self) -> str:
        """The name of the local."""
        return f"{self.statement}_value" if self.into is None else self.into

    def apply(self, nest: Nest, tree: Node) -> Node:
        return self.rewritten(nest, tree)[1]

    def arguments(self) -> Arguments:
        return (self.statement, self.value), {} if self.into is None else {"into": self.into}

    def rewritten(self, nest: Nest, tree: Node) -> tuple[Nest, Node]:
        """The nest with the local, and the tree with the loops that fill it; unchanged if they have it.

        Whether the order of the tree is legal for the new nest is not checked here.

        Raises:
            ScheduleError: no such statement or part of its expression, one that has no type or bounds of its own, or
                that has another value before; a name that is taken, or a microkernel that runs the statement.
        """
        found = statement_named(self.name, nest, self.statement)
        if any(load.array == self.local and nest.array(load.array).kind == "local" for load in loads(found.expr)):
            return nest, tree
        value = self._checked(nest, tree, found)
        written = rename_repeats(nest.tree)
        made, filling = self._filled(nest, found, value)
        taken = frozenset((*(band.name for one in (written, tree) for band in bands(one)), *nest.open_or_fixed))
        loops = loops_over(filling, taken)
        made = replace(made, tree=with_beside(written, found.name, loops), opened=nest.structure)
        self._check_values(nest, made, filling.name, value)
        return made, with_beside(tree, found.name, loops)

    def _refused(self, reason: str, remedy: str) -> ScheduleError:
        return ScheduleError(f"{self.name}({plain(self.statement)}, {plain(self.value)}): {reason}. Remedy: {remedy}.")

    def _checked(self, nest: Nest, tree: Node, found: Statement) -> Expr:
        """The part of the statement's expression."""
        if not isinstance(self.value, str):
            raise ScheduleError(f"{self.name}: the value is a text such as 'A[i, k] - m[k]', not {shown(self.value)}.")
        inner = [part for part in walk(found.expr) if not isinstance(part, Load | Const | Predicate | Logic)]
        value = next((part for part in inner if _same(text(part), self.value)), None)
        if value is None:
            known = ", ".join(dict.fromkeys(map(text, inner))) or "none"
            raise self._refused(f"{found.name} computes no such value", f"a part of its expression ({known})")
        if self.local in {*nest.open_or_fixed, *(a.name for a in nest.arrays), *(s.name for s in nest.statements)}:
            raise self._refused(f"there is {self.local} already", "another name, into=…")
        if index_reads(nest):
            raise self._refused(f"{nest.name} looks up indices", "leave it as it is")
        if not any(isinstance(node, Leaf) and node.statement == found.name for node in nodes(tree)):
            raise self._refused(f"a microkernel runs {found.name}", f"{self.name} first, then microkernel")
        return value

    def _filled(self, nest: Nest, found: Statement, value: Expr) -> tuple[Nest, Statement]:
        """The nest whose statement reads the local, and the statement that fills it."""
        dtype = type_of(value, {array.name: array.dtype for array in nest.arrays}.__getitem__)
        if not isinstance(dtype, DType) or dtype.is_stored:
            raise self._refused("it has no type of its own that is computed in", "leave it as it is")
        kept = _iterators(found, value)
        taken = frozenset((*(s.name for s in nest.statements), *(a.name for a in nest.arrays), self.local))
        name = fresh(f"{self.local}_set", taken)
        places = [coordinate(found.domain, found.iterators.index(iterator)) for iterator in kept]
        domain = loop_values(found.domain, places).range().coalesce().set_tuple_name(name)
        ends = [self._range(nest, domain, at, iterator) for at, iterator in enumerate(kept)]
        own = Load(self.local, tuple(Affine.name(one) - low for one, (low, _) in zip(kept, ends, strict=True)))
        shape = tuple(extent for _, extent in ends)
        filling = Statement(name, tuple(kept), domain, own, "=", value, found.place, f"{own} = {text(value)}")

        def put(part: Expr) -> Expr:
            return own if part == value else map_operands(part, put)

        changed = replace(found, expr=put(found.expr))
        every = [one for s in nest.statements for one in ((filling, changed) if s is found else (s,))]
        local = Array(self.local, dtype, shape, "local")
        return replace(nest, arrays=(*nest.arrays, local), statements=tuple(every)), filling

    def _range(self, nest: Nest, domain: isl.Set, at: int, iterator: str) -> tuple[Affine, Affine]:
        """The least value of an iterator, and how many there are to the greatest, in terms of sizes."""
        values = domain.intersect_params(nest.context).coalesce()
        low, high = (linear((), end.coalesce()) for end in (values.dim_min(at), values.dim_max(at)))
        if low is None or high is None:
            problem = f"the first or last {iterator} is no single affine function of sizes"
            raise self._refused(problem, "known sizes (with_sizes)")
        return low, high - low + 1

    def _check_values(self, nest: Nest, made: Nest, filling: str, value: Expr) -> None:
        """Refuse a value that differs where the local is filled."""
        read = [load for load in dict.fromkeys(loads(value)) if load.array in nest.written]
        if not read:
            return
        before, after, kept = ValueFlow(nest), ValueFlow(made), made.statement(filling).iterators
        found = nest.statement(self.statement)
        places = [coordinate(found.domain, found.iterators.index(name)) for name in kept]
        where = isl.UnionMap.from_map(loop_values(found.domain, places).set_tuple_name(isl.dim_type.out, filling))
        for load in read:
            expected, now = before.read(found.name, load), after.read(filling, load)
            if expected is None or now is None or not now.behind(where).equals(expected):
                raise self._refused(f"{load} has another value before the loops", "leave it as it is")


def text(value: Expr) -> Formula:
    """A part of an expression as `poly show` prints it."""
    return Formula(expression(value, {}))


def _iterators(found: Statement, value: Expr) -> tuple[str, ...]:
    """The statement's iterators in a part of its expression, as they come in the elements of most dimensions."""
    every = sorted(loads(value), key=lambda load: -len(load.indices))
    indices = [index for load in every for index in load.indices]
    indices += [part.value for part in walk(value) if isinstance(part, Index)]
    return tuple(dict.fromkeys(one for index in indices for one in found.iterators if one in index.names))


def _same(one: str, other: str) -> bool:
    return "".join(one.split()) == "".join(other.split())
