"""Backends: from the text that a user gives as target to what code is made for, and back.

c, c:avx2, …           this CPU by C: the instruction set
opencl, opencl:gpu, …  an OpenCL device: its instruction set and limits, and the device itself
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codegen.arguments import check_threads
from codegen.errors import ArgumentError
from microkernels.errors import TargetError
from microkernels.isa import ISA, parse_target
from microkernels.opencl_isa import DeviceISA
from poly.machine import machine

if TYPE_CHECKING:
    from codegen.opencl.devices import Device

OPENCL = "opencl"


@dataclass(frozen=True)
class Backend:
    """What a nest is compiled for: C for a CPU's instruction set, or an OpenCL device, which `device` is then."""

    isa: ISA
    device: Device | None = None

    def __str__(self) -> str:
        """The text that `parse` takes back."""
        return self.device.label if self.device is not None else f"c:{self.isa.name}"

    def threads(self, asked: int | None) -> int:
        """How many share a call: the threads asked for, else the cores that this process may use, or a device's units.

        Raises ArgumentError.
        """
        if isinstance(self.isa, DeviceISA):
            if asked is not None and check_threads(asked) != self.isa.units:
                raise ArgumentError(
                    f"threads={asked} is for C; {self} has {self.isa.units} compute units. For a part of them ask "
                    f"for the target '{self}@{asked}'."
                )
            return self.isa.units
        return checked_threads(asked)


def parse(target: str) -> Backend:
    """The target that a text asks for.

    Raises TargetError if it is unknown, or cannot be used here.
    """
    if not is_opencl(target):
        return Backend(parse_target(target))
    from codegen.opencl.devices import find

    device = find(target)
    return Backend(device.isa, device)


def resolve(target: str) -> ISA:
    """The instruction set of a target, with the limits of its device if it has one. Raises TargetError."""
    return parse(target).isa


def device_of(target: str) -> Device:
    """The device of an OpenCL target. Raises TargetError."""
    device = parse(target).device
    if device is None:
        raise TargetError(f"target {target!r} is no OpenCL device: ask for 'opencl', or for 'opencl:' and its name.")
    return device


def text_of(isa: ISA) -> str:
    """A target with this instruction set: that of the first usable device with these limits, where it is a device's."""
    if not isinstance(isa, DeviceISA):
        return f"c:{isa.name}"
    from codegen.opencl.devices import usable

    return next((device.label for device in usable() if device.isa == isa), f"{OPENCL}:{isa.kind}")


def is_opencl(target: object) -> bool:
    """Whether a target's text asks for an OpenCL device."""
    return isinstance(target, str) and target.partition(":")[0] == OPENCL


def checked_threads(threads: int | None) -> int:
    """How many threads are meant: those given, or the cores that this process may use. Raises ArgumentError."""
    if threads is None:
        return machine().cores
    return check_threads(threads)
