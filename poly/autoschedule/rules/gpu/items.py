"""The number of work-items in a group, and how many of them share a loop."""

from __future__ import annotations

from dataclasses import dataclass, replace

from microkernels.opencl_isa import DeviceISA
from poly.ir.nest import Nest
from poly.ir.strides import extent
from poly.ir.tree import Band


@dataclass(frozen=True)
class GroupShape:
    """The work-items of a group; every number is a power of two.

    items    items of a usual group: several groups of a unit hide the latency of memory
    long     items of a one-dimensional group whose items each run a loop: smaller groups, but more of them
    across   items along the contiguous loop of a two-dimensional tile: several whole lines of memory
    each     iterations per item in a tile if these are short, to amortise index arithmetic
    side     the rows and columns of a square tile that is transposed in local memory
    rows     the most items that share the loops of one group: few rows at a time, so that caches hold them
    """

    items: int = 128
    long: int = 32
    across: int = 128
    each: int = 4
    side: int = 32
    rows: int = 512

    def on(self, isa: DeviceISA) -> GroupShape:
        """The shape limited to the items that the device allows."""
        most = 1 << (isa.max_items.bit_length() - 1)
        names = ("items", "long", "across", "side", "rows")
        return replace(self, **{name: min(getattr(self, name), most) for name in names})


USUAL = GroupShape()

LOCKSTEP = 32
"""Items that run in lockstep on most GPUs: fewer of them leave lanes idle."""

RUN = 8
"""Iterations per item that are worth the barriers around them."""


def row_items(nest: Nest, band: Band, most: int) -> int:
    """The number of work-items that share a loop between barriers: each has several iterations, if that is known."""
    known = extent(nest, band)
    if known is None:
        return max(1, most // 2)
    return min(useful_items(nest, band, most), max(LOCKSTEP, useful_items(nest, band, most * RUN) // RUN))


def useful_items(nest: Nest, band: Band, most: int) -> int:
    """The number of work-items that share a loop, a power of two: no more than it keeps busy, if that is known."""
    known = extent(nest, band)
    return most if known is None else min(most, 1 << max(0, known - 1).bit_length())
