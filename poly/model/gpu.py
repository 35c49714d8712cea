"""Assumed properties of GPUs. Nothing here is measured: the numbers serve to compare candidates.

They are typical of a compute unit of GPUs since 2016, within a factor of two (Jia, Maggioni, Staiger, Scarpazza,
"Dissecting the NVIDIA Volta GPU architecture via microbenchmarking", 2018, describes one in detail).
"""

from __future__ import annotations

from microkernels.dtypes import DType

CLOCK = 1.5e9
"""Cycles per second."""

MULTIPLY_ADDS = 128
"""32-bit multiply-adds that a unit starts per cycle; half as many of 64 bits."""

LOCAL, MEMORY = 128, 16
"""Bytes per cycle that a unit gets from local memory, and as its share from global memory."""

LOCKSTEP = 32
"""Work-items that run in lockstep, if the device does not report it."""

RESIDENT, REGISTERS, LOCAL_BYTES = 1024, 65536, 64 * 1024
"""Per unit: resident work-items, their 32-bit registers, and the local memory of all its groups in bytes."""

LATENCY = 500
"""The latency of memory in cycles."""

BARRIER = 30
"""Cycles of a barrier in a group."""

LAUNCH = 5e-6
"""Seconds per launch on an idle device."""

OVERLAP = 4.0
"""The overlap of resources, as the exponent of the norm over their seconds (1: none, infinite: perfect)."""


def multiply_adds(dtype: DType) -> float:
    """The multiply-adds that a unit starts per cycle."""
    return MULTIPLY_ADDS * min(1.0, 4 / dtype.size)


def together(*seconds: float) -> float:
    """The combined seconds of resources that largely overlap."""
    return float(sum(part**OVERLAP for part in seconds) ** (1 / OVERLAP))
