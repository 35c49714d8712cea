"""Compute what a local holds where it is read, in place of the local: forward substitution.

for i:                                     a[0] = b[0]*c[0] + 0.0
  s = b[i]*c[i]                            for i > 0:
  a[i] = s + t                    ->         a[i] = b[i]*c[i] + b[i-1]*c[i-1]
  t = s            (t = 0.0 before)

A value that one iteration hands to the next keeps iterations in order; computed again, it doesn't.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import islpy as isl

from codegen.ir.expr import Cast, Expr, Load, loads, map_loads, placed
from codegen.ir.integer import Int
from codegen.ir.promotion import type_of
from microkernels.errors import plain
from poly.analysis.values import Sources, ValueFlow
from poly.errors import ScheduleError
from poly.ir.coordinates import linear
from poly.ir.edits import without
from poly.ir.lookups import index_reads
from poly.ir.nest import Nest, Statement
from poly.ir.tree import Copy, Node, walk
from poly.schedules.steps.base import Arguments, check_local, kernel_on


@dataclass(frozen=True)
class Substitute:
    """The expressions that are assigned to elements of `local` take the place of their reads, and the local is gone.

    Each read must take its value from one statement, which no reduction is, and the elements in its expression must
    have the same values where the local is read.
    """

    local: str
    name: ClassVar[str] = "substitute"
    reorders: ClassVar[bool] = True

    def apply(self, nest: Nest, tree: Node) -> Node:
        return self.rewritten(nest, tree)[1]

    def rewritten(self, nest: Nest, tree: Node) -> tuple[Nest, Node]:
        """The nest and the tree without statements that write the local; both are unchanged if nothing uses it.

        Whether the order of the tree is legal for the new nest is not checked here.

        Raises:
            ScheduleError: no such local, one that is used by a copy or microkernel, never read, updated, or holds
                values of several statements where it is read, or a value that could not be computed again.
        """
        self._check(nest, tree)
        writers = frozenset(s.name for s in nest.statements if s.target.array == self.local)
        readers = [s for s in nest.statements if _reads(s, self.local)]
        if not writers and not readers:
            return nest, tree
        if len(writers) == len(nest.statements):
            raise self._refused("no other statement is left", "leave it as it is")
        updating = next((s.name for s in readers if s.name in writers), None)
        if updating is not None:
            raise self._refused(f"{updating} computes it from itself", "leave it as it is")
        flow = ValueFlow(nest)
        made = {s.name: replace(s, expr=map_loads(s.expr, partial(self._value, nest, flow, s))) for s in readers}
        every = tuple(made.get(s.name, s) for s in nest.statements if s.name not in writers)
        opened, kept = nest.structure, without(nest.tree, writers)
        return replace(nest, statements=every, tree=kept, opened=opened), without(tree, writers)

    def arguments(self) -> Arguments:
        return (self.local,), {}

    def _refused(self, reason: str, remedy: str) -> ScheduleError:
        return ScheduleError(f"substitute({plain(self.local)}): {reason}. Remedy: {remedy}.")

    def _check(self, nest: Nest, tree: Node) -> None:
        check_local(nest, self.name, self.local)
        if index_reads(nest):
            raise self._refused(f"{nest.name} looks up indices", "leave it as it is")
        if nest.array(self.local).dtype.is_stored:
            raise self._refused("its values are rounded where they are stored", "leave it as it is")
        if any(isinstance(node, Copy) and node.array == self.local for node in walk(tree)):
            raise self._refused("it is packed", "substitute first, then pack")
        if kernel_on(nest, tree, self.local) is not None:
            raise self._refused("a microkernel accesses it", "substitute first, then microkernel")

    def _value(self, nest: Nest, flow: ValueFlow, reader: Statement, access: Load) -> Expr:
        """The expression in place of an element, if that is one of the local."""
        if access.array != self.local:
            return access
        writer, source = self._writer(nest, flow, reader, access)
        values = _iterators(source, reader, writer)
        if values is None:
            raise self._refused(f"{reader.name} reads it where no affine function tells which iteration", "part it")
        expr = placed(writer.expr, values)
        for old, new in dict.fromkeys(zip(loads(writer.expr), loads(expr), strict=True)):
            expected, found = flow.read(writer.name, old), flow.read(reader.name, new)
            before = expected and expected.behind(isl.UnionMap.from_map(source))
            if before is None or found is None or not before.equals(found):
                raise self._refused(f"{new} has another value where {reader.name} reads it", "leave it as it is")
        dtypes = {array.name: array.dtype for array in nest.arrays}
        own = dtypes[self.local]
        return expr if type_of(expr, dtypes.__getitem__) == own else Cast(own, expr)

    def _writer(self, nest: Nest, flow: ValueFlow, reader: Statement, access: Load) -> tuple[Statement, isl.Map]:
        """The statement whose values a reader takes, and `{ reader -> writer }`."""
        found = flow.read(reader.name, access)
        pairs = writers(found) if found is not None else ()
        names = ", ".join(pair.get_tuple_name(isl.dim_type.out) for pair in pairs)
        if found is None or not found.initial.is_empty() or len(pairs) != 1:
            where = f"part({reader.name!r}, where=…, into=…) first"
            raise self._refused(f"{reader.name} reads values of {names or 'no statement'}", where)
        writer = nest.statement(names)
        if writer.op != "=":
            raise self._refused(f"{writer.name} accumulates in it", "leave it as it is")
        return writer, pairs[0]


def writers(found: Sources) -> tuple[isl.Map, ...]:
    """`{ reader -> writer }` for each statement that a reader takes values from."""
    maps = found.written.get_map_list()
    return tuple(maps.get_at(at) for at in range(maps.n_map()))


def _reads(statement: Statement, local: str) -> bool:
    return any(load.array == local for load in statement.reads)


def _iterators(source: isl.Map, reader: Statement, writer: Statement) -> dict[str, Int] | None:
    """The writer's iterators in terms of the reader's; None if they are no affine functions."""
    found: dict[str, Int] = {}
    functions = isl.PwMultiAff.from_map(source)
    for at, iterator in enumerate(writer.iterators):
        value = linear(reader.iterators, functions.get_pw_aff(at).gist(reader.domain).coalesce())
        if value is None:
            return None
        found[iterator] = value
    return found
