"""Loops around straight code that gcc 12 vectorises although iterations depend on one another.

for (i…)                                       for (i…)
  for (j = 2; j < 7; j++)                 ->     A[9*i + 2] = f(A[9*i - 18]); … A[9*i + 6] = f(A[9*i - 14]);
    A[9*i + j] = f(A[9*(i - 2) + j - 2]);

It unrolls a short loop completely, loads what an iteration reads as one group, and stores what it writes as another. If
the groups overlap in part only, it overlooks that two iterations later the one is what the other was.
"""

from __future__ import annotations

from collections import defaultdict
from functools import reduce

from codegen.elements import Element
from codegen.ir.expr import loads
from codegen.ir.integer import Int
from codegen.ir.loop_ir import For, Node, walk
from codegen.ir.program import Assign, Program
from codegen.ir.ranges import Ranges
from codegen.lanes.simd import declared, printer_of, uses

UNROLLED = 16
"""The most iterations of a loop that gcc unrolls completely."""


def mixes_iterations(body: Node, program: Program, variable: str) -> bool:
    """Whether a loop's body becomes straight code that writes several elements of an array, and reads such of others.

    These are elements that another iteration of the loop may write.
    """
    inner = [loop for loop in walk(body) if isinstance(loop, For)]
    if not all(map(_is_unrolled, inner)):
        return False
    several: dict[str, int] = defaultdict(int)
    written: dict[str, list[Element]] = defaultdict(list)
    read: dict[str, list[Element]] = defaultdict(list)
    for use in uses(body):
        assign = program.statements[use.statement].body
        if isinstance(assign, Assign):
            printer = printer_of(use, program)
            several[assign.target.array] += 2 if use.inner else 1
            written[assign.target.array].append(printer.at(assign.target))
            for load in loads(assign.expr):
                read[load.array].append(printer.at(load))
    ranges = reduce(Ranges.inside, inner, Ranges())
    names = frozenset(loop.variable for loop in inner)
    arrays = {name for name, count in several.items() if count > 1} - declared(body)
    pairs = ((one, other) for name in arrays for one in written[name] for other in read[name])
    return any(_meet_elsewhere(one, other, variable, names, ranges) for one, other in pairs)


def _is_unrolled(loop: For) -> bool:
    """Whether the loop is known to have so few iterations that gcc unrolls it completely."""
    return loop.span is not None and loop.span <= UNROLLED * loop.step


def _meet_elsewhere(one: Element, other: Element, variable: str, inner: frozenset[str], ranges: Ranges) -> bool:
    """Whether two elements of an array may be the same in different iterations of a loop.

    `ranges` are those of the loops inside, `inner`, of which each element has its own iteration.
    """

    def meet(a: Int, b: Int) -> bool:
        (a_around, a_inside), (b_around, b_inside) = ((x.part(x.names - inner), x.part(inner)) for x in (a, b))
        if a_around != b_around:
            return True  # unknown
        (a_least, a_most), (b_least, b_most) = map(ranges.interval, (a_inside, b_inside))
        apart = a.constant - b.constant
        least, most = apart + a_least - b_most, apart + a_most - b_least
        by = abs(a.coefficient(variable))
        return max(-least, most) >= by if by else variable in a.names or least <= 0 <= most

    return any(variable in index.names for index in one.indices + other.indices) and all(
        meet(a, b) for a, b in zip(one.indices, other.indices, strict=True)
    )
