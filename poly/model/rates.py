"""What one core does a second: multiply-adds, and bytes from each level, as measured or as cores usually are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from microkernels.dtypes import DType
from microkernels.isa import ISA
from poly.machine.measured import Measured
from poly.machine.tiles import TileSpeed


@dataclass(frozen=True)
class Rates:
    """Of one core: `flops` a second of fused multiply-adds by type, and bytes a second from L2, L3 and memory.

    With several threads each has its share of the last level's and the memory's.
    """

    flops: tuple[tuple[str, float], ...]
    l2: float
    l3: float
    memory: float
    tiles: tuple[tuple[str, TileSpeed], ...] = ()
    """Register tiles as measured, by type."""

    def peak(self, dtype: DType) -> float:
        """Floating-point operations a second; of a type that wasn't measured, by its size."""
        known = dict(self.flops)
        return known.get(dtype.name) or known["f32"] * 4 / dtype.size


CLOCK = 3e9
"""Cycles a second of a usual core; only ratios matter where nothing was measured."""


def nominal(isa: ISA) -> Rates:
    """A core with two multiply-adds a cycle on 256-bit vectors, or one on 512 bits; L2 gives 32 bytes a cycle.

    The last level gives 16 and memory 6: what servers' cores of the last ten years do, within a factor of two.
    """
    lanes = min(isa.vector_bytes, 64) // 4 * (1 if isa.vector_bytes >= 64 else 2)
    f32 = 2.0 * lanes * CLOCK
    return Rates((("f32", f32), ("f64", f32 / 2)), 32 * CLOCK, 16 * CLOCK, 6 * CLOCK)


def from_machine(measured: Measured, threads: int, tiles: Mapping[str, tuple[TileSpeed, ...]]) -> Rates:
    """Of one of `threads` cores that work together, as measured; `tiles` are register tiles by type."""

    def read(level: str) -> float:
        return measured.bandwidth(level, threads).read * 1e9 / threads

    levels = {b.level for b in measured.bandwidths}
    l2 = read("L2" if "L2" in levels else "memory")
    l3 = read("L3") if "L3" in levels else l2
    flops = tuple(
        (name, measured.peak(name, threads) * 1e9 / threads) for name in sorted({p.dtype for p in measured.peaks})
    )
    named = tuple((name, speed) for name, speeds in tiles.items() for speed in speeds)
    return Rates(flops, l2, l3, read("memory"), named)
