"""Loops around loops in which gcc 12 overlooks that a later iteration overwrites what an earlier one stored.

for (i = 0; i < 2; i++)
  for (j = 0; j < N; j++)
    y[i + j] = x[2*j + i];

It asks whether two accesses depend on one another, but not whether a store depends on itself, and so takes iterations
of `i` as lanes: y[0] and y[1], then y[1] and y[2], … It also interchanges such loops. If an iteration reads the element
that it stores, gcc compares the two accesses, and finds out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

from codegen.elements import Element
from codegen.ir.expr import loads
from codegen.ir.integer import Int, Linear
from codegen.ir.loop_ir import For, Node, Run, inside
from codegen.ir.program import Assign, Program
from codegen.ir.ranges import UNKNOWN, Ranges
from codegen.lanes.simd import Use, declared, printer_of


@dataclass(frozen=True)
class _Store:
    """An element that is stored, the loops around it, and whether its old value is not read."""

    element: Element
    loops: tuple[For, ...]
    blind: bool


def overwrites(loop: For, program: Program) -> bool:
    """Whether iterations of a loop may store the same elements by loops inside, unread."""
    own = declared(loop.body)
    stored: dict[str, list[_Store]] = defaultdict(list)
    for store in _stores(loop.body, program):
        if store.element.array not in own:
            stored[store.element.array].append(store)
    blind = (stores for stores in stored.values() if any(store.blind for store in stores))
    return any(_may_meet(loop, store) for stores in blind for store in stores)


def _stores(node: Node, program: Program, loops: tuple[For, ...] = ()) -> Iterator[_Store]:
    assign = program.statements[node.statement].body if isinstance(node, Run) else None
    if isinstance(node, Run) and isinstance(assign, Assign):
        printer = printer_of(Use(node.statement, node.values), program)
        element = printer.at(assign.target)
        yield _Store(element, loops, assign.op == "=" and element not in map(printer.at, loads(assign.expr)))
    around = (*loops, node) if isinstance(node, For) else loops
    for child in inside(node):
        yield from _stores(child, program, around)


def _may_meet(loop: For, store: _Store) -> bool:
    """Whether an element moves with a loop, but not always past what the loops inside store in another iteration."""
    ranges = reduce(_counted_from_its_start, store.loops, Ranges())
    places = [reduce(_from_its_start, reversed(store.loops), place) for place in store.element.indices]
    moves = any(loop.variable in place.names for place in places)
    return bool(store.loops) and moves and not any(_moves_past(place, loop, ranges) for place in places)


def _counted_from_its_start(ranges: Ranges, loop: For) -> Ranges:
    span = loop.most_span
    return ranges.having(loop.variable, (0, UNKNOWN if span is None else max(span - 1, 0)))


def _from_its_start(place: Int, loop: For) -> Int:
    return place.substitute({loop.variable: loop.start + Linear.name(loop.variable)})


def _moves_past(place: Int, loop: For, ranges: Ranges) -> bool:
    """Whether a subscript has other values in each iteration of a loop, whatever those of the loops inside are."""
    by = place.coefficient(loop.variable)
    rest = place - Linear.name(loop.variable) * by
    least, most = ranges.interval(rest.part(frozenset(ranges.of)))
    return loop.variable not in rest.names and most - least < abs(by) * loop.step
