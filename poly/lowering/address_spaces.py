"""The memory of an OpenCL device that holds a copy, and the qualifiers of pointers to it."""

from __future__ import annotations

from collections.abc import Iterable

from codegen.ir.instructions import Barrier
from codegen.ir.integer import Int
from codegen.ir.program import Workspace
from microkernels.ctext import KEYWORDS, Space
from microkernels.dtypes import DType
from microkernels.isa import ISA
from microkernels.opencl_isa import DeviceISA

LOCAL_BARRIER = Barrier(("local",))
"""A barrier after which all work-items of a group see each other's writes to its `__local` memory."""
ALIGNMENT = 64
"""The alignment of scratch arrays in bytes."""


def word(isa: ISA, space: Space) -> str:
    """The address-space qualifier of a pointer's target; empty in C."""
    return KEYWORDS[space] if isinstance(isa, DeviceISA) else ""


def panel_space(isa: ISA, private: bool, dtype: DType, count: Int, others: Iterable[Workspace]) -> Space:
    """The address space of panels: a work-group's `__local` memory if they fit there beside the others, or `global`."""
    if not (isinstance(isa, DeviceISA) and private and count.number is not None):
        return "global"
    taken = sum(_bytes(w.dtype, w.count) for w in others if w.space == "local")
    return "local" if taken + _bytes(dtype, count) <= isa.local_bytes else "global"


def _bytes(dtype: DType, count: Int) -> int:
    return -(-count.constant * dtype.size // ALIGNMENT) * ALIGNMENT
