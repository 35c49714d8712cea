"""The rates of one core: multiply-adds, and bytes from each level per second, measured or nominal."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from microkernels.cached import cached_property
from microkernels.dtypes import DType
from microkernels.isa import ISA, ISAS
from poly.machine.calibration import cautious, described
from poly.machine.measured import USUAL_ROWS, Measured, TileCosts


@dataclass(frozen=True)
class Rates:
    """Rates of one core: `flops` per second of fused multiply-adds by type, and bytes per second from each level.

    With several threads, each has its share of the bandwidth of the last level and of memory.
    """

    flops: tuple[tuple[str, float], ...]
    l2: float
    l3: float
    memory: float
    tiles: TileCosts
    """What register tiles take."""
    start: float = 5e-6
    """Seconds to start and join threads that are awake."""
    wake: float = 1.2e-4
    """Seconds to start and join threads that slept."""
    room: float = inf
    """The bytes that a core keeps of the last level, if it has less than its share."""
    ahead: int = 0
    """The bytes by which loops fetch ahead what they read from memory; 0 if they do not."""
    rows: int = USUAL_ROWS
    """The rows of a matrix in memory that loops read at once."""
    alone: tuple[float, float] = (0.0, 0.0)
    """Bytes per second from the last level and from memory while the other threads wait, if more than its share."""

    def bandwidth(self, level: str) -> float:
        """Bytes per second from a level of memory to one of the threads that work together."""
        return {"L2": self.l2, "L3": self.l3}.get(level, self.memory)

    def bandwidth_alone(self, level: str) -> float:
        """The same while the other threads wait."""
        alone = {"L2": 0.0, "L3": self.alone[0]}.get(level, self.alone[1])
        return max(alone, self.bandwidth(level))

    def peak(self, dtype: DType) -> float:
        """Floating-point operations per second; scaled by size for a type that was not measured."""
        return self._peaks.get(dtype.name) or self._peaks["f32"] * 4 / dtype.size

    @cached_property
    def _peaks(self) -> dict[str, float]:
        return dict(self.flops)


LONGEST = 4e-4
"""Seconds: threads that took longer to wake shared their cores with other work, which will end."""

USUAL = (32 << 10, 1 << 20, 32 << 20)
"""The bytes of a core's caches where they are not known."""

CLOCK = 3e9
"""The clock of a typical core in Hz; if nothing was measured, only ratios matter."""


def nominal(isa: ISA, caches: tuple[int, ...] = USUAL, hidden: str = "") -> Rates:
    """The rates where nothing was measured: two multiply-adds per cycle on 256-bit vectors, or one on 512 bits.

    L2 delivers 32 bytes per cycle, the last level 16 and memory 6: typical of server cores of the last ten years,
    within a factor of two. Register tiles are those of no CPU, and cost what is the most on any described one that is
    not `hidden`.
    """
    lanes = min(isa.vector_bytes, 64) // 4 * (1 if isa.vector_bytes >= 64 else 2)
    f32 = 2.0 * lanes * CLOCK
    return Rates(
        (("f32", f32), ("f64", f32 / 2)),
        32 * CLOCK,
        16 * CLOCK,
        6 * CLOCK,
        cautious(_described_name(isa), caches, hidden),
    )


def described_rates(isa: ISA, caches: tuple[int, ...], threads: int) -> Rates:
    """The rates of one of `threads` cores of the most similar described CPU."""
    return from_machine(described(_described_name(isa), caches), isa, threads)


def _described_name(isa: ISA) -> str:
    """The instruction set by which CPUs are described; for a CPU device, as a C target of equal width."""
    names = {one.vector_bytes: one.name for one in reversed(ISAS.values())}
    return isa.name if isa.name in ISAS else names.get(isa.vector_bytes, isa.name)


def from_machine(measured: Measured, isa: ISA, threads: int) -> Rates:
    """The measured rates of one of `threads` cores that work together."""

    levels = {b.level for b in measured.bandwidths}

    def read(level: str, threads: int) -> float:
        """Of one thread; together they are no slower than one alone, whatever a disturbed measurement says."""
        known = (measured.bandwidth(level, count).read for count in (1, threads))
        return max(known) * 1e9 / threads

    def far(threads: int) -> tuple[float, float]:
        return read("L3" if "L3" in levels else "L2" if "L2" in levels else "memory", threads), read("memory", threads)

    l2 = read("L2" if "L2" in levels else "memory", threads)
    l3, memory = far(threads)
    room = (measured.bandwidth("L3", threads).held if "L3" in levels else 0) or inf
    flops = tuple(
        (name, measured.peak(name, threads) * 1e9 / threads) for name in sorted({p.dtype for p in measured.peaks})
    )
    starts = measured.starts
    more = {"start": starts.awake, "wake": min(starts.asleep, LONGEST)} if starts else {}
    tiles = measured.tiles or cautious(_described_name(isa), USUAL)
    ahead, rows = measured.ahead, measured.rows
    return Rates(flops, l2, l3, memory, tiles, **more, room=room, ahead=ahead, rows=rows, alone=far(1))
