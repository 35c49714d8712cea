"""The time of a contraction by a work-group's microkernel: a roofline for each slab, and idle time at edges and tails.

a slab      multiply-adds, reads from local memory, copies from global memory; latency that is not hidden
a unit      its groups one after the other, several at a time if registers and local memory allow it
the whole   the unit with the most groups
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from microkernels.group_kernel import PATCH, GroupKernel
from microkernels.opencl_isa import DeviceISA
from poly.model.cost import Cost, CostPart
from poly.model.gpu import (
    BARRIER,
    CLOCK,
    LATENCY,
    LAUNCH,
    LOCAL,
    LOCAL_BYTES,
    LOCKSTEP,
    MEMORY,
    REGISTERS,
    RESIDENT,
    multiply_adds,
    together,
)

ISSUE = 0.25
"""Instructions per element that an item reads from local memory in a step."""


@dataclass(frozen=True)
class Product:
    """The extents of a contraction as `batch` products of `m` x `k` by `k` x `n`."""

    batch: int
    m: int
    n: int
    k: int


def group_cost(product: Product, kernel: GroupKernel, isa: DeviceISA) -> Cost:
    """The cost of one call."""
    groups = product.batch * ceil(product.m / kernel.rows) * ceil(product.n / kernel.columns)
    most = ceil(groups / isa.units)
    slabs = most * ceil(product.k / kernel.slab)
    compute, local, copied = slabs * _compute(kernel), slabs * _local(kernel), slabs * _copied(kernel)
    waiting = slabs * _waiting(kernel, min(most, resident(kernel, isa)))
    stored = most * kernel.rows * kernel.columns * kernel.dtype.size * 2 / MEMORY
    cycles = {"multiply-add": compute, "local memory": local, "memory": copied + stored, "latency": waiting}
    parts = [CostPart(name, count / CLOCK) for name, count in cycles.items()]
    return Cost(
        together(*(p.seconds for p in parts[:-1])) + waiting / CLOCK + LAUNCH, (*parts, CostPart("launch", LAUNCH))
    )


def resident(kernel: GroupKernel, isa: DeviceISA) -> int:
    """The number of groups that a unit runs at a time."""
    local = max(LOCAL_BYTES, isa.local_bytes)
    room = (RESIDENT // kernel.items, REGISTERS // (kernel.items * kernel.registers), local // kernel.local_bytes)
    return max(1, min(room))


def _compute(kernel: GroupKernel) -> float:
    """Cycles of a slab's instructions: the multiply-adds, the reads of their operands, and one more per step."""
    steps = kernel.items * kernel.slab
    sums = kernel.item_rows * kernel.item_columns
    reads = ISSUE * (kernel.item_rows + kernel.item_columns)
    return steps * (sums / multiply_adds(kernel.panel_dtype) + (1 + reads) / multiply_adds(kernel.panel_dtype))


def _local(kernel: GroupKernel) -> float:
    """Cycles of a slab's traffic with local memory; the items of a patch share the reads of their rows and columns."""
    patches = kernel.items // (PATCH[0] * PATCH[1])
    read = patches * (PATCH[0] * kernel.item_rows + PATCH[1] * kernel.item_columns)
    written = kernel.rows + kernel.columns
    return kernel.slab * (read + written) * kernel.panel_dtype.size / LOCAL


def _copied(kernel: GroupKernel) -> float:
    """Cycles of a slab's traffic with global memory; half of it hits in a cache thanks to other groups."""
    return kernel.slab * (kernel.rows + kernel.columns) * kernel.dtype.size / (2 * MEMORY)


def _waiting(kernel: GroupKernel, at_a_time: int) -> float:
    """Idle cycles per slab: the latency of memory less what other work hides, and the barriers."""
    others = at_a_time - 1 + kernel.double
    barriers = BARRIER * (1 if kernel.double else 2) * ceil(kernel.items / LOCKSTEP) / 8
    return max(0.0, LATENCY - others * _compute(kernel)) / at_a_time + barriers / at_a_time
