"""A description of the machine's OpenCL devices: the usable ones, and why the others are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from codegen.opencl.advice import nvidia_remedy, remedies
from codegen.opencl.devices import Device, reason
from codegen.opencl.failures import amount
from codegen.opencl.survey import Finding
from poly.machine.topology import size_text


def opencl_facts(findings: Sequence[Finding], devices: Sequence[Device]) -> list[dict[str, Any]]:
    """The facts as plain values, usable devices first: `target` is for `poly.compile`, `isa` the limits it uses."""
    usable = [
        {
            "target": device.label,
            "platform": device.platform,
            "name": device.name,
            "vendor": device.vendor,
            "driver": device.driver,
            "version": device.version,
            "problem": "",
            "isa": asdict(device.isa),
            "memory_bytes": device.memory_bytes,
            "buffer_bytes": device.buffer_bytes,
            "shares_memory": device.shares_memory,
        }
        for device in devices
    ]
    others = [
        {"target": None, "platform": finding.platform, "name": finding.name, "problem": finding.problem}
        for finding in findings
        if not finding.usable
    ]
    return [*usable, *others]


def opencl_table(findings: Sequence[Finding], devices: Sequence[Device]) -> Iterator[str]:
    """Lines of text: the usable devices, best first, then the others with reasons, and remedies."""
    lines = [line for device in devices for line in _usable(device)]
    lines += dict.fromkeys(f"not usable: {reason(finding)}" for finding in findings if not finding.usable)
    lines += nvidia_remedy() if devices else remedies()
    for n, line in enumerate(lines):
        yield f"{'OpenCL' if n == 0 else '':12}{line}"


def _usable(device: Device) -> Iterator[str]:
    isa = device.isa
    yield device.label
    yield f"    {device.platform}, driver {device.driver}; {device.vendor}; {amount(device.memory_bytes)} of memory"
    types = ["f32", *["f64"] * isa.f64, *["f16"] * isa.f16]
    items = f", sub-groups of {isa.sub_group}" if isa.sub_group else ""
    yield (
        f"    {isa.name}: {isa.units} compute unit{'s' * (isa.units != 1)}, {size_text(isa.local_bytes)} of local "
        f"memory, groups of up to {isa.max_items} items{items}; {', '.join(types)}"
    )
