"""Loops around straight code that gcc 12 vectorises although iterations depend on one another.

for (i…)                                       for (i…)
  for (j = 2; j < 7; j++)                 ->     A[9*i + 2] = f(A[9*i - 18]); … A[9*i + 6] = f(A[9*i - 14]);
    A[9*i + j] = f(A[9*(i - 2) + j - 2]);

It unrolls a short loop completely, loads what an iteration reads as one group, and stores what it writes as another. If
the groups overlap in part only, it overlooks that two iterations later the one is what the other was.
"""

from __future__ import annotations

from collections import defaultdict

from codegen.expr import loads
from codegen.integer import Linear
from codegen.loop_ir import For, Node, walk
from codegen.program import Assign, Program
from codegen.scalar import Element
from codegen.simd import declared, printer_of, uses

UNROLLED = 16
"""The most iterations of a loop that gcc unrolls completely."""


def mixes_iterations(body: Node, program: Program, variable: str) -> bool:
    """Whether a loop's body becomes straight code that writes several elements of an array, and reads others of it.

    Only elements count whose subscripts differ where they depend on the loop, so that other iterations may write them.
    """
    if not all(_is_unrolled(loop) for loop in walk(body) if isinstance(loop, For)):
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
    arrays = {name for name, count in several.items() if count > 1} - declared(body)
    pairs = [(one, other) for name in arrays for one in written[name] for other in read[name]]
    return any(_differ(one, other, variable) for one, other in pairs)


def _is_unrolled(loop: For) -> bool:
    """Whether the loop is known to have so few iterations that gcc unrolls it completely."""
    trips = None if loop.end is None else loop.end - loop.start
    return isinstance(trips, Linear) and not trips.names and trips.constant <= UNROLLED * loop.step


def _differ(one: Element, other: Element, variable: str) -> bool:
    """Whether two elements of an array have a different subscript that depends on a loop."""
    return any(a != b and variable in a.names | b.names for a, b in zip(one.indices, other.indices, strict=True))
