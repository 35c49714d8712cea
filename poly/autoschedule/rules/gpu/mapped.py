"""The default schedule on a GPU of loops without microkernels: work-groups and work-items by dependences and strides.

    for t:                            for t:                    a loop of the host: each sweep is a launch
      for i: for j: B = f(A)    ->      for i_tile: for j_tile:  # groups
      for i: for j: A = f(B)              for i:  # 8 items
                                            for j:  # 32 items …

What has no parallel loop around enough work is run by one work-group, whose items share the loops inside; what cannot
be shared at all, not even in waves, by one work-item.
"""

from __future__ import annotations

from microkernels.opencl_isa import DeviceISA
from poly.analysis.legality import is_parallel
from poly.autoschedule.rules.fusion import fused
from poly.autoschedule.rules.gpu.columns import columns_first
from poly.autoschedule.rules.gpu.fit import fits
from poly.autoschedule.rules.gpu.items import USUAL, GroupShape
from poly.autoschedule.rules.gpu.parallel import parallel_first
from poly.autoschedule.rules.gpu.points import by_points, contiguous_loop, is_strided
from poly.autoschedule.rules.gpu.rows import by_rows, in_one_group, shared_loops
from poly.autoschedule.rules.gpu.transposed import by_lines
from poly.autoschedule.rules.gpu.waves import in_waves
from poly.autoschedule.rules.shapes import instances
from poly.ir.edits import find_loop
from poly.ir.tree import Band, Micro, Node, Sequence, bands, walk
from poly.schedules.schedule import Schedule

WORTH = 16_384
"""Statement instances for which a launch pays: what one work-group does while a kernel starts."""

GUESS = 1024
"""The extent that a loop is taken to have, where it is not known."""


def gpu_schedule(schedule: Schedule, isa: DeviceISA, shape: GroupShape = USUAL) -> Schedule:
    """The schedule with loops given to groups and items where that is legal, and no step or microkernel did so yet."""
    made = fused(schedule)
    return _mapped(made, made.tree, isa, shape.on(isa))


def _mapped(schedule: Schedule, node: Node, isa: DeviceISA, shape: GroupShape) -> Schedule:
    if isinstance(node, Sequence):
        for child in node.children:
            schedule = _mapped(schedule, child, isa, shape)
        return schedule
    if not isinstance(node, Band) or _is_mapped(node):
        return schedule
    made = _kernel(schedule, node, isa, shape)
    if made is None and _is_wide(schedule, node.body):
        return _mapped(schedule, node.body, isa, shape)
    made = made or in_one_group(schedule, node, shape) or in_waves(schedule, node, shape)
    return made if made is not None and fits(made, isa) else schedule


def _kernel(schedule: Schedule, band: Band, isa: DeviceISA, shape: GroupShape) -> Schedule | None:
    """The schedule with a loop and those in it as one kernel; None where none of them can be work-groups."""
    first = parallel_first(schedule, band) or columns_first(schedule, band)
    if first is None:
        return None
    made, parallel = first
    inside = find_loop(made.tree, parallel[-1]).body
    shares, rows_cost = shared_loops(made, inside, shape.items)
    _, points_cost = contiguous_loop(made, parallel)
    if shares and rows_cost < points_cost and is_strided(made, parallel):
        return by_rows(made, parallel, shares, shape) or by_points(made, parallel, isa, shape)
    return by_lines(made, parallel, isa, shape) or by_points(made, parallel, isa, shape)


def _is_mapped(band: Band) -> bool:
    return any(isinstance(n, Micro) or (isinstance(n, Band) and (n.parallel or n.items > 0)) for n in walk(band))


def _is_wide(schedule: Schedule, node: Node) -> bool:
    """Whether there is a parallel loop below that holds enough work for a launch."""
    found = (band for band in bands(node) if instances(schedule.nest, band, GUESS) >= WORTH)
    return any(is_parallel(schedule.nest, schedule.tree, band.name) for band in found)
