"""A few iterations of parallel loops per work-item, with adjacent items along the contiguous loop.

for i: for j:                 for i_tile: for j_tile:  # groups
  B[i, j] = f(A)      ->        for i in 32 rows:  # 8 items
                                  for j in 32 columns:  # 32 items
                                    B[i, j] = f(A)
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, prod

from microkernels.opencl_isa import DeviceISA
from poly.autoschedule.rules.attempt import applied, attempt
from poly.autoschedule.rules.gpu.items import GroupShape, useful_items
from poly.autoschedule.rules.gpu.lines import side_by_side_cost, whole_lines_cost
from poly.ir.edits import find_loop, parent
from poly.ir.strides import extent
from poly.ir.tree import Band, statements
from poly.ir.tree import bands as bands_below
from poly.ir.work_groups import MOST_GROUP_LOOPS
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Groups, Items, Order, Split, Step

FULL = 8
"""Groups per compute unit that run at the same time, or soon after."""

STRIDED_FROM = 2
"""The multiple of the cost of contiguous accesses from which accesses count as strided."""


def contiguous_loop(schedule: Schedule, parallel: tuple[str, ...]) -> tuple[str, int]:
    """The loop along which the accesses of adjacent items cost least, and that cost."""

    def cost(name: str) -> int:
        below = statements(find_loop(schedule.tree, parallel[-1]))
        return sum(side_by_side_cost(schedule, statement, name) for statement in below)

    best = min(reversed(parallel), key=cost)
    return best, cost(best)


def is_strided(schedule: Schedule, parallel: tuple[str, ...]) -> bool:
    """Whether adjacent items use only a small part of the lines that they touch, even along the best loop."""
    below = statements(find_loop(schedule.tree, parallel[-1]))
    least = sum(whole_lines_cost(schedule, statement) for statement in below)
    return contiguous_loop(schedule, parallel)[1] > STRIDED_FROM * least


Counts = tuple[tuple[str, int], ...]
"""Loops with a number for each: the work-items that share it, or the iterations of a tile."""


def by_points(schedule: Schedule, parallel: tuple[str, ...], isa: DeviceISA, shape: GroupShape) -> Schedule | None:
    """The schedule with the perfectly nested loops `parallel` mapped to work-groups and work-items.

    Loops with more iterations than items are tiled. If there are more loops than dimensions of groups, the outer ones
    become groups and the items share the inner ones untiled.
    """
    across, _ = contiguous_loop(schedule, parallel)
    ordered = (*(name for name in parallel if name != across), across)
    many = len(ordered) > MOST_GROUP_LOOPS
    counts = _counts(schedule, ordered[MOST_GROUP_LOOPS:] if many else ordered, shape)
    cut = () if many else _tiles(schedule, ordered, counts, isa.units, shape)
    split = applied(schedule, [Split(cut)] if cut else [])
    tiles = tuple(_around(split, name) for name, _ in cut)
    groups = ordered[:MOST_GROUP_LOOPS] if many else (*(n for n in ordered if n not in dict(counts)), *tiles)
    inside = ordered[MOST_GROUP_LOOPS:] if many else tuple(name for name, _ in counts)
    steps: list[Step] = [Order((*groups, *inside))]
    if groups:
        steps.append(Groups(groups))
    return attempt(split, [*steps, Items(counts)])


def _counts(schedule: Schedule, ordered: tuple[str, ...], shape: GroupShape) -> Counts:
    """The items along the last two loops; all of them along the last if it is the only one."""
    bands = [find_loop(schedule.tree, name) for name in ordered[-2:]]
    alone = len(bands) == 1
    most = shape.long if alone and bands_below(bands[0].body) else shape.items
    side = useful_items(schedule.nest, bands[-1], most if alone else min(shape.across, most))
    if alone:
        return ((bands[0].name, side),)
    return (bands[0].name, useful_items(schedule.nest, bands[0], most // side)), (bands[1].name, side)


def _tiles(schedule: Schedule, ordered: tuple[str, ...], counts: Counts, units: int, shape: GroupShape) -> Counts:
    """The loops to tile, and the tile's iterations along each.

    An item has several iterations along the first, unless it runs a loop itself or there would be too few groups.
    """
    extents = {name: extent(schedule.nest, find_loop(schedule.tree, name)) for name in ordered}
    each = 1 if bands_below(find_loop(schedule.tree, ordered[-1]).body) else shape.each
    (first, count), *rest = counts

    def sizes() -> Counts:
        return (first, count * each), *rest

    while each > 1 and (_groups(extents, dict(sizes())) or FULL * units) < FULL * units:
        each //= 2
    return tuple((name, size) for name, size in sizes() if (known := extents[name]) is None or known > size)


def _groups(extents: Mapping[str, int | None], sizes: Mapping[str, int]) -> int | None:
    """The number of groups if all extents are known; an untiled loop counts with all its iterations."""
    known = [ceil(extent / sizes.get(name, 1)) for name, extent in extents.items() if extent is not None]
    return prod(known) if len(known) == len(extents) else None


def _around(schedule: Schedule, name: str) -> str:
    """The name of the loop right around a loop."""
    outer = parent(schedule.tree, find_loop(schedule.tree, name))
    assert isinstance(outer, Band), "a loop that was cut stands in the loop over its blocks"
    return outer.name
