"""The cores that this process may use, by kind, and the memory nodes that they belong to, as Linux lists them.

All CPUs of the affinity mask are read: on a hybrid CPU some have smaller caches, or are slower.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

KIB = 1024
SYSTEM = Path("/sys/devices/system")

Number = TypeVar("Number", int, None)


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


@dataclass(frozen=True)
class CoreKind:
    """Logical CPUs whose cores are alike: the same caches, and the same speed where the system states one."""

    cpus: tuple[int, ...]
    caches: tuple[Cache, ...]
    capacity: int | None = None
    """The speed beside that of the fastest core, which has 1024; None if the system does not state it, as on x86."""


@dataclass(frozen=True)
class MemoryNode:
    """A part of the memory, and those of the allowed CPUs that are next to it."""

    number: int
    cpus: tuple[int, ...]


def core_kinds(cpus: Iterable[int], system: Path = SYSTEM) -> tuple[CoreKind, ...]:
    """The kinds of these CPUs, the one with the first CPU first. Where no caches are listed, they are FALLBACK."""
    found: dict[tuple[object, ...], CoreKind] = {}
    for cpu in cpus:
        folder = system / "cpu" / f"cpu{cpu}"
        kind = CoreKind((cpu,), read_caches(folder / "cache"), _number(folder / "cpu_capacity", None))
        alike = (kind.capacity, *(replace(cache, shared_by=0) for cache in kind.caches))
        found[alike] = _joined(found[alike], kind) if alike in found else kind
    return tuple(found.values())


def _joined(kind: CoreKind, more: CoreKind) -> CoreKind:
    """One kind of both. Where some of its caches are shared by fewer CPUs than others, most count."""
    pairs = zip(kind.caches, more.caches, strict=True)
    caches = tuple(replace(one, shared_by=max(one.shared_by, other.shared_by)) for one, other in pairs)
    return replace(kind, cpus=kind.cpus + more.cpus, caches=caches)


def common_caches(kinds: Sequence[CoreKind]) -> tuple[Cache, ...]:
    """The caches that every core can count on: at each level that all kinds have, the one that leaves a CPU least.

    The threads of a kernel share its work evenly, and which core runs a thread is not known when it is compiled.
    """
    levels = [{cache.level: cache for cache in kind.caches} for kind in kinds]
    shared = sorted(set.intersection(*(set(level) for level in levels)))
    return tuple(min((level[n] for level in levels), key=lambda c: c.bytes / c.shared_by) for n in shared) or FALLBACK


def memory_nodes(cpus: Iterable[int], system: Path = SYSTEM) -> tuple[MemoryNode, ...]:
    """The memory nodes that have some of these CPUs, by number; none if the system does not list nodes."""
    allowed = set(cpus)
    numbered = {int(digits): path for path in (system / "node").glob("node*") if (digits := path.name[4:]).isdigit()}
    nodes = [
        MemoryNode(number, tuple(sorted(allowed & set(cpu_numbers(_text(path / "cpulist"))))))
        for number, path in sorted(numbered.items())
    ]
    return tuple(node for node in nodes if node.cpus)


def read_caches(folder: Path) -> tuple[Cache, ...]:
    """The data and unified caches that Linux lists in `folder`, L1 first; FALLBACK if it lists none with a size.

    Some kernels, mostly those of virtual machines and ARM boards, omit ways, line or sharing. The defaults are 8 ways,
    64 bytes and one CPU.
    """
    caches = [_read_cache(index) for index in sorted(folder.glob("index*"))]
    known = sorted((c for c in caches if c is not None), key=lambda c: c.level)
    return tuple(known) or FALLBACK


def cpu_numbers(text: str) -> tuple[int, ...]:
    """The CPUs in a list such as `0-3,8`, ascending; none if it is not one."""
    numbers: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if not (first.isdigit() and (last or first).isdigit()):
            return ()
        numbers.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(numbers))


def cpu_list(cpus: Iterable[int]) -> str:
    """The CPUs as Linux writes them, and `taskset -c` reads them: `0-3,8`."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and runs[-1][-1] == cpu - 1:
            runs[-1].append(cpu)
        else:
            runs.append([cpu])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def _read_cache(index: Path) -> Cache | None:
    size = _bytes(_text(index / "size"))
    if not size or _text(index / "type") == "Instruction":
        return None
    return Cache(
        level=_number(index / "level", 1),
        bytes=size,
        ways=_number(index / "ways_of_associativity", 8),
        line=_number(index / "coherency_line_size", 64),
        shared_by=max(1, len(cpu_numbers(_text(index / "shared_cpu_list")))),
    )


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _number(path: Path, default: Number) -> int | Number:
    """The positive number in a file, or the default."""
    text = _text(path)
    return int(text) if text.isdigit() and int(text) > 0 else default


def _bytes(text: str) -> int:
    """`32K`, `1M` or plain bytes as a number; 0 for anything else."""
    units = {"K": KIB, "M": KIB**2, "G": KIB**3}
    unit = units.get(text[-1:], 1)
    digits = text[:-1] if unit > 1 else text
    return int(digits) * unit if digits.isdigit() else 0


def size_text(size: int) -> str:
    """A number of bytes in the largest binary unit that divides it."""
    for unit, name in ((KIB**2, "MiB"), (KIB, "KiB")):
        if size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"
