"""Choose the loops that run in vector lanes and the one whose iterations threads share."""

from __future__ import annotations

from math import prod

from poly.analysis.legality import is_parallel, lane_conflict
from poly.autoschedule.defaults.attempt import proven
from poly.autoschedule.defaults.loops import innermost
from poly.ir.nest import Nest
from poly.ir.paths import paths
from poly.ir.strides import extent, is_contiguous, moved_iterator
from poly.ir.tree import Band, Micro, Node, Sequence, bands, statements, walk
from poly.lowering.calls import inner_bands
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Parallel, Vectorize

WORTH = 50_000
"""Statement instances for which it pays to wake a thread: some ten microseconds of work."""

INNER_GUESS = 1024
"""The extent that a loop inside a sequential one is taken to have, where its sizes are not known."""


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


def shared_out(schedule: Schedule) -> Schedule:
    """The schedule with the outermost loops parallel that may be and are worth it, one on each path."""
    return _shared_out(schedule, schedule.tree, WORTH)


def _shared_out(schedule: Schedule, node: Node, guess: int) -> Schedule:
    """The same below a node; `guess` is the extent of loops whose sizes are not known."""
    if isinstance(node, Sequence):
        for child in node.children:
            schedule = _shared_out(schedule, child, guess)
        return schedule
    if not isinstance(node, Band):
        return schedule
    if _work(schedule.nest, node, guess) >= WORTH and is_parallel(schedule.nest, schedule.tree, node.name):
        return proven(schedule, [Parallel(node.name)])
    return _shared_out(schedule, node.body, INNER_GUESS)


def _work(nest: Nest, band: Band, guess: int) -> int:
    """Instances in one run of a loop, an upper bound."""
    absorbed = [inner for node in walk(band) if isinstance(node, Micro) for inner in inner_bands(node)]
    return prod(extent(nest, inner) or guess for inner in (*bands(band), *absorbed))
