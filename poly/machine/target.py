"""Backends: conversion between a user's target text and what code is generated for.

c, c:avx2, …           C for this CPU: the instruction set
opencl, opencl:gpu, …  an OpenCL device: its instruction set and limits, and the device itself
a name of a user's     C for this CPU: the instruction set, and a compiler and its flags
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codegen.calls.arguments import check_threads
from codegen.errors import ArgumentError
from microkernels.isa import ISA, parse_target
from microkernels.opencl_isa import DeviceISA
from poly.machine import machine
from poly.machine.targets import OwnTarget, own_target

if TYPE_CHECKING:
    from codegen.opencl.devices import Device

OPENCL = "opencl"


@dataclass(frozen=True)
class Backend:
    """What a nest is compiled for: C for a CPU's instruction set, or the OpenCL device `device`."""

    isa: ISA
    device: Device | None = None
    own: OwnTarget | None = None
    """The user's target that names it, with a compiler and flags."""

    def __str__(self) -> str:
        """The text from which `parse` gives this backend."""
        if self.own is not None:
            return self.own.name
        return self.device.label if self.device is not None else f"c:{self.isa.name}"

    def threads(self, asked: int | None) -> int:
        """The parallelism of a call: the given threads, else the cores that this process may use, or a device's units.

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
    """The backend that a target text names.

    Raises TargetError if it is unknown or cannot be used here.
    """
    own = own_target(target)
    if own is not None:
        return Backend(own.instructions(), own=own)
    if not is_opencl(target):
        return Backend(parse_target(target))
    from codegen.opencl.devices import find

    device = find(target)
    return Backend(device.isa, device)


def text_of(isa: ISA) -> str:
    """The text of a target with this instruction set; for a device's, the first usable device with these limits."""
    if not isinstance(isa, DeviceISA):
        return f"c:{isa.name}"
    from codegen.opencl.devices import usable

    return next((device.label for device in usable() if device.isa == isa), f"{OPENCL}:{isa.kind}")


def is_opencl(target: object) -> bool:
    """Whether a target text names an OpenCL device."""
    return isinstance(target, str) and target.partition(":")[0] == OPENCL


def checked_threads(threads: int | None) -> int:
    """The given number of threads, or the cores that this process may use. Raises ArgumentError."""
    if threads is None:
        return machine().cores
    return check_threads(threads)
