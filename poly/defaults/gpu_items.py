"""How many work-items share a loop."""

from __future__ import annotations

from microkernels.opencl_isa import DeviceISA
from poly.defaults.loops import extent
from poly.nest import Nest
from poly.tree import Band

GROUP = 256
"""Work-items of a group, where the device has so many: enough to hide what memory takes to answer."""

LONG_GROUP = 64
"""Work-items of a group along one loop, where each has a loop of its own: fewer in a group, and more groups."""

ACROSS = 32
"""Items side by side along the contiguous loop of a two-dimensional tile: whole lines of memory."""


def group_items(isa: DeviceISA, usual: int = GROUP) -> int:
    """The number of work-items, a power of two."""
    return min(usual, 1 << (isa.max_items.bit_length() - 1))


def useful_items(nest: Nest, band: Band, most: int) -> int:
    """The number of work-items that share a loop, a power of two: no more than it keeps busy, where that is known."""
    known = extent(nest, band)
    return most if known is None else min(most, 1 << max(0, known - 1).bit_length())
