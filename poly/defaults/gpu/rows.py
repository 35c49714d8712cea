"""One iteration of parallel loops a work-group; its items share the loops inside, reductions among them.

for i:                            for i:  # groups
  for j: m[i] = max(…)    ->        for j:  # 256 items, put together in local memory
  for j: Y[i, j] = …                for j:  # 256 items
"""

from __future__ import annotations

from poly.defaults.attempt import attempt, proven
from poly.defaults.gpu.items import GroupShape, useful_items
from poly.defaults.gpu.lines import side_by_side_cost
from poly.defaults.gpu.parallel import chain_names
from poly.defaults.loops import parts
from poly.schedule import Schedule
from poly.steps import Groups, Items
from poly.steps.base import find_loop
from poly.steps.mapping import MOST_GROUP_LOOPS
from poly.tree import Band, Leaf, Node, statements


def shared_loops(schedule: Schedule, node: Node, count: int) -> tuple[tuple[str, ...], int]:
    """The loops at or below a node that `count` work-items may share, one on each path, and what the accesses cost.

    Of loops directly in each other it is the one along which neighbours cost least.
    """
    if isinstance(node, Leaf):
        return (), side_by_side_cost(schedule, node.statement, None)
    if not isinstance(node, Band):
        found = [shared_loops(schedule, child, count) for child in parts(node)] if parts(node) != (node,) else []
        return tuple(name for names, _ in found for name in names), sum(cost for _, cost in found)
    chain = chain_names(node)
    inside = find_loop(schedule.tree, chain[-1]).body
    below = statements(node)
    costs = {name: sum(side_by_side_cost(schedule, s, name) for s in below) for name in chain}
    for name in sorted(chain, key=lambda one: costs[one]):
        if attempt(schedule, [Items(((name, count),))]) is not None:
            return (name,), costs[name]
    return shared_loops(schedule, inside, count)


def by_rows(
    schedule: Schedule, parallel: tuple[str, ...], loops: tuple[str, ...], shape: GroupShape
) -> Schedule | None:
    """The schedule with the loops `parallel` shared by work-groups, and the `loops` inside by the items of a group."""
    groups = parallel[:MOST_GROUP_LOOPS]
    most = max(useful_items(schedule.nest, find_loop(schedule.tree, n), shape.items) for n in loops)
    return attempt(proven(schedule, [Groups(groups)]), [Items(tuple((name, most) for name in loops))])


def in_one_group(schedule: Schedule, band: Band, shape: GroupShape) -> Schedule | None:
    """The schedule with a loop run by one group, whose items share loops at or below it; None where there are none.

    The number of items is the same for all such loops, as groups of neighbours share a kernel.
    """
    count = shape.items
    loops, _ = shared_loops(schedule, band, count)
    return attempt(schedule, [Items(tuple((name, count) for name in loops))]) if loops else None
