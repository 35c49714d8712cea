"""Choose the loops that run in vector lanes and the one whose iterations threads share."""

from __future__ import annotations

from math import prod

from poly.defaults.attempt import proven
from poly.defaults.loops import extent, innermost
from poly.defaults.strides import is_contiguous, moved_iterator
from poly.legality import is_parallel, lane_conflict
from poly.paths import paths
from poly.schedule import Schedule
from poly.steps import Parallel, Vectorize
from poly.tree import Band, Node, Sequence, bands, statements

WORTH = 50_000
"""Statement instances for which it pays to wake a thread: some ten microseconds of work."""


def vectorized(schedule: Schedule) -> Schedule:
    """The schedule with each innermost loop in vector lanes whose accesses are contiguous, where that is legal.

    With strided accesses the choice is left to the C compiler.
    """
    nest, tree = schedule.nest, schedule.tree
    found = [band for band in innermost(tree) if band.unroll < 2 and _contiguous(schedule, band)]
    legal = [band for band in found if lane_conflict(nest, tree, band.name) is None]
    return proven(schedule, [Vectorize(band.name) for band in legal])


def _contiguous(schedule: Schedule, band: Band) -> bool:
    found = paths(schedule.tree)
    for name in statements(band):
        statement = schedule.nest.statement(name)
        iterator = moved_iterator(statement, found[name], band.name)
        if iterator is None or not is_contiguous(schedule.nest, statement, iterator):
            return False
    return True


def shared_out(schedule: Schedule, node: Node | None = None) -> Schedule:
    """The schedule with the outermost loops parallel that may be and are worth it, one on each path."""
    node = node or schedule.tree
    if isinstance(node, Sequence):
        for child in node.children:
            schedule = shared_out(schedule, child)
        return schedule
    if not isinstance(node, Band):
        return schedule
    if _work(schedule, node) >= WORTH and is_parallel(schedule.nest, schedule.tree, node.name):
        return proven(schedule, [Parallel(node.name)])
    return shared_out(schedule, node.body)


def _work(schedule: Schedule, band: Band) -> int:
    """Instances in one run of a loop, an upper bound; sizes that are not known count as worth it."""
    chain = [band, *bands(band.body)]
    extents = [extent(schedule.nest, inner) for inner in chain]
    return prod(e for e in extents if e is not None) if all(e is not None for e in extents) else WORTH
