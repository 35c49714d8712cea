"""Instruction sets: vector width, registers, compiler flags, and whether this CPU has them."""

from __future__ import annotations

import difflib
import functools
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from microkernels.dtypes import DType
from microkernels.errors import TargetError, plain, shown
from microkernels.plugins import load


@dataclass(frozen=True)
class ISA:
    """A vector instruction set.

    `vector_bytes` is the width of a register, `registers` their number; `masks` says whether it has masked loads and
    stores. `flags` go to gcc or clang; `machine` is the CPU family (`platform.machine()`), empty for any; `cpu_flags`
    are the names that /proc/cpuinfo must list. No vector type has more than `most_lanes` lanes. A user's instruction
    set has its own `layer`, the C text of the vector operations, and `tiles`, the rows and vectors of the register
    tiles worth choosing from, the best first.
    """

    name: str
    vector_bytes: int
    registers: int
    flags: tuple[str, ...]
    masks: bool = False
    machine: str = ""
    cpu_flags: tuple[str, ...] = ()
    most_lanes: int = 64
    layer: str = field(default="", repr=False)
    tiles: tuple[tuple[int, int], ...] = ()

    def lanes(self, dtype: DType) -> int:
        """The number of elements of `dtype` in a register."""
        return self.vector_bytes // dtype.size

    @property
    def has_masked_stores(self) -> bool:
        """Whether stores under a mask take no longer than others: those of AVX2 do on some CPUs."""
        return self.masks and self.vector_bytes == 64

    def extended(self, features: Mapping[str, str]) -> ISA:
        """The ISA with further features of CPUs, each with the compiler's flag for it."""
        return replace(self, flags=(*self.flags, *features.values()), cpu_flags=(*self.cpu_flags, *features))

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


GROUP = "poly.isas"
"""The entry point group in which packages offer instruction sets, each under its name."""
WIDTHS = (16, 32, 64)
"""The bytes of a register."""
_OWN: dict[str, ISA] = {}


def register(isa: ISA) -> ISA:
    """Add an instruction set with a vector layer of its own, or replace the one of its name.

    Raises TargetError if it lacks a part.
    """
    if not isinstance(isa, ISA):
        raise TargetError(f"{shown(isa)} is no instruction set: make one by ISA(name, vector_bytes, …).")
    if not re.fullmatch("[a-z][a-z0-9]*", str(isa.name)) or isa.name in ISAS or isa.name.startswith("opencl"):
        raise TargetError(
            f"an instruction set cannot be called {plain(isa.name)}: take small letters and digits that poly has not."
        )
    if isa.vector_bytes not in WIDTHS:
        raise TargetError(f"{isa.name} has vectors of {isa.vector_bytes} bytes: expected one of 16, 32 and 64.")
    if not isa.layer.strip() or not isa.tiles:
        raise TargetError(f"{isa.name} needs a layer, the C text of its vector operations, and tiles.")
    large = next((one for one in isa.tiles if one[0] * one[1] + one[1] + 1 > isa.registers), None)
    if large is not None:
        raise TargetError(f"{isa.name} has a tile {large} that its {isa.registers} registers cannot hold.")
    _OWN[isa.name] = isa
    return isa


def find(name: str) -> ISA | None:
    """The instruction set of this name: poly's own, one that was registered, or one that a package offers.

    Raises PluginError if the package's cannot be used.
    """
    if name in ISAS or name in _OWN:
        return ISAS.get(name) or _OWN[name]
    offered = load(GROUP, name, lambda one: isinstance(one, ISA) and one.name == name, f"instruction set {name}")
    return None if offered is None else register(offered)


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


BYTES = {"avx512": ("avx512vbmi", "-mavx512vbmi")}
"""The feature of CPUs that moves bytes to any place of a vector, with the compiler's flag for it."""


def moving_bytes(isa: ISA) -> tuple[str, ...]:
    """The flags of what this CPU moves bytes with, beside an instruction set."""
    feature, flag = BYTES.get(isa.name, ("", ""))
    return (flag,) if feature in host_cpu_flags() else ()


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
    isa = find(name) if language == "c" else None
    if isa is None:
        close = difflib.get_close_matches(target, known, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise TargetError(f"unknown target {shown(target)}: expected one of {', '.join(known)}.{hint}")
    missing = isa.missing()
    if missing:
        raise TargetError(
            f"target {target!r} cannot run here: this CPU lacks {', '.join(missing)}. "
            f"The best target it can run is 'c:{host().name}'."
        )
    return isa
