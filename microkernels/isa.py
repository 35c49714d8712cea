"""Instruction sets: vector width, registers, compiler flags, and whether this CPU has them."""

from __future__ import annotations

import difflib
import functools
import platform
from dataclasses import dataclass
from pathlib import Path

from microkernels.dtypes import DType
from microkernels.errors import TargetError, shown


@dataclass(frozen=True)
class ISA:
    """A vector instruction set.

    `vector_bytes` is the width of a register, `registers` their number; `masks` says whether it has masked loads and
    stores. `flags` go to gcc or clang; `machine` is the CPU family (`platform.machine()`), empty for any; `cpu_flags`
    are the names that /proc/cpuinfo must list. No vector type has more than `most_lanes` lanes.
    """

    name: str
    vector_bytes: int
    registers: int
    flags: tuple[str, ...]
    masks: bool = False
    machine: str = ""
    cpu_flags: tuple[str, ...] = ()
    most_lanes: int = 64

    def lanes(self, dtype: DType) -> int:
        """The number of elements of `dtype` in a register."""
        return self.vector_bytes // dtype.size

    def missing(self) -> tuple[str, ...]:
        """What this CPU lacks to run the ISA: the family, or CPU flags. Empty if the ISA runs here."""
        if self.machine and self.machine != host_machine():
            return (f"a CPU of the family {self.machine}",)
        return tuple(flag for flag in self.cpu_flags if flag not in host_cpu_flags())

    def runs_here(self) -> bool:
        return not self.missing()


AVX512 = ISA(
    "avx512",
    vector_bytes=64,
    registers=32,
    flags=("-mavx512f", "-mavx512vl", "-mavx512dq", "-mavx512bw", "-mfma", "-mprefer-vector-width=512"),
    masks=True,
    machine="x86_64",
    cpu_flags=("avx512f", "avx512vl", "avx512dq", "avx512bw", "fma"),
)
AVX2 = ISA(
    "avx2",
    vector_bytes=32,
    registers=16,
    flags=("-mavx2", "-mfma"),
    masks=True,
    machine="x86_64",
    cpu_flags=("avx2", "fma"),
)
NEON = ISA("neon", vector_bytes=16, registers=32, flags=(), machine="aarch64")
PORTABLE = ISA("portable", vector_bytes=16, registers=16, flags=())

ISAS = {isa.name: isa for isa in (AVX512, AVX2, NEON, PORTABLE)}
"""The instruction sets by name, best first."""


@functools.cache
def host_machine() -> str:
    """The CPU family, as `x86_64` or `aarch64`."""
    name = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name)


@functools.cache
def host_cpu_flags() -> frozenset[str]:
    """The CPU's features as Linux names them; empty where /proc/cpuinfo does not list them."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return frozenset()
    for line in path.read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()


def host() -> ISA:
    """The best ISA that runs on this CPU."""
    return next(isa for isa in ISAS.values() if isa.runs_here())


def parse_target(target: str) -> ISA:
    """The ISA of a C target: `c` is the best one that runs here, `c:avx2` is AVX2.

    Raises TargetError if the target is unknown, or if this CPU cannot run it.
    """
    if not isinstance(target, str):
        raise TargetError(f"a target is a text such as 'c' or 'c:avx2', not {shown(target)}.")
    language, _, name = target.partition(":")
    known = ["c", *(f"c:{isa}" for isa in ISAS)]
    if target == "c":
        return host()
    if language != "c" or name not in ISAS:
        close = difflib.get_close_matches(target, known, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise TargetError(f"unknown target {shown(target)}: expected one of {', '.join(known)}.{hint}")
    isa = ISAS[name]
    missing = isa.missing()
    if missing:
        raise TargetError(
            f"target {target!r} cannot run here: this CPU lacks {', '.join(missing)}. "
            f"The best target it can run is 'c:{host().name}'."
        )
    return isa
