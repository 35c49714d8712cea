"""The machine's measured rates: FMA peaks, and the bandwidth of each cache level. Kept in the cache directory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from codegen.cache import get, put
from microkernels.dtypes import DTYPES
from poly.machine.description import Machine
from poly.machine.probes import Probes, probes

VERSION = 1
"""Incremented when the probes change, which invalidates older measurements."""

MEMORY = "memory"


@dataclass(frozen=True)
class Peak:
    """GFLOP/s of fused multiply-adds on `threads` cores together."""

    dtype: str
    threads: int
    gflops: float


@dataclass(frozen=True)
class Bandwidth:
    """GB/s at a level (`L1`, `L2`, `L3`, `memory`) on `threads` cores together: reads, and the triad `a = b + s*c`."""

    level: str
    threads: int
    read: float
    triad: float


@dataclass(frozen=True)
class Measured:
    """The measured rates of a machine, for one thread and for all allowed cores."""

    peaks: tuple[Peak, ...]
    bandwidths: tuple[Bandwidth, ...]

    def peak(self, dtype: str, threads: int = 1) -> float:
        """GFLOP/s; for a thread count that was not measured, the rate of one thread times the count."""
        rates = {p.threads: p.gflops for p in self.peaks if p.dtype == dtype}
        return rates.get(threads, rates[1] * threads)

    def bandwidth(self, level: str, threads: int = 1) -> Bandwidth:
        """The rates at a level; for a thread count that was not measured, those of the next lower count."""
        return max((b for b in self.bandwidths if b.level == level and b.threads <= threads), key=lambda b: b.threads)


def kept(machine: Machine) -> Measured | None:
    """The cached rates; None if there are none or the entry is damaged. Nothing is measured."""
    return _parse(get(_key(machine)))


def measured(machine: Machine, anew: bool = False) -> Measured:
    """The machine's rates, from the cache directory or else measured now (under three seconds) and kept there.

    A damaged entry is measured again, as is an intact one with `anew`. Raises ToolchainError if the probes cannot be
    built or kept.
    """
    known = None if anew else kept(machine)
    if known is None:
        known = measure(machine, probes(machine.isa))
        put(_key(machine), json.dumps(asdict(known), indent=1))
    return known


def measure(machine: Machine, probe: Probes) -> Measured:
    """Run the probes. The best of several short samples counts, since other processes can only slow them down."""
    threads = sorted({1, machine.cores})
    probe.peak(DTYPES["f32"], machine.cores, seconds=0.05)  # wakes the cores and raises their clock
    peaks = [
        Peak(dtype, count, max(probe.peak(DTYPES[dtype], count, seconds=0.002) for _ in range(20)))
        for dtype in ("f32", "f64")
        for count in threads
    ]
    bandwidths = [
        Bandwidth(
            level,
            count,
            max(probe.read(footprint, count, seconds=0.003) for _ in range(_samples(level))),
            max(probe.triad(footprint, count, seconds=0.003) for _ in range(_samples(level))),
        )
        for count in threads
        for level, footprint in footprints(machine, count)
    ]
    return Measured(tuple(peaks), tuple(bandwidths))


def _samples(level: str) -> int:
    """The number of samples at a level: fewer for memory, whose arrays take longer to fill than to stream."""
    return 3 if level == MEMORY else 10


def footprints(machine: Machine, threads: int) -> Iterator[tuple[str, int]]:
    """Each level with the bytes that each of `threads` threads streams to measure it.

    Half of a cache, or of the thread's share of it, stays in that cache and exceeds the one below it. For memory it is
    four times the last cache, with at least 64 and at most 128 MB over all threads.
    """
    for cache in machine.caches:
        yield f"L{cache.level}", cache.bytes // max(1, min(cache.shared_by, threads)) // 2
    last = max(cache.bytes for cache in machine.caches)
    yield MEMORY, min(max(4 * last, 64 << 20), 128 << 20) // threads


def _key(machine: Machine) -> str:
    """The key of a measurement: CPU, instruction set, core count, caches, and version of the probes."""
    return f"machine {machine.cpu} {machine.isa.name} {machine.cores} {machine.caches} {VERSION}"


def _parse(text: str | None) -> Measured | None:
    """The rates that `measured` stored; None if the text is missing or not valid."""
    try:
        data = json.loads(text or "")
        peaks = tuple(Peak(str(p["dtype"]), int(p["threads"]), float(p["gflops"])) for p in data["peaks"])
        bandwidths = tuple(
            Bandwidth(str(b["level"]), int(b["threads"]), float(b["read"]), float(b["triad"]))
            for b in data["bandwidths"]
        )
    except (ValueError, KeyError, TypeError):
        return None
    return Measured(peaks, bandwidths) if peaks and bandwidths else None
