"""What the work-items of a group need beside the loops that they share: partial results, and barriers."""

from __future__ import annotations

from microkernels.isa import ISA
from microkernels.opencl_isa import DeviceISA
from poly.barriers import with_barriers
from poly.box_copy import Boxed
from poly.errors import ScheduleError
from poly.partials import Shared, with_partials
from poly.tree import bands
from poly.work_groups import kernels, width


def with_items(boxed: Boxed, isa: ISA) -> Shared:
    """The nest and its tree as the items of a device's work-groups run them; as they are for what is no such device.

    Raises:
        ScheduleError: more items in a group than the device has; items that would have to wait inside of a shared loop.
    """
    if not isinstance(isa, DeviceISA):
        return Shared(boxed.nest, boxed.tree, boxed.buffers, boxed.workspaces)
    for kernel in kernels(boxed.tree):
        items = width(kernel.body)
        if items > isa.max_items:
            shared = ", ".join(f"{band.name}={band.items}" for band in bands(kernel.body) if band.items)
            told = (
                f"this makes groups of {items} work-items ({shared}), and {isa.name} has at most {isa.max_items} here"
            )
            raise ScheduleError(f"{told}. Remedy: smaller numbers in items.")
    return with_barriers(with_partials(boxed))
