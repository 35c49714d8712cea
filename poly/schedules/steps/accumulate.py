"""Accumulate in the element that a local is loaded from or stored to, in place of the local.

for i: for j:                              for i: for j:
  w = A[i, j]                                for k:
  for k:                         ->            A[i, j] -= L[i, k]*A[k, j]
    w -= L[i, k]*A[k, j]                     A[i, j] /= L[i, i]
  A[i, j] = w / L[i, i]

The sum then is a contraction whose results are an array's, of which any part can be added at any time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from codegen.ir.expr import Load, loads, map_loads
from codegen.ir.integer import Int, Linear
from microkernels.errors import plain
from poly.analysis.values import CHAIN, ValueFlow
from poly.errors import ScheduleError
from poly.ir.edits import without
from poly.ir.lookups import index_reads
from poly.ir.nest import Nest, Statement
from poly.ir.tree import Copy, Node, statements, walk
from poly.schedules.steps.base import Arguments, check_local, kernel_on


@dataclass(frozen=True)
class Accumulate:
    """The elements of `array` take the place of those of `local`, and copies between the two are left out.

    No statement of the nest then uses the local. Each of its elements stands for the element of the array that a
    statement copies to it, or that one computes from it. Every read has to take the same value as before.
    """

    local: str
    array: str
    name: ClassVar[str] = "accumulate"
    reorders: ClassVar[bool] = True

    def apply(self, nest: Nest, tree: Node) -> Node:
        return self.rewritten(nest, tree)[1]

    def rewritten(self, nest: Nest, tree: Node) -> tuple[Nest, Node]:
        """The nest without uses of the local, and the tree without copies; both are unchanged if there are no uses.

        Whether the order of the tree is legal for the new nest is not checked here.

        Raises:
            ScheduleError: no such local or array, types that differ, no statement that tells which element stands for
                which, a read that would take another value, or a microkernel or copy that uses the local.
        """
        self._check(nest, tree)
        if all(self.local != load.array for s in nest.statements for load in (s.target, *s.reads)):
            return nest, tree
        reason = f"no statement copies an element of {self.array} to {self.local}, or computes one from it"
        for target in self._targets(nest):
            made = self._replaced(nest, target)
            found = self._changed(nest, made)
            if found is None:
                gone = frozenset(statements(nest.tree)) - {s.name for s in made.statements}
                return replace(made, tree=without(nest.tree, gone), opened=nest.structure), without(tree, gone)
            reason = found
        raise ScheduleError(f"{self._text}: {reason}. Remedy: another array, or leave {self.local} as it is.")

    @property
    def _text(self) -> str:
        return f"accumulate({plain(self.local)}, {plain(self.array)})"

    def arguments(self) -> Arguments:
        return (self.local, self.array), {}

    def _check(self, nest: Nest, tree: Node) -> None:
        check_local(nest, self.name, self.local)
        arrays = {array.name: array for array in nest.arrays if array.kind != "scalar"}
        if self.array not in arrays or self.array == self.local:
            known = ", ".join(name for name in arrays if name != self.local)
            raise ScheduleError(f"{self._text}: {plain(self.array)} is no other array. Arrays: {known}.")
        here, there = (arrays[name].dtype for name in (self.local, self.array))
        if here != there:
            raise ScheduleError(f"{self._text}: {self.local} is {here.name}, {self.array} is {there.name}.")
        if index_reads(nest):
            raise ScheduleError(f"{self._text}: {nest.name} looks up indices.")
        if any(isinstance(node, Copy) and node.array in (self.local, self.array) for node in walk(tree)):
            raise ScheduleError(f"{self._text}: one of them is packed. Remedy: accumulate first, then pack.")
        micro = kernel_on(nest, tree, self.local)
        if micro is not None:
            problem = f"a microkernel runs {micro.statement}, which accesses {self.local}"
            raise ScheduleError(f"{self._text}: {problem}. Remedy: accumulate first, then microkernel.")

    def _targets(self, nest: Nest) -> Iterator[tuple[Int, ...]]:
        """Ways in which the elements of the array follow from the subscripts of the local, `d0`, `d1`, and so on."""
        found = []
        for statement in nest.statements:
            ends = (statement.target, *loads(statement.expr))
            own = next((load for load in ends if load.array == self.local), None)
            is_copy = statement.op == "=" and isinstance(statement.expr, Load)
            other = statement.target if statement.target.array == self.array else statement.expr if is_copy else None
            if own is not None and isinstance(other, Load) and other.array == self.array:
                found.append(_solved(statement, own, other))
        yield from dict.fromkeys(one for one in found if one is not None)

    def _replaced(self, nest: Nest, target: tuple[Int, ...]) -> Nest:
        """The nest with elements of the array for those of the local, without statements that copy one to itself."""

        def put(load: Load) -> Load:
            if load.array != self.local:
                return load
            values = {_dimension(at): index for at, index in enumerate(load.indices)}
            return Load(self.array, tuple(index.substitute(values) for index in target))

        changed = (replace(s, target=put(s.target), expr=map_loads(s.expr, put)) for s in nest.statements)
        return replace(nest, statements=tuple(s for s in changed if not (s.op == "=" and s.expr == s.target)))

    def _changed(self, nest: Nest, made: Nest) -> str | None:
        """What would have another value than before; None if all values are the same."""
        kept = {s.name: s for s in made.statements}
        if not kept:
            return "all statements are copies between the two"
        there = nest.array(self.array).elements(nest.sizes)
        for statement, load in ((s, load) for s in made.statements for load in (s.target, *s.reads)):
            touched = statement.relation(load).range().intersect_params(nest.context)
            if load.array == self.array and not touched.is_subset(there):
                return f"{statement.name} would access {load}, which may be outside of {self.array}"
        gone = tuple(s.name for s in nest.statements if s.name not in kept)
        before, after = ValueFlow(nest, gone), ValueFlow(replace(made, tree=without(nest.tree, frozenset(gone))))
        for old in (s for s in nest.statements if s.name in kept):
            pairs = dict.fromkeys(zip(old.reads, kept[old.name].reads, strict=True))
            for was, now in ((was, now) for was, now in pairs if now.array == self.array):
                expected, found = before.read(old.name, was), after.read(old.name, now)
                if expected is None or found is None:
                    return f"what {old.name} reads as {was} passes through more than {CHAIN} copies"
                if not expected.equals(found):
                    return f"{old.name} would read another value as {was}"
        expected, found = before.left(self.array), after.left(self.array)
        if nest.array(self.array).kind == "local" or (expected and found and expected.equals(found)):
            return None
        return f"other values would be left in {self.array}"


def _dimension(at: int) -> str:
    return f"d'{at}"  # no name of a loop or size


def _solved(statement: Statement, own: Load, other: Load) -> tuple[Int, ...] | None:
    """The subscripts of `other` in terms of those of `own`, in which each iterator stands alone; None if not so."""
    values: dict[str, Int] = {}
    for at, index in enumerate(own.indices):
        names = [name for name in statement.iterators if name in index.names]
        if len(names) == 1 and index.is_affine and (sign := index.coefficient(names[0])) in (1, -1):
            rest = index.substitute({names[0]: 0})
            values.setdefault(names[0], (Linear.name(_dimension(at)) - rest) * sign)
    used = {name for index in other.indices for name in statement.iterators if name in index.names}
    return tuple(index.substitute(values) for index in other.indices) if used <= values.keys() else None
