"""The key of a tuning record: the loops, their sizes, and everything that affects which schedule is fastest."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from codegen.system.cache import digest
from codegen.toolchain.compiler import compiler_name
from microkernels.isa import ISA
from poly.ir.nest import Nest
from poly.machine import machine
from poly.machine.target import OPENCL
from poly.machine.topology import size_text
from poly.version import RELEASE

if TYPE_CHECKING:
    from codegen.opencl.devices import Device

Sizes = tuple[tuple[str, int], ...]

MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""The errors raised on reading facts that are foreign or damaged."""
MISSING = 8.0
"""The distance of a size that only one of two nests has: the same as for 256 times as many iterations."""
OTHER = 4.0
"""The distance of another compiler or engine."""


@dataclass(frozen=True)
class Key:
    """One tuning problem. Two keys are equal if a record for one serves the other; the nest's `name` is ignored.

    `structure` is the nest's digest with all sizes open, `sizes` the fixed sizes by name, `dtypes` the types of the
    arguments in order, `target` the instruction set, and `machine` the CPU and its caches. For an OpenCL device,
    `machine` is that device, `compiler` its driver, and `threads` the number of its compute units.
    """

    structure: str
    sizes: Sizes
    dtypes: tuple[str, ...]
    target: str
    threads: int
    machine: str
    compiler: str
    engine: str
    name: str = field(default="", compare=False)

    @property
    def digest(self) -> str:
        """A short text that is the same only for equal keys."""
        facts = self.facts()
        del facts["name"]
        return digest(json.dumps(facts, sort_keys=True))

    @property
    def of_device(self) -> bool:
        """Whether it is a problem for an OpenCL device."""
        return self.target.startswith(OPENCL)

    def facts(self) -> dict[str, Any]:
        """The key as values for JSON."""
        return {**asdict(self), "sizes": dict(self.sizes), "dtypes": list(self.dtypes)}

    @staticmethod
    def of(facts: Mapping[str, Any]) -> Key:
        """The key described by `facts`. Raises one of MALFORMED if they do not describe one."""
        return Key(
            structure=checked_text(facts["structure"]),
            sizes=checked_sizes(facts["sizes"]),
            dtypes=tuple(map(checked_text, facts["dtypes"])),
            target=checked_text(facts["target"]),
            threads=checked_integer(facts["threads"]),
            machine=checked_text(facts["machine"]),
            compiler=checked_text(facts["compiler"]),
            engine=checked_text(facts["engine"]),
            name=checked_text(facts["name"]),
        )

    def distance(self, other: Key, here: Sizes = (), there: Sizes = ()) -> float:
        """The distance between two problems: of their sizes in binary logarithms, plus that of threads, compiler, …

        `here` and `there` are the sizes at which each was measured if they are open.
        """
        own, others = dict(here) | dict(self.sizes), dict(there) | dict(other.sizes)
        steps = [_ratio(own[name], others[name]) if name in own else MISSING for name in others]
        steps += [MISSING for name in own if name not in others]
        threads = _ratio(self.threads, other.threads)
        rest = OTHER * ((self.compiler != other.compiler) + (self.engine != other.engine))
        return math.hypot(*steps) + 2 * threads + rest


def key_for(nest: Nest, isa: ISA, threads: int, device: Device | None = None) -> Key:
    """The key of a nest for this engine on this machine with its C compiler, or on a device with its driver.

    Raises ToolchainError if there is neither a device nor a C compiler.
    """
    return Key(
        structure=nest.structure,
        sizes=ordered(dict(nest.fixed)),
        dtypes=tuple(array.dtype.name for array in nest.arguments),
        target=isa.name,
        threads=threads,
        machine=machine_name() if device is None else device_name(device),
        compiler=compiler_name() if device is None else driver_name(device),
        engine=RELEASE,
        name=nest.name,
    )


def machine_name() -> str:
    """This machine's CPU and data caches in one line; machines that agree in these have the same fastest schedules."""
    here = machine()
    return ", ".join((here.cpu, *(f"L{cache.level} {size_text(cache.bytes)}" for cache in here.caches)))


def device_name(device: Device) -> str:
    """An OpenCL device and its platform in one line."""
    return f"{device.name}, {device.platform}"


def driver_name(device: Device) -> str:
    """The versions of a device's OpenCL and of its driver."""
    return f"{device.version}, driver {device.driver}"


def ordered(sizes: Mapping[str, int]) -> Sizes:
    """The sizes sorted by name."""
    return tuple(sorted(sizes.items()))


def checked_sizes(value: Any) -> Sizes:
    """The sizes sorted by name. Raises one of MALFORMED if the value is not a mapping of texts to sizes."""
    return ordered({checked_text(name): checked_integer(size) for name, size in dict(value).items()})


def checked_text(value: object) -> str:
    """A text that can be stored. Raises one of MALFORMED."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    value.encode()
    return value


def checked_integer(value: object) -> int:
    """An integer that can be stored. Raises one of MALFORMED."""
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{value!r} is not a 64-bit integer")
    return value


def _ratio(a: int, b: int) -> float:
    """The distance of two numbers in doublings."""
    return abs(math.log2(max(a, 1) / max(b, 1)))
