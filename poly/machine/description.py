"""The machine as the system reports it: CPU, instruction set, allowed cores, caches. Instant; nothing is measured."""

from __future__ import annotations

import functools
import platform
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from codegen.errors import ArgumentError
from microkernels import isa
from microkernels.errors import shown
from poly.display import Block, Cells, Displayed, columns
from poly.machine.cores import allowed_cores, allowed_cpus
from poly.machine.topology import (
    HEADS,
    Cache,
    CoreKind,
    MemoryNode,
    common_caches,
    core_kinds,
    cpu_list,
    memory_nodes,
    size_text,
)

LINE, PAGE = 64, 4096
"""Bytes of a cache line, and of a page."""


@dataclass(frozen=True, repr=False)
class Machine(Displayed):
    """The machine as far as this process may use it. `caches` are the data caches seen by one core, L1 first.

    Where `kinds` has cores of several kinds, `caches` are those that every core can count on. `nodes` are the memory
    nodes of these cores.
    """

    cpu: str
    isa: isa.ISA
    cores: int
    caches: tuple[Cache, ...]
    kinds: tuple[CoreKind, ...] = ()
    nodes: tuple[MemoryNode, ...] = ()

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
            *(("", text) for text in self.layout()),
        ]

    def layout(self) -> Iterator[str]:
        """A text for each kind of core and each memory node, where there are several."""
        for kind in self.kinds if len(self.kinds) > 1 else ():
            speed = f", {kind.capacity / 1024:.0%} as fast as the fastest" if kind.capacity else ""
            caches = ", ".join(f"L{cache.level} {size_text(cache.bytes)}" for cache in kind.caches)
            yield f"CPUs {cpu_list(kind.cpus)}: {caches}{speed}"
        for node in self.nodes if len(self.nodes) > 1 else ():
            yield f"CPUs {cpu_list(node.cpus)} next to memory node {node.number}"


@functools.cache
def machine() -> Machine:
    """The machine that this process runs on, as it was at the first call."""
    cpus = allowed_cpus()
    kinds = core_kinds(cpus)
    return Machine(cpu_name(), isa.host(), allowed_cores(), common_caches(kinds), kinds, memory_nodes(cpus))


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


@functools.cache
def microarchitecture() -> str | None:
    """The name of the cores' design, such as `zen4` or `neoverse_n1`; None if archspec does not know this CPU."""
    from archspec import cpu  # twenty milliseconds, and only for people to read

    try:
        found = cpu.host()
    except Exception:  # it reads what the system says of the CPU, which may be anything
        return None
    return None if found.vendor == "generic" else str(found.name)
