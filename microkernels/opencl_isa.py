"""OpenCL devices as instruction sets: vectors and registers, and a device's limits.

A CPU device runs a work-group on one core, so one work-item does all of a group's work with wide vectors. On a GPU the
work-items of a group are lanes, which share `__local` memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeGuard

from microkernels.dtypes import DType
from microkernels.isa import ISA

KIB = 1024


@dataclass(frozen=True)
class DeviceISA(ISA):
    """An OpenCL device's instruction set and limits.

    `units` is the number of compute units. A work-group has `local_bytes` of `__local` memory and at most `max_items`
    work-items. `sub_group` is the number of work-items that run in lockstep (0: unknown). `f64` and `f16` say whether
    the device computes in these types.
    """

    most_lanes: int = 16
    kind: Literal["cpu", "gpu"] = "cpu"
    units: int = 1
    local_bytes: int = 32 * KIB
    max_items: int = 256
    sub_group: int = 0
    f64: bool = True
    f16: bool = False

    @property
    def is_gpu(self) -> bool:
        return self.kind == "gpu"

    def lanes(self, dtype: DType) -> int:
        """The number of elements of `dtype` in a register of a work-item."""
        return max(1, self.vector_bytes // dtype.size)


OPENCL512 = DeviceISA("opencl512", vector_bytes=64, registers=32, flags=())
OPENCL256 = DeviceISA("opencl256", vector_bytes=32, registers=16, flags=())
OPENCL128 = DeviceISA("opencl128", vector_bytes=16, registers=16, flags=())
OPENCLGPU = DeviceISA("openclgpu", vector_bytes=4, registers=128, flags=(), kind="gpu")

OPENCL_ISAS = {isa.name: isa for isa in (OPENCL512, OPENCL256, OPENCL128, OPENCLGPU)}
"""By name, with the minimum limits of OpenCL devices; `dataclasses.replace` sets those of an actual device."""


def is_device(isa: ISA) -> bool:
    """Whether the code is for an OpenCL device."""
    return isinstance(isa, DeviceISA)


def is_gpu(isa: ISA) -> TypeGuard[DeviceISA]:
    """Whether the code is for a GPU."""
    return isinstance(isa, DeviceISA) and isa.is_gpu
