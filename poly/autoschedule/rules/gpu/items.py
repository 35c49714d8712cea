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

    items    items of a usual group: enough to hide the latency of memory
    long     items of a one-dimensional group whose items each run a loop: smaller groups, but more of them
    across   items along the contiguous loop of a two-dimensional tile: whole lines of memory
    each     iterations per item in a tile if these are short, to amortise index arithmetic
    """

    items: int = 256
    long: int = 64
    across: int = 32
    each: int = 4

    def on(self, isa: DeviceISA) -> GroupShape:
        """The shape limited to the items that the device allows."""
        most = 1 << (isa.max_items.bit_length() - 1)
        return replace(self, items=min(self.items, most), long=min(self.long, most), across=min(self.across, most))


USUAL = GroupShape()


def useful_items(nest: Nest, band: Band, most: int) -> int:
    """The number of work-items that share a loop, a power of two: no more than it keeps busy, if that is known."""
    known = extent(nest, band)
    return most if known is None else min(most, 1 << max(0, known - 1).bit_length())
