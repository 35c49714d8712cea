"""OpenCL devices by name: the instruction set to generate code for, and the handle to run it.

opencl            the best device: a GPU, else a CPU
opencl:gpu        the best GPU
opencl:pocl       the best device whose name, vendor, platform or version contains "pocl"
opencl:cpu@4      four of its compute units
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from codegen.opencl.advice import nvidia_remedy, remedies
from codegen.opencl.probe import DeviceFacts, listed
from codegen.opencl.survey import Finding, survey
from codegen.system.forks import uses_drivers
from microkernels.errors import TargetError, shown
from microkernels.isa import host
from microkernels.opencl_isa import OPENCL128, OPENCL256, OPENCL512, OPENCLGPU, DeviceISA

OPENCL = "opencl"
KINDS = ("cpu", "gpu")


@dataclass(frozen=True)
class Device:
    """A usable device, or a part of its compute units. `label` is the target that finds it again.

    `memory_bytes` is its memory, `buffer_bytes` the largest size of one buffer; a sub-buffer begins at a multiple of
    `alignment` bytes. `shares_memory` says whether kernels work on the host's arrays in place.
    """

    platform: str
    name: str
    vendor: str
    driver: str
    version: str
    isa: DeviceISA
    label: str
    memory_bytes: int = field(compare=False)
    buffer_bytes: int = field(compare=False)
    alignment: int = field(compare=False)
    shares_memory: bool = field(compare=False)
    place: tuple[int, int] = field(compare=False, repr=False)
    part: int = 0

    @property
    def handle(self) -> Any:
        """pyopencl's device. Raises TargetError if it is gone."""
        return _handle(self.place, self.name, self.driver, self.part)

    def with_units(self, units: int) -> Device:
        """The device with only this many of its compute units, as a sub-device.

        Raises TargetError if it has fewer, or cannot be divided.
        """
        whole = self.isa.units
        if units == whole:
            return self
        if self.part or not 1 <= units < whole:
            raise TargetError(f"{self.label} has {whole} compute units; got {units}.")
        label = f"{self.label}@{units}"
        divided = replace(self, isa=replace(self.isa, units=units), part=units, label=label)
        assert divided.handle is not None
        return divided

    def __str__(self) -> str:
        return self.label


def usable() -> tuple[Device, ...]:
    """The devices that can be used, best first: GPUs before CPUs, then by compute units."""
    found = [finding for finding in survey() if finding.usable and finding.facts is not None]
    labels = _labels([finding.name for finding in found])
    devices = [_device(finding, label) for finding, label in zip(found, labels, strict=True)]
    return tuple(sorted(devices, key=lambda device: (not device.isa.is_gpu, -device.isa.units)))


def find(target: str) -> Device:
    """The device that a target names (see the module's docstring).

    Raises TargetError if no device can be used, with the reasons, or if none has the name, with the names there are.
    """
    language, _, rest = target.partition(":")
    if language != OPENCL:
        raise TargetError(f"target {shown(target)} is no OpenCL device: expected 'opencl', or 'opencl:' and its name.")
    devices = usable()
    if not devices:
        raise TargetError(_none_usable())
    name, at, units = rest.rpartition("@")
    if at and re.fullmatch("[0-9]{1,9}", units) and all(target != device.label for device in devices):
        return _named(f"{OPENCL}:{name}" if name else OPENCL, devices).with_units(int(units))
    return _named(target, devices)


def _named(target: str, devices: Sequence[Device]) -> Device:
    """The device with that label, or the first one that matches the name in the target. Raises TargetError."""
    exact = [device for device in devices if target == device.label]
    word = target.partition(":")[2].strip().casefold()
    matching = exact or [device for device in devices if _answers(device, word)]
    if not matching:
        raise TargetError(_unknown(target, devices))
    return matching[0]


def _answers(device: Device, word: str) -> bool:
    if word in KINDS:
        return device.isa.kind == word
    return any(word in name.casefold() for name in (device.name, device.platform, device.vendor, device.version))


def _none_usable() -> str:
    return f"no OpenCL device can be used here: {'; '.join(problems())}. {' '.join(remedies())}"


def problems() -> tuple[str, ...]:
    """Why devices and platforms cannot be used, each reason once."""
    return tuple(dict.fromkeys(reason(finding) for finding in survey() if not finding.usable))


def reason(finding: Finding) -> str:
    """Why a device or a platform cannot be used, in one sentence."""
    name = f"{finding.name} ({finding.platform})" if finding.name else finding.platform
    return f"{name}: {finding.problem}" if name else finding.problem


def _unknown(target: str, devices: Iterable[Device]) -> str:
    there = ", ".join(repr(device.label) for device in devices)
    rest = f" Not usable: {'; '.join(problems())}." if problems() else ""
    message = f"no usable OpenCL device is {shown(target)}: there is {there}; 'opencl' takes the first of them.{rest}"
    return " ".join([message, *nvidia_remedy()])


def _labels(names: Sequence[str]) -> list[str]:
    """A target for each device: its name, with a number from the second of the same name on."""
    seen: dict[str, int] = {}
    labels = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        labels.append(f"{OPENCL}:{name}" + (f"#{seen[name]}" if seen[name] > 1 else ""))
    return labels


def _device(finding: Finding, label: str) -> Device:
    facts = finding.facts
    assert facts is not None
    return Device(
        facts.platform,
        facts.name,
        facts.vendor,
        facts.driver,
        facts.version,
        isa_of(facts),
        label,
        facts.memory_bytes,
        facts.buffer_bytes,
        facts.alignment,
        finding.shares_memory,
        facts.place,
    )


def isa_of(facts: DeviceFacts) -> DeviceISA:
    """The instruction set and the limits of a device."""
    kind = _cpu_kind(facts) if facts.kind == "cpu" else OPENCLGPU
    return replace(
        kind,
        units=max(1, facts.units),
        local_bytes=facts.local_bytes,
        max_items=facts.max_items,
        sub_group=facts.sub_group or _usual_sub_group(facts),
        f64="cl_khr_fp64" in facts.extensions,
        f16="cl_khr_fp16" in facts.extensions,
    )


def _cpu_kind(facts: DeviceFacts) -> DeviceISA:
    """The instruction set by the width of vectors, as the device reports it or else as this CPU has it."""
    width = 4 * facts.vector_floats if facts.vector_floats > 1 else host().vector_bytes
    return next((isa for isa in (OPENCL512, OPENCL256) if width >= isa.vector_bytes), OPENCL128)


def _usual_sub_group(facts: DeviceFacts) -> int:
    """The number of work-items in lockstep on all GPUs of a vendor; 0 if they differ."""
    return 32 if facts.kind == "gpu" and "nvidia" in facts.vendor.casefold() else 0


@functools.cache
def _handle(place: tuple[int, int], name: str, driver: str, part: int) -> Any:
    import pyopencl as cl

    uses_drivers()
    device = next(
        (d for facts, d in listed().devices if (facts.place, facts.name, facts.driver) == (place, name, driver)), None
    )
    if device is None:
        raise TargetError(f"the OpenCL device {name} (driver {driver}) is gone: `poly machine` lists what there is.")
    if not part:
        return device
    try:
        counts = [cl.device_partition_property.BY_COUNTS, part, cl.device_partition_property.BY_COUNTS_LIST_END]
        return device.create_sub_devices(counts)[0]
    except cl.Error as error:
        raise TargetError(f"the OpenCL device {name} cannot be divided into compute units: {error}") from error
