"""What GPUs are taken to be like. None of it was measured: the numbers weigh candidates against each other.

They are those of a usual compute unit of the GPUs since 2016 (Jia, Maggioni, Staiger, Scarpazza, "Dissecting the NVIDIA
Volta GPU architecture via microbenchmarking", 2018, has such a unit in detail), within a factor of two.
"""

from __future__ import annotations

from microkernels.dtypes import DType

CLOCK = 1.5e9
"""Cycles a second."""

MULTIPLY_ADDS = 128
"""Multiply-adds of 32 bits that a unit starts in a cycle; half as many of 64 bits."""

LOCAL, MEMORY = 128, 16
"""Bytes a cycle that a unit gets from local memory, and its share of what all get from global memory."""

LINE = 128
"""Bytes that work-items in lockstep get from memory together."""

LOCKSTEP = 32
"""Work-items that run in lockstep, where the device doesn't say."""

RESIDENT, REGISTERS, LOCAL_BYTES = 1024, 65536, 64 * 1024
"""Of one unit: work-items at a time, their registers of 32 bits, and the local memory of all its groups."""

LATENCY = 500
"""Cycles that memory takes to answer."""

BARRIER = 30
"""Cycles that a group takes to meet at a barrier."""

LAUNCH = 5e-6
"""Seconds that a launch takes on an idle device."""

OVERLAP = 4.0
"""How resources overlap: the exponent of the norm over their seconds (1: in turn, infinite: all at once)."""


def multiply_adds(dtype: DType) -> float:
    """What a unit starts in a cycle."""
    return MULTIPLY_ADDS * min(1.0, 4 / dtype.size)


def together(*seconds: float) -> float:
    """Seconds of resources that work side by side for the most part."""
    return float(sum(part**OVERLAP for part in seconds) ** (1 / OVERLAP))
