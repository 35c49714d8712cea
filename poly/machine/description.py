"""The machine as the system reports it: CPU, instruction set, allowed cores, caches. Instant; nothing is measured."""

from __future__ import annotations

import functools
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from codegen.errors import ArgumentError
from microkernels import isa
from microkernels.errors import shown
from poly.display import Block, Cells, Displayed, columns
from poly.machine.cores import allowed_cores, allowed_cpus

KIB = 1024

LINE, PAGE = 64, 4096
"""Bytes of a cache line, and of a page."""


@dataclass(frozen=True)
class Cache:
    """A data cache.

    `bytes` is its total size, `line` the size of a line, `shared_by` the number of logical CPUs that share it.
    """

    level: int
    bytes: int
    ways: int
    line: int
    shared_by: int

    def cells(self) -> tuple[str, ...]:
        """The texts of a table's row."""
        shared = f"{self.shared_by} CPU{'s' if self.shared_by > 1 else ''}"
        return f"L{self.level}", size_text(self.bytes), str(self.ways), str(self.line), shared


HEADS = ("cache", "size", "ways", "line", "shared by")
"""What the cells of a cache are."""

FALLBACK = (Cache(1, 32 * KIB, 8, 64, 1), Cache(2, 512 * KIB, 8, 64, 1))
"""A lower bound for nearly every core of the last ten years, assumed if the system does not list its caches."""


@dataclass(frozen=True, repr=False)
class Machine(Displayed):
    """The machine as far as this process may use it. `caches` are the data caches seen by one core, L1 first."""

    cpu: str
    isa: isa.ISA
    cores: int
    caches: tuple[Cache, ...]

    def cache(self, level: int) -> Cache | None:
        """The cache at a level; None if the machine has none."""
        return next((c for c in self.caches if isinstance(level, int) and c.level == level), None)

    def share(self, cache: Cache, threads: int | None = None) -> int:
        """The share, in bytes, of a cache that each of so many busy cores has; None: all that this process may use.

        Raises ArgumentError if `cache` is not a Cache.
        """
        if not isinstance(cache, Cache):
            raise ArgumentError(f"{shown(cache)} is not a cache. Use one of machine().caches.")
        return cache.bytes // max(1, min(cache.shared_by, self.cores, threads or self.cores))

    def __str__(self) -> str:
        """The CPU, its instruction set and cores, and a table of the caches."""
        lines = [f"{label:10}  {text}" for label, text in self._rows()]
        return "\n".join((*lines, "", *columns([HEADS, *(cache.cells() for cache in self.caches)])))

    def _title(self) -> str:
        return f"machine {self.cpu}, {self.isa.name}, {self.cores} core{'s' if self.cores != 1 else ''}"

    def _parts(self) -> Iterable[Block]:
        yield Cells(self._rows())
        yield Cells([cache.cells() for cache in self.caches], HEADS)

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("CPU", self.cpu),
            ("ISA", f"{self.isa.name}: {self.isa.registers} vectors of {self.isa.vector_bytes} bytes"),
            ("cores", f"{self.cores} that this process may use"),
        ]


@functools.cache
def machine() -> Machine:
    """The machine that this process runs on, as it was at the first call."""
    first = allowed_cpus()[0]
    folder = Path(f"/sys/devices/system/cpu/cpu{first}/cache")
    return Machine(cpu_name(), isa.host(), allowed_cores(), read_caches(folder))


def cpu_name(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The CPU's name with its model numbers, since the name alone may be ambiguous (`AMD EPYC`)."""
    try:
        text = cpuinfo.read_text()
    except OSError:
        text = ""
    fields = {}
    for line in text.split("\n\n")[0].splitlines():
        key, _, value = line.partition(":")
        fields[key.strip()] = value.strip()
    if "model name" in fields and "cpu family" in fields:
        return f"{fields['model name']} (family {fields['cpu family']}, model {fields.get('model', '?')})"
    if "CPU part" in fields:
        return f"ARM implementer {fields.get('CPU implementer', '?')}, part {fields['CPU part']}"
    return fields.get("model name") or platform.processor() or platform.machine()


def read_caches(folder: Path) -> tuple[Cache, ...]:
    """The data and unified caches that Linux lists in `folder`, L1 first; FALLBACK if it lists none with a size.

    Some kernels, mostly those of virtual machines and ARM boards, omit ways, line or sharing. The defaults are 8 ways,
    64 bytes and one CPU.
    """
    caches = [_read_cache(index) for index in sorted(folder.glob("index*"))]
    known = sorted((c for c in caches if c is not None), key=lambda c: c.level)
    return tuple(known) or FALLBACK


def size_text(size: int) -> str:
    """A number of bytes in the largest binary unit that divides it."""
    for unit, name in ((KIB**2, "MiB"), (KIB, "KiB")):
        if size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def _read_cache(index: Path) -> Cache | None:
    size = _bytes(_text(index / "size"))
    if not size or _text(index / "type") == "Instruction":
        return None
    return Cache(
        level=_number(index / "level", 1),
        bytes=size,
        ways=_number(index / "ways_of_associativity", 8),
        line=_number(index / "coherency_line_size", 64),
        shared_by=_count(_text(index / "shared_cpu_list")),
    )


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _number(path: Path, default: int) -> int:
    """The positive number in a file, or the default."""
    text = _text(path)
    return int(text) if text.isdigit() and int(text) > 0 else default


def _bytes(text: str) -> int:
    """`32K`, `1M` or plain bytes as a number; 0 for anything else."""
    units = {"K": KIB, "M": KIB**2, "G": KIB**3}
    unit = units.get(text[-1:], 1)
    digits = text[:-1] if unit > 1 else text
    return int(digits) * unit if digits.isdigit() else 0


def _count(cpu_list: str) -> int:
    """The number of CPUs in a list such as `0-3,8`; 1 if it is empty."""
    total = 0
    for part in filter(None, cpu_list.split(",")):
        first, _, last = part.partition("-")
        total += int(last or first) - int(first) + 1
    return max(1, total)
