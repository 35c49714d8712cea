"""Interleave recurrences: run neighbouring iterations of an outer loop side by side, each slightly behind the last.

    for i:                                          for i_tile:
      for j:                                 ->       for j:                     j counts 2*i + j
        A[i, j] = f(A[i, j-1], A[i-1, j+1])             for i in the tile:       (unrolled)
                                                          A[i, j - 2*i] = …

A single recurrence waits for the latency of every operation; several independent ones fill the gaps. Where iterations
depend on one another but not in a chain, as in floyd-warshall, there is nothing to fill.

Where more than a recurrence is done for each line, as in tridiagonal solves, independent lines go into vector lanes:

    for i:                                          for i_tile:
      x[i, 0] = 0                                     for i in the tile: x[i, 0] = 0
      for j: x[i, j] = f(x[i, j-1])          ->       for j: for i_2 in the tile: x[i_2, j] = f(x[i_2, j-1])
      for j: y[i, -j] = g(y[i, 1-j], x[i, -j])        for j: for i_3 in the tile: y[i_3, -j] = …     (in vector lanes)
"""

from __future__ import annotations

from math import gcd, inf

from codegen.ir.expr import Load
from poly.analysis.legality import lane_conflict, recurs
from poly.autoschedule.rules.attempt import attempt
from poly.autoschedule.rules.distances import STEEPEST
from poly.autoschedule.rules.form import Form, new_loops
from poly.autoschedule.rules.shapes import innermost
from poly.autoschedule.spaces.space import Knob
from poly.ir.edits import find_loop, parent
from poly.ir.layout import step
from poly.ir.nest import Nest
from poly.ir.paths import paths
from poly.ir.strides import accesses, moved_iterator
from poly.ir.tree import Band, Leaf, Node, Sequence, bands, only_loops, parts, statements
from poly.machine.description import PAGE
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Distribute, Interchange, Order, Skew, Split, Step, Unroll, Vectorize

CHAINS = 8
"""Interleaved recurrences: latency times throughput of additions on current cores."""

LANES = 2
"""How many times as many lines go into lanes: several vectors fill the latency."""


SIDE_BY_SIDE = (2, 4, 8, 16)
"""The numbers of recurrences that a search tries."""


def interleaved(form: Form) -> Form | None:
    """The form with recurrences of neighbouring iterations interleaved; None if no innermost loop allows it."""
    first = overlapped(form.tried)
    if first is form.tried:
        return None
    steps: list[Step] = list(first.steps[len(form.tried.steps) :])
    cut = {name for step in steps for name, _ in getattr(step, "sizes", ())}
    return form.then(
        lambda made, values: overlapped(made, values["chains"] or CHAINS),
        first,
        (("recurrences", "side by side"),),
        (Knob("chains", SIDE_BY_SIDE),),
        (("chains", CHAINS),),
        new_loops(form.tried, first, dict.fromkeys(cut, "chains")),
    )


def overlapped(schedule: Schedule, chains: int = CHAINS) -> Schedule:
    """The schedule in which innermost loops that carry a recurrence are interleaved with their neighbours, if legal.

    `chains` is the number of interleaved recurrences.
    """
    for inner in innermost(schedule.tree):
        outer = parent(schedule.tree, inner)
        if isinstance(outer, Band) and recurs(schedule.nest, schedule.tree, inner.name):
            schedule = _beside(schedule, outer.name, inner.name, chains) or schedule
    for line in bands(schedule.tree):
        recurring = _recurring(schedule, line)
        if recurring and not _is_crowded(schedule, line, LANES * chains):
            schedule = _lines_beside(schedule, line, recurring, LANES * chains) or schedule
    return schedule


def _recurring(schedule: Schedule, line: Band) -> tuple[Band, ...]:
    """The recurrences in a loop's body if that is a sequence of statements and innermost loops."""
    nest, tree, body = schedule.nest, schedule.tree, line.body
    if not isinstance(body, Sequence) or not all(isinstance(part, Leaf) or _is_innermost(part) for part in parts(body)):
        return ()
    loops = only_loops(parts(body))
    return tuple(loop for loop in loops if recurs(nest, tree, loop.name))


def _is_innermost(node: Node) -> bool:
    return isinstance(node, Band) and not bands(node.body)


def _is_crowded(schedule: Schedule, line: Band, count: int) -> bool:
    """Whether elements of `count` neighbouring lines may lie at the same place of different pages.

    A core that loads one while it stores the other takes them for the same element, and waits.
    """
    found = paths(schedule.tree)
    for name in statements(line):
        statement = schedule.nest.statement(name)
        iterator = moved_iterator(statement, found[name], line.name)
        if iterator is None or any(_places(schedule.nest, a, iterator) < count for a in accesses(statement)):
            return True
    return False


def _places(nest: Nest, access: Load, iterator: str) -> float:
    """The places in a page that an access takes in turn as `iterator` grows; 0 if unknown, infinite if it stays."""
    array = nest.array(access.array)
    along = step(array, access, iterator).number
    if along is None:
        return 0
    return PAGE // gcd(along * array.dtype.size, PAGE) if along else inf


def _lines_beside(schedule: Schedule, line: Band, recurring: tuple[Band, ...], chains: int) -> Schedule | None:
    """Blocks of lines, in which each recurrence runs in all lines at once; None if the lines depend on one another."""
    blocked = attempt(schedule, [Split(((line.name, chains),)), Distribute(line.name)])
    if blocked is None:
        return None
    inside = only_loops(parts(find_loop(blocked.tree, f"{line.name}_tile").body))
    loops = {statements(loop): loop.name for loop in recurring}
    lanes = ((lane.name, loops[statements(lane)]) for lane in inside if statements(lane) in loops)
    return attempt(blocked, [step for lane, loop in lanes for step in (Interchange(lane, loop), Vectorize(lane))])


def _beside(schedule: Schedule, outer: str, inner: str, chains: int) -> Schedule | None:
    """Blocks of the outer loop inside the inner one, with the least skew that makes their iterations independent."""
    for factor in range(STEEPEST + 1):
        skewed: list[Step] = [Skew(inner, outer, factor)] if factor else []
        blocked: list[Step] = [Split(((outer, chains),)), Order((f"{outer}_tile", inner, outer))]
        found = attempt(schedule, [*skewed, *blocked, Unroll(((outer, chains),))])
        if found is not None and lane_conflict(found.nest, found.tree, outer) is None:
            return found
    return None
