"""Bring the loop along which most accesses are contiguous innermost.

    for r:                              for i:
      for i:                              for j < i:
        for j < i:               ->         for r:
          X[i, r] -= L[i, j]*X[j, r]          X[i, r] -= L[i, j]*X[j, r]
        X[i, r] /= L[i, i]                for r:
                                            X[i, r] /= L[i, i]
"""

from __future__ import annotations

from poly.defaults.attempt import attempt
from poly.defaults.strides import STRIDED, moved_iterator, strided_cost
from poly.paths import paths
from poly.schedule import Schedule
from poly.steps import Distribute, Interchange
from poly.steps.base import find_loop
from poly.tree import Band, Node, Sequence, bands, statements


def contiguous(schedule: Schedule) -> Schedule:
    """The schedule with loops sunk to the innermost place where that makes the accesses cheaper and is legal."""
    for band in bands(schedule.tree):
        if not bands(band.body):
            continue
        sunk = _sunk(schedule, band.name)
        if sunk is not None and _cost(sunk) < _cost(schedule):
            schedule = sunk
    return schedule


def _cost(schedule: Schedule) -> int:
    """The strided cost of all statements, those in deeper loops counting more."""
    total = 0
    for name, path in paths(schedule.tree).items():
        loops = [node for node in path if isinstance(node, Band)]
        statement = schedule.nest.statement(name)
        iterator = moved_iterator(statement, path, loops[-1].name) if loops else None
        if iterator is not None:
            total += strided_cost(schedule.nest, statement, iterator) * STRIDED ** len(loops)
    return total


def _sunk(schedule: Schedule, loop: str) -> Schedule | None:
    """The loop brought below all others that it holds, distributed over what it holds; None where that is illegal."""
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
    """The loops into which the loop `name` was distributed: it and its numbered successors that hold some of `below`."""
    found = [band for band in bands(tree) if band.name == name or band.name.rpartition("_")[0] == name]
    return [band.name for band in found if set(statements(band)) <= set(below) and bands(band.body)]
