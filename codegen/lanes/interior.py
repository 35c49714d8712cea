"""Loops with open ends whose vectors have no conditions away from the ends.

for i < H:                                     for i < H:
  for j < W:  # vectorize                        if i >= 1:
    if i > 0: S(i - 1, j)                          for j < min(1, W): S(i - 1, j); if j > 0: S(i, j - 1)
    if j > 0: S(i, j - 1)               ->         for j in range(1, W): S(i - 1, j); S(i, j - 1)  # vectorize
                                                 else: …

Where a condition changes is a fixed number of iterations from one of the ends; the middle of a loop is on one side of
all of these (Griebl, Feautrier, Lengauer, "Index set splitting", IJPP 28(6), 2000).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from codegen.ir.integer import Compare, Int, Linear, Test, connected, gaps, maximum, minimum, parts_of
from codegen.ir.loop_ir import Block, For, If, Node, mapped
from codegen.ir.loop_ir import walk as nodes
from codegen.ir.ranges import Ranges

FAR = 16
"""The most iterations at each end of a vector loop that run one by one."""

Truths = Mapping[Compare, bool]


def middle_apart(loop: For, border: Node) -> Node:
    """A vector loop whose ends are open in three parts, of which that in the middle has no conditions on the lane.

    The others are loops around `border`, which does the same as the loop's body. It stays as it is if it has no such
    conditions, or one does not change near an end.
    """
    end = loop.end
    tests = dict.fromkeys(test for test in _tests(loop.body) if loop.variable in test.names)
    if not tests or loop.step != 1 or end is None or loop.span is not None:
        return loop
    found = {test: _near_end(test, loop, end) for test in tests if isinstance(test, Compare)}
    near = [one for one in found.values() if one is not None]
    before, behind = (max([0, *(one.iterations for one in near if one.at_start == at)]) for at in (True, False))
    if len(near) < len(tests) or max(before, behind) > FAR:
        return loop
    first, last = loop.start + before, end - behind
    middle = _decided(loop.body, {test: one.holds for test, one in found.items() if one is not None})
    alone = replace(loop, body=border, mark=replace(loop.mark, vectorize=False))
    parts = [replace(_counted(loop, first, last), body=middle)]
    if before:
        parts.insert(0, _counted(alone, loop.start, minimum(first, end)))
    if behind:
        parts.append(_counted(alone, maximum(first, last), end))
    return Block(tuple(parts)) if len(parts) > 1 else parts[0]


def _counted(loop: For, start: Int, end: Int) -> For:
    return replace(loop, start=start, test=Compare(Linear.name(loop.variable), "<", end))


class NearEnd(NamedTuple):
    """Where a condition changes, in iterations behind the start or before the end, and whether it holds in between."""

    at_start: bool
    iterations: int
    holds: bool


def _near_end(test: Test, loop: For, end: Int) -> NearEnd | None:
    found = _factor(test, loop.variable)
    if found is None or abs(found[0]) != 1:
        return None
    factor, rest = found
    changes = -rest if factor > 0 else rest + 1
    if test.symbol == "==":
        return _of_one(-rest * factor, loop, end)
    behind, before = (changes - loop.start).number, (end - changes).number
    if behind is not None:
        return NearEnd(True, behind, factor > 0)
    return None if before is None else NearEnd(False, before, factor < 0)


def _of_one(value: Int, loop: For, end: Int) -> NearEnd | None:
    """The same of a condition that holds for one value alone."""
    behind, before = (value - loop.start).number, (end - value).number
    if behind is not None:
        return NearEnd(True, behind + 1, False)
    return None if before is None else NearEnd(False, before, False)


def _factor(test: Test, variable: str) -> tuple[int, Int] | None:
    """The factor of a variable in the sum that is not negative, or is 0, where a condition holds, and what is added."""
    found = gaps(test) if isinstance(test, Compare) else ()
    if not found:
        return None
    factor = found[0].coefficient(variable)
    rest = found[0] - Linear.name(variable) * factor
    return (factor, rest) if factor and variable not in rest.names else None


def with_middle(loop: For, known: Ranges) -> For:
    """The loop with a version of its body for the middle, where conditions in vector loops on its variable are known.

    `known` are the ranges inside the loop.
    """
    lanes = (inner for inner in nodes(loop.body) if isinstance(inner, For) and inner.mark.vectorize)
    tests = ((test, inner.variable) for inner in lanes for test in comparisons(inner.body))
    same = dict.fromkeys(test for test, lane in tests if lane not in test.names)
    found = {test: holds for test in same if (holds := _in_middle(test, loop)) is not None}
    if not found:
        return loop
    others = [Compare(test.left, "!=", test.right) for test in found if test.symbol == "=="]
    least: dict[object, Int] = {}
    for test, holds in found.items():
        if test.symbol != "==":
            (gap,) = gaps(test)
            gap = gap if holds else -gap - 1
            other = least.setdefault(gap.terms, gap)
            least[gap.terms] = gap if gap.constant < other.constant else other
    bounds = [known.test(Compare(Linear.of(0), "<=", gap)) for gap in least.values()]
    return replace(loop, body=If(connected("&&", [*bounds, *others]), _decided(loop.body, found), loop.body))


def _in_middle(test: Compare, loop: For) -> bool | None:
    """Whether a condition holds between a loop's start, which is known, and its end, which is open; None if unknown."""
    found, end = _factor(test, loop.variable), loop.end
    if found is None or end is None or end.number is not None or loop.start.number is None:
        return None
    factor, rest = found
    if rest.number is not None:
        return factor > 0 and test.symbol != "=="
    sizes = [rest.coefficient(name) for name in rest.names]
    is_end = rest.names <= end.names and all(by * factor < 0 for by in sizes)
    return factor < 0 and test.symbol != "==" if is_end else None


def comparisons(node: Node) -> Iterator[Compare]:
    """The conditions in a node that compare, those that `and` joins one by one."""
    yield from (test for test in _tests(node) if isinstance(test, Compare))


def _tests(node: Node) -> Iterator[Test]:
    yield from (part for one in nodes(node) if isinstance(one, If) for part in parts_of(one.test))


def _decided(node: Node, truths: Truths) -> Node:
    """The node without the conditions that are known, and what never runs."""
    made = mapped(node, lambda child: _decided(child, truths))
    if isinstance(made, Block):
        return Block(tuple(part for part in made.nodes if part != Block(())))
    if not isinstance(made, If):
        return made
    parts = parts_of(made.test)
    known = {part: truths[part] for part in parts if isinstance(part, Compare) and part in truths}
    if not all(known.values()):
        return made.other or Block(())
    left = [part for part in parts if part not in known]
    if not left:
        return made.then
    empty = made.then == Block(()) and made.other is None
    return Block(()) if empty else replace(made, test=connected("&&", left))
