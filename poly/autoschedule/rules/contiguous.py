"""Make the loop along which most accesses are contiguous the innermost.

for r:                              for i:
  for i:                              for j < i:
    for j < i:               ->         for r:
      X[i, r] -= L[i, j]*X[j, r]          X[i, r] -= L[i, j]*X[j, r]
    X[i, r] /= L[i, i]                for r:
                                        X[i, r] /= L[i, i]
"""

from __future__ import annotations

from contextlib import suppress

from poly.autoschedule.rules.attempt import applied, attempt
from poly.autoschedule.rules.lanes import around_short
from poly.errors import ScheduleError
from poly.ir.edits import find_loop
from poly.ir.paths import loops_around, names_around, paths
from poly.ir.strides import STRIDED, advanced_iterator, strided_cost
from poly.ir.tree import Band, bands, has_kernel, only_loops, statements
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Distribute, Interchange


def contiguous(schedule: Schedule) -> Schedule:
    """The schedule with loops sunk to the innermost position where that is legal and makes the accesses cheaper.

    The loop that gains most is the first. Loops around a microkernel, or with lanes, are left alone: their order suits
    these already. So are those with statements and loops of a few iterations that may have lanes where they are: sums
    stay in registers.
    """
    refused: set[str] = set()
    while gains := {name: gain for name, gain in _gains(schedule).items() if name not in refused}:
        best = max(gains, key=lambda name: gains[name])
        made = _sunk(schedule, best)
        schedule, refused = (schedule, refused | {best}) if made is None else (made, refused)
    return schedule


def _gains(schedule: Schedule) -> dict[str, int]:
    """What is gained by sinking each loop, where it is positive."""
    every = (band for band in bands(schedule.tree) if not band.vectorize)
    outer = (band for band in every if bands(band.body) and not has_kernel(band))
    gains = {band: gain for band in outer if (gain := _gain(schedule, band)) > 0}
    return {
        band.name: gain
        for band, gain in gains.items()
        if isinstance(band.body, Band) or around_short(schedule, band) is None
    }


def _gain(schedule: Schedule, band: Band) -> int:
    """How much cheaper the accesses below a loop become if it is innermost; deeper accesses weigh more."""
    gain, found = 0, paths(schedule.tree)
    for name in statements(band):
        loops = only_loops(found[name])
        statement = schedule.nest.statement(name)
        now, then = (advanced_iterator(statement, found[name], loop.name) for loop in (loops[-1], band))
        if now is None or then is None:
            return 0
        costs = [strided_cost(schedule.nest, statement, iterator) for iterator in (now, then)]
        gain += (costs[0] - costs[1]) * STRIDED ** len(loops)
    return gain


def _sunk(schedule: Schedule, loop: str) -> Schedule | None:
    """The schedule with a loop sunk below all loops inside it, distributed where needed; None if that is illegal.

    Only the result is checked: on the way, an order may be broken that a later step restores.
    """
    made, pending = schedule, [loop]
    with suppress(ScheduleError):
        while pending:
            name = pending.pop()
            body = find_loop(made.tree, name).body
            if isinstance(body, Band):
                made = applied(made, [Interchange(name, body.name)])
                pending.append(name)
            elif bands(body):
                outer = names_around(made.tree, statements(body)[0]).index(name)
                made = applied(made, [Distribute(name)])
                parts = (loops_around(made.tree, statement)[outer] for statement in statements(body))
                pending.extend({part.name: None for part in parts if bands(part.body)})
        return attempt(schedule, made.steps[len(schedule.steps) :])
    return None
