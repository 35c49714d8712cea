"""The cost of accesses of adjacent work-items: neighbours along a loop touch one line of memory, or many."""

from __future__ import annotations

from poly.ir.paths import paths
from poly.ir.strides import STRIDED, accesses, lines, moved_iterator
from poly.ir.tree import Band
from poly.schedules.schedule import Schedule


def side_by_side_cost(schedule: Schedule, statement: str, loop: str | None) -> int:
    """The cost of a statement's accesses if adjacent items run neighbours along `loop`; deeper statements weigh more.

    Without a loop, a single work-item runs the statement.
    """
    path = paths(schedule.tree)[statement]
    described = schedule.nest.statement(statement)
    weight: int = STRIDED ** sum(isinstance(entry, Band) for entry in path)
    iterator = None if loop is None else moved_iterator(described, path, loop)
    if iterator is None:
        return weight * STRIDED * len(accesses(described))
    return weight * sum(lines(schedule.nest, access, iterator) for access in accesses(described))


def whole_lines_cost(schedule: Schedule, statement: str) -> int:
    """The cost of a statement's accesses if all of them are contiguous."""
    path, described = paths(schedule.tree)[statement], schedule.nest.statement(statement)
    weight: int = STRIDED ** sum(isinstance(entry, Band) for entry in path)
    return weight * len(accesses(described))
