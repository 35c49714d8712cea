"""Cut two loops into blocks of cache lines where an access is contiguous along the one and another along the other.

    for i:                       for i_tile: for j_tile:
      for j:              ->       for j in the tile:
        B[j, i] = A[i, j]            for i in the tile:      (in vector lanes: writes stay contiguous)
                                       B[j, i] = A[i, j]

Each line that the block touches is then used whole before it leaves the first-level cache.
"""

from __future__ import annotations

from poly.analysis.legality import lane_conflict
from poly.autoschedule.defaults.attempt import attempt
from poly.autoschedule.defaults.loops import innermost
from poly.ir.edits import parent
from poly.ir.nest import Nest, Statement
from poly.ir.paths import paths
from poly.ir.strides import accesses, extent, is_contiguous_along, moved_iterator
from poly.ir.tree import Band, statements
from poly.model import LINE
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Interchange, Step, Tile, Vectorize


def blocked(schedule: Schedule, sizes: tuple[int, int] | None = None) -> Schedule:
    """The schedule with the two innermost loops in blocks of lines wherever neither makes all accesses contiguous.

    `sizes` are the iterations of the outer and the inner loop in a block: those that fill a line, where it is left out.
    """
    for inner in innermost(schedule.tree):
        outer = parent(schedule.tree, inner)
        if isinstance(outer, Band):
            schedule = _blocked(schedule, outer, inner, sizes) or schedule
    return schedule


def _blocked(schedule: Schedule, outer: Band, inner: Band, sizes: tuple[int, int] | None) -> Schedule | None:
    nest, found = schedule.nest, paths(schedule.tree)
    writes_along_outer = False
    elements = LINE
    for name in statements(inner):
        statement = nest.statement(name)
        along, across = (moved_iterator(statement, found[name], band.name) for band in (inner, outer))
        if along is None or across is None or not _conflicting(nest, statement, along, across):
            return None
        writes_along_outer |= is_contiguous_along(nest, statement.target, across)
        elements = min(elements, LINE // max(nest.array(a.array).dtype.size for a in accesses(statement)))
    if any((extent(nest, band) or elements) < elements for band in (outer, inner)):
        return None
    above, below = sizes or (elements, elements)
    steps: list[Step] = [Tile(((outer.name, above), (inner.name, below)))]
    if writes_along_outer:
        steps.append(Interchange(outer.name, inner.name))
    made = attempt(schedule, steps)
    last = outer.name if writes_along_outer else inner.name
    if made is None or lane_conflict(nest, made.tree, last) is not None:
        return made
    return attempt(made, [Vectorize(last)])


def _conflicting(nest: Nest, statement: Statement, along: str, across: str) -> bool:
    """Whether an access is contiguous along one iterator and moves with the other, and another the other way round."""

    def favours(one: str, other: str) -> bool:
        return any(
            is_contiguous_along(nest, access, one) and any(index.coefficient(other) for index in access.indices)
            for access in accesses(statement)
        )

    return favours(along, across) and favours(across, along)
