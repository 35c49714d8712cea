"""Interleave recurrences: run neighbouring iterations of an outer loop side by side, each slightly behind the last.

    for i:                                          for i_tile:
      for j:                                 ->       for j:                     j counts 2*i + j
        A[i, j] = f(A[i, j-1], A[i-1, j+1])             for i in the tile:       (unrolled)
                                                          A[i, j - 2*i] = …

A single recurrence waits for the latency of every operation; several independent ones fill the gaps. Where iterations
depend on one another but not in a chain, as in floyd-warshall, there is nothing to fill.
"""

from __future__ import annotations

from poly.analysis.legality import lane_conflict, recurs
from poly.autoschedule.rules.attempt import attempt
from poly.autoschedule.rules.distances import STEEPEST
from poly.autoschedule.rules.form import Form, new_loops
from poly.autoschedule.rules.shapes import innermost
from poly.autoschedule.spaces.space import Knob
from poly.ir.edits import parent
from poly.ir.tree import Band
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Order, Skew, Split, Step, Unroll

CHAINS = 8
"""Interleaved recurrences: latency times throughput of additions on current cores."""


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
    return schedule


def _beside(schedule: Schedule, outer: str, inner: str, chains: int) -> Schedule | None:
    """Blocks of the outer loop inside the inner one, with the least skew that makes their iterations independent."""
    for factor in range(STEEPEST + 1):
        skewed: list[Step] = [Skew(inner, outer, factor)] if factor else []
        blocked: list[Step] = [Split(((outer, chains),)), Order((f"{outer}_tile", inner, outer))]
        found = attempt(schedule, [*skewed, *blocked, Unroll(((outer, chains),))])
        if found is not None and lane_conflict(found.nest, found.tree, outer) is None:
            return found
    return None
