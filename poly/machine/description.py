"""The machine as the system reports it: CPU, instruction set, allowed cores, caches. Instant; nothing is measured."""

from __future__ import annotations

import functools
import platform
from dataclasses import dataclass
from pathlib import Path

from codegen.errors import ArgumentError
from microkernels import isa
from microkernels.errors import shown
from poly.machine.cores import allowed_cores, allowed_cpus
from poly.machine.topology import Cache, CoreKind, MemoryNode, common_caches, core_kinds, memory_nodes

LINE, PAGE = 64, 4096
"""Bytes of a cache line, and of a page."""


@dataclass(frozen=True)
class Machine:
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
