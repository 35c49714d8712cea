"""Make the loop along which most accesses are contiguous the innermost.

for r:                              for i:
  for i:                              for j < i:
    for j < i:               ->         for r:
      X[i, r] -= L[i, j]*X[j, r]          X[i, r] -= L[i, j]*X[j, r]
    X[i, r] /= L[i, i]                for r:
                                        X[i, r] /= L[i, i]
"""

from __future__ import annotations

from poly.autoschedule.rules.attempt import attempt
from poly.ir.edits import find_loop
from poly.ir.paths import paths
from poly.ir.strides import STRIDED, moved_iterator, strided_cost
from poly.ir.tree import Band, Micro, Node, Sequence, bands, statements, walk
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Distribute, Interchange


def contiguous(schedule: Schedule) -> Schedule:
    """The schedule with loops sunk to the innermost position where that is legal and makes the accesses cheaper."""
    for band in bands(schedule.tree):
        if bands(band.body) and not _has_kernel(band) and _gain(schedule, band) > 0:
            schedule = _sunk(schedule, band.name) or schedule
    return schedule


def _has_kernel(band: Band) -> bool:
    """Whether a microkernel runs inside a loop, whose order suits it already."""
    return any(isinstance(node, Micro) for node in walk(band))


def _gain(schedule: Schedule, band: Band) -> int:
    """How much cheaper the accesses below a loop become if it is innermost; deeper accesses weigh more."""
    gain, found = 0, paths(schedule.tree)
    for name in statements(band):
        loops = [node for node in found[name] if isinstance(node, Band)]
        statement = schedule.nest.statement(name)
        now, then = (moved_iterator(statement, found[name], loop.name) for loop in (loops[-1], band))
        if now is None or then is None:
            return 0
        costs = [strided_cost(schedule.nest, statement, iterator) for iterator in (now, then)]
        gain += (costs[0] - costs[1]) * STRIDED ** len(loops)
    return gain


def _sunk(schedule: Schedule, loop: str) -> Schedule | None:
    """The schedule with a loop sunk below all loops inside it, distributed where needed; None if that is illegal."""
    pending = [loop]
    while pending:
        name = pending.pop()
        body = find_loop(schedule.tree, name).body
        if isinstance(body, Sequence):
            parted = attempt(schedule, [Distribute(name)])
            if parted is None:
                return None
            pending.extend(_loops_of(parted.tree, name, statements(body)))
        elif isinstance(body, Band):
            parted = attempt(schedule, [Interchange(name, body.name)])
            if parted is None:
                return None
            pending.append(name)
        else:
            continue
        schedule = parted
    return schedule


def _loops_of(tree: Node, name: str, below: tuple[str, ...]) -> list[str]:
    """The loops that `name` was distributed into, itself and its numbered successors, that still contain loops."""
    found = [band for band in bands(tree) if band.name == name or band.name.rpartition("_")[0] == name]
    return [band.name for band in found if set(statements(band)) <= set(below) and bands(band.body)]
