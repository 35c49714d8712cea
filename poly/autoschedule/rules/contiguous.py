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
from poly.errors import ScheduleError
from poly.ir.edits import find_loop
from poly.ir.paths import paths
from poly.ir.strides import STRIDED, advanced_iterator, strided_cost
from poly.ir.tree import Band, Node, Sequence, bands, has_kernel, statements
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Distribute, Interchange


def contiguous(schedule: Schedule) -> Schedule:
    """The schedule with loops sunk to the innermost position where that is legal and makes the accesses cheaper.

    Loops around a microkernel are left alone: their order suits it already.
    """
    for band in bands(schedule.tree):
        if bands(band.body) and not has_kernel(band) and _gain(schedule, band) > 0:
            schedule = _sunk(schedule, band.name) or schedule
    return schedule


def _gain(schedule: Schedule, band: Band) -> int:
    """How much cheaper the accesses below a loop become if it is innermost; deeper accesses weigh more."""
    gain, found = 0, paths(schedule.tree)
    for name in statements(band):
        loops = [node for node in found[name] if isinstance(node, Band)]
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
            if isinstance(body, Sequence) and bands(body):
                made = applied(made, [Distribute(name)])
                pending.extend(_loops_of(made.tree, name, statements(body)))
            elif isinstance(body, Band):
                made = applied(made, [Interchange(name, body.name)])
                pending.append(name)
        return attempt(schedule, made.steps[len(schedule.steps) :])
    return None


def _loops_of(tree: Node, name: str, below: tuple[str, ...]) -> list[str]:
    """The loops that `name` was distributed into, itself and its numbered successors, that still contain loops."""
    found = [band for band in bands(tree) if band.name == name or band.name.rpartition("_")[0] == name]
    return [band.name for band in found if set(statements(band)) <= set(below) and bands(band.body)]
