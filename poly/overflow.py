"""Proof that the integers of the loops made fit in 64 bits, at the sizes given or else at the largest there may be.

What is generated is looked at, not what was asked for: each expression in the loops gets the interval of its values,
from the intervals of sizes and of the loops around.

    for i in 0 … floor((N + 63)/64):       N: [0, 2**48]      i: [0, 2**42]
      for j in 64*i … min(N, 64*i + 64):   j: [0, 2**48]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import islpy as isl

from codegen.integer import Atom, Choice, Compare, Connected, Int, Linear, Op, Test, replaced
from codegen.loop_ir import Block, Comment, For, If, LoopMark, Node, Once, Run
from codegen.program import Workspace
from codegen.promotion import LARGEST_INDEX
from microkernels.errors import shown
from poly.errors import ScheduleError
from poly.guards import Conditions
from poly.nest import Nest
from poly.sets import PARAM, at_least, number, set_space

MOST = (1 << 62) - 1
"""No integer is larger, so that none overflows when a step or a line's length is added to it."""

MOST_KNOWN = 1 << 40
"""The product of the numbers in the extents of a copy that depends on sizes."""
Interval = tuple[int, int]


def prove(loops: Node, nest: Nest, conditions: Conditions) -> None:
    """Refuse loops in which an integer may leave 64 bits, and conditions of statements in them.

    Raises:
        ScheduleError: which loop or statement, and how large the integer may be.
    """
    _Proof(nest, conditions, "the loops", largest_sizes(nest)).node(loops)


def check_room(workspaces: Iterable[Workspace]) -> None:
    """Refuse copies of which the known part alone is larger than all memory, so that no product of it overflows.

    Raises:
        ScheduleError: which copy.
    """
    for workspace in workspaces:
        known = _known(workspace.count) * workspace.dtype.size
        if known > (MOST_KNOWN if workspace.count.terms else LARGEST_INDEX):
            raise ScheduleError(f"{workspace.name} would take {shown(known)} bytes or more. Remedy: smaller blocks.")


def _known(count: Int) -> int:
    """The product of the numbers in a product: 8*64 for `8*N*min(64, N)`."""
    parts = (abs(c) * _known_part(atom) for atom, c in count.terms)
    return max(abs(count.constant), *parts, 1)


def _known_part(atom: Atom) -> int:
    if isinstance(atom, Choice):
        return max(_known(atom.then), _known(atom.other))
    return prod(map(_known, atom.args)) if isinstance(atom, Op) else 1


def largest_sizes(nest: Nest) -> dict[str, Interval]:
    """The interval of each open size: no array is larger than all memory, as if each extent of 0 were 1."""
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
    """What is known at a place of the tree: the intervals of names, and what to call it."""

    nest: Nest
    conditions: Conditions
    place: str
    intervals: Mapping[str, Interval]

    def node(self, node: Node) -> None:
        match node:
            case For():
                self._at(node.mark)._for(node)
            case Once():
                inner = self._at(node.mark)
                inner.value(node.value)
                inner.node(node.body)
            case If():
                self.test(node.test)
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

    def _statement(self, run: Run) -> None:
        inside = replace(self, place=f"statement {run.statement}")
        for value in run.values:
            inside.value(value)
        if run.statement in self.conditions:
            iterators = self.nest.statement(run.statement).iterators
            own = dict(zip(iterators, run.values, strict=False))  # more are of copies
            inside.test(replaced(self.conditions[run.statement], own))

    def _for(self, loop: For) -> None:
        """The loop's variable goes from its first value up to the bound in its test."""
        low, high = self.value(loop.start)
        unbounded = replace(self, intervals={**self.intervals, loop.variable: (low, MOST)})
        high = max(high, unbounded.bound(loop.test, loop.variable))
        self._checked((low, high + loop.step))
        replace(self, intervals={**self.intervals, loop.variable: (low, high)}).node(loop.body)

    def bound(self, test: Test, variable: str) -> int:
        """The greatest value of a loop's variable for which its test may hold."""
        if isinstance(test, Connected):
            bounds = [self.bound(part, variable) for part in test.parts]
            return min(bounds) if test.symbol == "&&" else max(bounds)
        factor = test.left.coefficient(variable)
        if test.symbol in ("<", "<=") and factor > 0 and test.left == Linear.name(variable) * factor:
            return (self.value(test.right)[1] - (test.symbol == "<")) // factor
        return MOST

    def test(self, test: Test) -> None:
        """Refuse a condition that compares what may leave 64 bits."""
        if isinstance(test, Compare):
            self.value(test.left)
            self.value(test.right)
            return
        for part in test.parts:
            self.test(part)

    def value(self, value: Int) -> Interval:
        """The interval of an integer expression. Its terms are added in any order, so sums of some are checked, too."""
        terms = [(value.constant, value.constant), *(self._times(self._atom(a), c) for a, c in value.terms)]
        self._checked((sum(min(low, 0) for low, _ in terms), sum(max(high, 0) for _, high in terms)))
        return sum(low for low, _ in terms), sum(high for _, high in terms)

    def _times(self, of: Interval, factor: int) -> Interval:
        low, high = of
        return (low * factor, high * factor) if factor >= 0 else (high * factor, low * factor)

    def _atom(self, atom: Atom) -> Interval:
        if isinstance(atom, str):
            return self.intervals[atom]
        if isinstance(atom, Choice):
            self.test(atom.test)
            first, second = self.value(atom.then), self.value(atom.other)
            return min(first[0], second[0]), max(first[1], second[1])
        return self._checked(_of_operation(atom.name, list(map(self.value, atom.args))))

    def _checked(self, interval: Interval) -> Interval:
        low, high = interval
        if low >= -MOST and high <= MOST:
            return interval
        most = max(-low, high)
        sizes = ", at sizes up to 2**48" if self.nest.sizes else ""
        raise ScheduleError(
            f"{self.place} of {self.nest.name} would count up to {shown(most)}{sizes}, and 2**62 is the most."
            f" Remedy: smaller factors, blocks or constants{', or known sizes' if self.nest.sizes else ''}."
        )


def _of_operation(name: str, of: list[Interval]) -> Interval:
    match name, of:
        case "min", _:
            return min(low for low, _ in of), min(high for _, high in of)
        case "max", _:
            return max(low for low, _ in of), max(high for _, high in of)
        case "%", [_, (_, divisor)]:
            return 0, divisor - 1
        case ("floordiv" | "/"), [(a, b), (divisor, _)]:
            return a // divisor, b // divisor
    corners = [prod(chosen) for chosen in product(*of)]
    return min(corners), max(corners)
