"""What the accesses cost of work-items side by side: neighbours along a loop that touch one line of memory, or many."""

from __future__ import annotations

from poly.ir.paths import paths
from poly.ir.strides import STRIDED, accesses, lines, moved_iterator
from poly.ir.tree import Band
from poly.schedules.schedule import Schedule


def side_by_side_cost(schedule: Schedule, statement: str, loop: str | None) -> int:
    """What the accesses of a statement cost where neighbours along `loop` run side by side; deeper loops count more.

    Without a loop, the statement is run by one work-item alone.
    """
    path = paths(schedule.tree)[statement]
    described = schedule.nest.statement(statement)
    weight: int = STRIDED ** sum(isinstance(entry, Band) for entry in path)
    iterator = None if loop is None else moved_iterator(described, path, loop)
    if iterator is None:
        return weight * STRIDED * len(accesses(described))
    return weight * sum(lines(schedule.nest, access, iterator) for access in accesses(described))


def whole_lines_cost(schedule: Schedule, statement: str) -> int:
    """What the accesses of a statement cost where all of them go to the next element."""
    path, described = paths(schedule.tree)[statement], schedule.nest.statement(statement)
    weight: int = STRIDED ** sum(isinstance(entry, Band) for entry in path)
    return weight * len(accesses(described))
