"""Proof that all integers in the generated loops fit in 64 bits, at the given sizes or else at the largest possible.

The proof looks at the generated loops, not at the schedule: it bounds the values of each expression by an interval,
from the intervals of the sizes and of the surrounding loops.

    for i in 0 … floor((N + 63)/64):       N: [0, 2**48]      i: [0, 2**42]
      for j in 64*i … min(N, 64*i + 64):   j: [0, 2**48]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod

import islpy as isl

from codegen.ir.integer import Atom, Int, Op, Select, replaced
from codegen.ir.loop_ir import Block, Comment, For, If, LoopMark, Node, Once, Run
from codegen.ir.program import Workspace
from codegen.ir.promotion import LARGEST_INDEX
from codegen.ir.ranges import Interval, Ranges
from microkernels.errors import shown
from poly.errors import ScheduleError
from poly.ir.guards import Conditions
from poly.ir.nest import Nest
from poly.ir.sets import PARAM, at_least, number, set_space

MOST = (1 << 62) - 1
"""The largest magnitude of an integer; adding a step or the length of a row to it does not overflow."""

MOST_KNOWN = 1 << 40
"""The most bytes that the constant factors of a copy's extents may give, if the copy depends on sizes."""


def prove(loops: Node, nest: Nest, conditions: Conditions) -> None:
    """Refuse loops, or conditions of statements in them, in which an integer may exceed 64 bits.

    Raises:
        ScheduleError: says which loop or statement, and how large the integer may be.
    """
    _Proof(nest, conditions, "the loops", largest_sizes(nest)).node(loops)


def check_room(workspaces: Iterable[Workspace]) -> None:
    """Refuse copies whose constant factors alone exceed all memory, so that no product of their extents overflows.

    Raises:
        ScheduleError: says which copy.
    """
    for workspace in workspaces:
        known = _known(workspace.count) * workspace.dtype.size
        if known > (MOST_KNOWN if workspace.count.terms else LARGEST_INDEX):
            raise ScheduleError(f"{workspace.name} would take {shown(known)} bytes or more. Remedy: smaller blocks.")


def _known(count: Int) -> int:
    """The constant factor of a product, or the largest one in a sum: 8*64 for `8*N*min(64, N)`."""
    parts = (abs(c) * _known_part(atom) for atom, c in count.terms)
    return max(abs(count.constant), *parts, 1)


def _known_part(atom: Atom) -> int:
    match atom:
        case Select(_, then, other):
            return max(_known(then), _known(other))
        case Op("*", factors):
            return prod(map(_known, factors))
        case Op("min" | "max", operands):
            return max(map(_known, operands))
        case Op("floordiv" | "/", (dividend, _)):
            return _known(dividend)
        case Op("%", (_, divisor)):
            return _known(divisor)
    return 1


def largest_sizes(nest: Nest) -> dict[str, Interval]:
    """The interval of each open size for which no array exceeds all memory, counting extents of 0 as 1."""
    allowed = nest.context
    for array in nest.arrays:
        known = prod((max(extent.constant, 1) for extent in array.shape if not extent.terms), start=array.dtype.size)
        opened = [LARGEST_INDEX // known - extent for extent in array.shape if extent.terms]
        allowed = allowed.intersect(at_least(nest.sizes, opened, 0)) if known <= LARGEST_INDEX else allowed
    space = set_space(nest.sizes, 0).params()
    for at in range(len(nest.sizes)):
        allowed = allowed.intersect(isl.Set.universe(space).upper_bound_val(PARAM, at, number(LARGEST_INDEX)))
    values = allowed.move_dims(isl.dim_type.set, 0, PARAM, 0, len(nest.sizes)) if nest.sizes else allowed
    return {size: (0, _greatest(values, at)) for at, size in enumerate(nest.sizes)}


def _greatest(values: isl.Set, dimension: int) -> int:
    most = values.dim_max_val(dimension)
    return int(most.to_python()) if most.is_int() else 0


@dataclass(frozen=True)
class _Proof:
    """The state of the proof at a place in the loops: the intervals of names, and the place's name for messages."""

    nest: Nest
    conditions: Conditions
    place: str
    intervals: Mapping[str, Interval]

    @property
    def known(self) -> Ranges:
        """The intervals of expressions, each of which is checked."""
        return Ranges(self.intervals, self._checked)

    def node(self, node: Node) -> None:
        match node:
            case For():
                self._at(node.mark)._for(node)
            case Once():
                inner = self._at(node.mark)
                inner.known.interval(node.value)
                inner.node(node.body)
            case If():
                self.known.look_at(node.test)
                self.node(node.then)
                if node.other is not None:
                    self.node(node.other)
            case Block():
                for child in node.nodes:
                    self.node(child)
            case Comment():
                self.node(node.body)
            case Run():
                self._statement(node)

    def _at(self, mark: LoopMark) -> _Proof:
        return replace(self, place=f"loop {mark.name}") if mark.name else self

    def _for(self, loop: For) -> None:
        inner = self.known.inside(loop)
        low, high = inner.of[loop.variable]
        self._checked((low, high + loop.step))
        replace(self, intervals=inner.of).node(loop.body)

    def _statement(self, run: Run) -> None:
        known = replace(self, place=f"statement {run.statement}").known
        for value in run.values:
            known.interval(value)
        if run.statement in self.conditions:
            iterators = self.nest.statement(run.statement).iterators
            own = dict(zip(iterators, run.values, strict=False))  # further values belong to copies
            known.look_at(replaced(self.conditions[run.statement], own))

    def _checked(self, interval: Interval) -> None:
        low, high = interval
        if low >= -MOST and high <= MOST:
            return
        most = max(-low, high)
        sizes = ", at sizes up to 2**48" if self.nest.sizes else ""
        raise ScheduleError(
            f"{self.place} of {self.nest.name} would count up to {shown(most)}{sizes}, and 2**62 is the most."
            f" Remedy: smaller factors, blocks or constants{', or known sizes' if self.nest.sizes else ''}."
        )
