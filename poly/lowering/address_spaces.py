"""Which memory of an OpenCL device a copy lies in, and how pointers to it are written."""

from __future__ import annotations

from collections.abc import Iterable

from codegen.instructions import Barrier
from codegen.integer import Int
from codegen.program import Workspace
from microkernels.ctext import KEYWORDS, Space
from microkernels.dtypes import DType
from microkernels.isa import ISA
from microkernels.opencl_isa import DeviceISA

LOCAL_BARRIER = Barrier(("local",))
"""All work-items of a group have written to its `__local` memory before one goes on."""
ALIGNMENT = 64
"""Bytes: what scratch arrays are aligned to."""


def word(isa: ISA, space: Space) -> str:
    """What stands before the type that a pointer points to; nothing in C."""
    return KEYWORDS[space] if isinstance(isa, DeviceISA) else ""


def panel_space(isa: ISA, private: bool, dtype: DType, count: Int, others: Iterable[Workspace]) -> Space:
    """Where panels lie: those of one work-group in its `__local` memory, where they fit beside the others there."""
    if not (isinstance(isa, DeviceISA) and private and count.number is not None):
        return "global"
    taken = sum(_bytes(w.dtype, w.count) for w in others if w.space == "local")
    return "local" if taken + _bytes(dtype, count) <= isa.local_bytes else "global"


def _bytes(dtype: DType, count: Int) -> int:
    return -(-count.constant * dtype.size // ALIGNMENT) * ALIGNMENT
