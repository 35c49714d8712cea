"""One iteration of parallel loops per work-group; its items share the loops inside, including reductions.

for i:                            for i:  # groups
  for j: m[i] = max(…)    ->        for j:  # 256 items, combined in local memory
  for j: Y[i, j] = …                for j:  # 256 items
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from poly.autoschedule.rules.attempt import applied, attempt
from poly.autoschedule.rules.gpu.items import GroupShape, row_items, useful_items
from poly.autoschedule.rules.gpu.lines import side_by_side_cost
from poly.autoschedule.rules.gpu.parallel import chain_names
from poly.ir.edits import find_loop
from poly.ir.strides import extent
from poly.ir.tree import Band, Leaf, Node, parts, statements
from poly.ir.work_groups import MOST_GROUP_LOOPS
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Groups, Items

Share = tuple[tuple[str, int], ...]
"""The loops of one path that items share, each with the number of items."""


def shared_loops(schedule: Schedule, node: Node, count: int) -> tuple[tuple[Share, ...], int]:
    """The loops at or below a node that `count` work-items can share, on each path, and the cost of the accesses.

    Of perfectly nested loops, it is the one along which adjacent items cost least; if that is too short for all items,
    together with another one.
    """
    if isinstance(node, Leaf):
        return (), side_by_side_cost(schedule, node.statement, None)
    if not isinstance(node, Band):
        found = [shared_loops(schedule, child, count) for child in parts(node)] if parts(node) != (node,) else []
        return tuple(share for shares, _ in found for share in shares), sum(cost for _, cost in found)
    loops = chain_names(node)
    inside = find_loop(schedule.tree, loops[-1]).body
    below = statements(node)
    costs = {name: sum(side_by_side_cost(schedule, s, name) for s in below) for name in loops}
    for name in sorted(loops, key=lambda one: costs[one]):
        for share in _shares(schedule, loops, name, count):
            if attempt(schedule, [Items(share)]) is not None:
                return (share,), costs[name]
    return shared_loops(schedule, inside, count)


def _shares(schedule: Schedule, loops: tuple[str, ...], name: str, count: int) -> Iterator[Share]:
    """The ways to share a loop among `count` items: together with one around it if it is too short, and alone."""
    band = find_loop(schedule.tree, name)
    side = useful_items(schedule.nest, band, count)
    if extent(schedule.nest, band) is not None and side < count:
        for other in reversed(loops[: loops.index(name)]):
            yield (other, count // side), (name, side)
    yield ((name, count),)


def by_rows(
    schedule: Schedule, parallel: tuple[str, ...], shares: tuple[Share, ...], shape: GroupShape
) -> Schedule | None:
    """The schedule with the loops `parallel` mapped to work-groups, and the loops inside to the items of a group."""
    if all(len(share) == 1 for share in shares):
        loops = [name for ((name, _),) in shares]
        most = max(row_items(schedule.nest, find_loop(schedule.tree, n), shape.rows) for n in loops)
        shares = tuple(((name, most),) for name in loops)
    grouped = applied(schedule, [Groups(parallel[:MOST_GROUP_LOOPS])])
    return attempt(grouped, [Items(tuple(chain.from_iterable(shares)))])


def in_one_group(schedule: Schedule, band: Band, shape: GroupShape) -> Schedule | None:
    """The schedule in which one group runs a loop and its items share loops at or below it; None if there are none.

    The number of items is the same for all such loops, since adjacent groups share a kernel.
    """
    shares, _ = shared_loops(schedule, band, shape.rows)
    return attempt(schedule, [Items(tuple(chain.from_iterable(shares)))]) if shares else None
