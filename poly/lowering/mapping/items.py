"""Add what work-items need besides the loops that they share: partial results and barriers."""

from __future__ import annotations

from microkernels.isa import ISA
from microkernels.opencl_isa import DeviceISA
from poly.errors import ScheduleError
from poly.ir.tree import Micro, Node, bands, walk
from poly.ir.work_groups import kernels, width
from poly.lowering.box_copy import Boxed
from poly.lowering.mapping.barriers import with_barriers
from poly.lowering.mapping.partials import Shared, with_partials


def with_items(boxed: Boxed, isa: ISA) -> Shared:
    """The nest and its tree as a device's work-items run them; unchanged for targets other than OpenCL.

    Raises:
        ScheduleError: a group has more items than the device allows, items would have to wait for each other inside a
            shared loop, or their shares of a reduction cannot be combined.
    """
    if not isinstance(isa, DeviceISA):
        return Shared(boxed.nest, boxed.tree, boxed.buffers, boxed.workspaces)
    for kernel in kernels(boxed.tree):
        items = width(kernel.body)
        if items > isa.max_items:
            raise ScheduleError(_too_many(kernel.body, items, isa))
    return with_barriers(with_partials(boxed))


def _too_many(body: Node, items: int, isa: DeviceISA) -> str:
    micros = [n.kernel for n in walk(body) if isinstance(n, Micro) and n.kernel.items == items]
    shared = [f"{band.name}={band.items}" for band in bands(body) if band.items]
    cause = f"microkernel {micros[0]}" if micros else ", ".join(shared)
    remedy = "a kernel with a smaller tile" if micros else "smaller numbers in items"
    problem = f"this makes groups of {items} work-items ({cause}), and {isa.name} has at most {isa.max_items} here"
    return f"{problem}. Remedy: {remedy}."
