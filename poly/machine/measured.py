"""What was measured on the machine: FMA peaks, and the bandwidth of each cache level. Kept in the cache directory."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from codegen.build import cache_directory
from microkernels.dtypes import DTYPES
from poly.machine.description import Machine
from poly.machine.probes import Probes, probes

VERSION = 1
"""Counts up when the probes change: older measurements are then taken anew."""

MEMORY = "memory"


@dataclass(frozen=True)
class Peak:
    """GFLOP/s of fused multiply-adds with `threads` cores together."""

    dtype: str
    threads: int
    gflops: float


@dataclass(frozen=True)
class Bandwidth:
    """GB/s at a level (`L1`, `L2`, `L3`, `memory`), `threads` cores together: reading, and the triad `a = b + s*c`."""

    level: str
    threads: int
    read: float
    triad: float


@dataclass(frozen=True)
class Measured:
    """The measured rates of a machine, for one thread and for all that are allowed."""

    peaks: tuple[Peak, ...]
    bandwidths: tuple[Bandwidth, ...]

    def peak(self, dtype: str, threads: int = 1) -> float:
        """GFLOP/s; for a thread count that wasn't measured, that of one thread times the count."""
        rates = {p.threads: p.gflops for p in self.peaks if p.dtype == dtype}
        return rates.get(threads, rates[1] * threads)

    def bandwidth(self, level: str, threads: int = 1) -> Bandwidth:
        """The rates at a level; for a thread count that wasn't measured, those of the most threads below it."""
        return max((b for b in self.bandwidths if b.level == level and b.threads <= threads), key=lambda b: b.threads)


def measured(machine: Machine) -> Measured:
    """The machine's rates: from the cache directory, else measured now (under three seconds) and kept there.

    A damaged or unwritable file does no harm: the rates are measured again. Raises ToolchainError where
    the probes cannot be built.
    """
    path = _path(machine)
    known = _read(path)
    if known is None:
        known = measure(machine, probes(machine.isa))
        _write(path, known)
    return known


def measure(machine: Machine, probe: Probes) -> Measured:
    """Run the probes; the best of a few short samples counts, since whatever else runs can only slow them."""
    threads = sorted({1, machine.cores})
    probe.peak(DTYPES["f32"], machine.cores, seconds=0.05)  # wakes the cores and raises their clock
    peaks = [
        Peak(dtype, count, max(probe.peak(DTYPES[dtype], count, seconds=0.01) for _ in range(5)))
        for dtype in ("f32", "f64")
        for count in threads
    ]
    bandwidths = [
        Bandwidth(
            level,
            count,
            max(probe.read(footprint, count) for _ in range(3)),
            max(probe.triad(footprint, count) for _ in range(3)),
        )
        for count in threads
        for level, footprint in footprints(machine, count)
    ]
    return Measured(tuple(peaks), tuple(bandwidths))


def footprints(machine: Machine, threads: int) -> Iterator[tuple[str, int]]:
    """Each level with the bytes that one of `threads` threads streams to measure it.

    Half of a cache (of the thread's share of it) stays in it and fills the one below; four times the last one, with at
    least 64 and at most 128 MB over all threads, comes from memory.
    """
    for cache in machine.caches:
        yield f"L{cache.level}", cache.bytes // max(1, min(cache.shared_by, threads)) // 2
    last = max(cache.bytes for cache in machine.caches)
    yield MEMORY, min(max(4 * last, 64 << 20), 128 << 20) // threads


def _path(machine: Machine) -> Path:
    """The file of this CPU, instruction set, core count, caches and version."""
    key = repr((machine.cpu, machine.isa.name, machine.cores, machine.caches, VERSION))
    return cache_directory() / f"machine-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"


def _read(path: Path) -> Measured | None:
    try:
        data = json.loads(path.read_text())
        peaks = tuple(Peak(str(p["dtype"]), int(p["threads"]), float(p["gflops"])) for p in data["peaks"])
        bandwidths = tuple(
            Bandwidth(str(b["level"]), int(b["threads"]), float(b["read"]), float(b["triad"]))
            for b in data["bandwidths"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Measured(peaks, bandwidths) if peaks and bandwidths else None


def _write(path: Path, rates: Measured) -> None:
    """Write by an atomic rename, so that no reader sees half a file."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".tmp", delete=False) as file:
            json.dump(asdict(rates), file, indent=1)
        os.replace(file.name, path)
    except OSError:
        return
