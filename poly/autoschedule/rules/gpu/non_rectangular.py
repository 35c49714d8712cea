"""Contractions over a non-rectangular domain on a GPU: a microkernel over the inner loops that form a box.

for p, q, f:                                            for p: for q_tile: for f_tile:        (work-groups)
  for r, s:                                               for r, s:
    if 0 <= p + r - 1 < P and 0 <= q + s - 1 < Q:   ->      microkernel over q, f, c
      for c:
        O[p, q, f] += I[p+r-1, q+s-1, c] * W[r, s, c, f]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from microkernels.group_kernel import GroupKernel
from microkernels.opencl_isa import DeviceISA
from poly.autoschedule.rules.gpu.tiles import usual_tile
from poly.autoschedule.rules.inner_boxes import InnerBox
from poly.ir.work_groups import MOST_GROUP_LOOPS
from poly.schedules.steps import Groups, Order, Split, Step, Tensorize


def non_rectangular_group_steps(
    r: InnerBox, loops: Mapping[str, str], isa: DeviceISA, kernels: Sequence[GroupKernel]
) -> list[Step]:
    """The steps with the best of some kernels; work-groups share the outermost loops over results."""
    extents = (r.extent(r.row), r.extent(r.column), r.extent(r.reduce))
    kernel = usual_tile(kernels, isa, extents, prod(r.extent(iterator) for iterator in r.own))
    row, column, reduced = (loops[name] for name in (r.row, r.column, r.reduce))
    results = [*(loops[name] for name in r.own), f"{row}_tile"]
    launches = [loops[name] for name in r.overlaps]
    return [
        Split(((row, kernel.rows),)),
        Split(((column, kernel.columns),)),
        Order((*launches, *results, *(loops[name] for name in r.taps), f"{column}_tile", row, column, reduced)),
        Tensorize(kernel.name, r.statement.name),
        Groups(tuple(results[:MOST_GROUP_LOOPS])),
    ]
