"""Choose the tile of a GPU microkernel for a contraction: few rounds of work-groups, with little idle time."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from microkernels.group_kernel import GroupKernel
from microkernels.opencl_isa import DeviceISA

SPEED = {64: 1.0, 32: 0.85, 16: 0.65}
"""The fraction of the peak that a microkernel reaches, by results per work-item: with more, each needs fewer reads."""

BUSY = 256
"""The number of work-items that keep a compute unit busy."""


def cost(kernel: GroupKernel, isa: DeviceISA, extents: tuple[int, int, int], copies: int) -> float:
    """The expected time of `copies` products of rows x columns x steps, in sequential multiply-adds of one unit."""
    rows, columns, steps = extents
    groups = copies * ceil(rows / kernel.rows) * ceil(columns / kernel.columns)
    rounds = ceil(groups / isa.units)
    busy = min(1.0, rounds * kernel.items / BUSY)
    speed = SPEED.get(kernel.item_rows * kernel.item_columns, min(SPEED.values()))
    return rounds * kernel.rows * kernel.columns * ceil(steps / kernel.slab) * kernel.slab / (speed * busy)


def usual_tile(
    kernels: Sequence[GroupKernel], isa: DeviceISA, extents: tuple[int, int, int], copies: int
) -> GroupKernel:
    """The kernel of least cost."""
    return min(kernels, key=lambda kernel: cost(kernel, isa, extents, copies))
