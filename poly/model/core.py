"""What the cores of CPUs are taken to be like, where it is neither described nor measured: one place for all of it.

Times are in vector multiply-adds: the time in which a core completes one of them, of which each cycle starts
`PER_CYCLE`. None of these numbers is a speed of one machine; they weigh schedules against each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import gcd

from microkernels.dtypes import DType
from microkernels.isa import ISA
from poly.machine.tiles import TileSpeed
from poly.model.rates import Rates, nominal

LATENCY, PER_CYCLE = 4, 2
"""Of a fused multiply-add: cycles until the result is there, and how many start each cycle. Also the loads each cycle.

Those of Intel's cores since Skylake, AMD's since Zen 3 and Arm's Neoverse N; they only weigh tile shapes against each
other, so that a core that differs by a cycle gets a tile nearly as good.
"""

POINTERS = 14
"""Rows whose pointers stay in general registers, nearly all of the 16 of x86."""

LINE, PAGE = 64, 4096
"""Bytes of a cache line, and of a page that takes an entry in the TLB."""

FULL = 0.75
"""The part of a cache that a working set may fill before lines are lost: replacement is not perfect."""

WAYS = 8
"""Ways of a first-level cache: lines whose addresses differ by a multiple of size / WAYS share so many places."""

HASHED = 4 << 20
"""Bytes from which on a cache is a last level: the places of its lines are spread by a hash of their addresses."""

SCATTERED = 512
"""Bytes of a run, together with a line, that take twice as long as their share of the bandwidth from far caches."""

STREAMS = 32
"""Runs that a prefetcher follows at a time."""

ENTRIES, SECOND_ENTRIES = 64, 2048
"""Entries of a first-level TLB beside those for everything else, and of a second-level one."""

MISS, WALK = 4.0, 10.0
"""What a miss in the first-level TLB costs, in vector multiply-adds, and one in the second; half of it is hidden."""

CONFLICT = 1.3
"""What a read takes longer, in vector multiply-adds, where twice as many rows share a place as it has ways."""

FORK = 5e-6
"""Seconds that it takes to start and to join threads."""


@dataclass(frozen=True)
class Caches:
    """Bytes of one core's first and second level, and of its share of the last."""

    l1: int
    l2: int
    l3: int


@dataclass(frozen=True)
class Target:
    """What runs a schedule: one of `threads` cores with its caches (its share of those it has not alone).

    On a GPU, `threads` are its compute units, and `isa` says what a group of work-items has.
    """

    isa: ISA
    caches: Caches
    rates: Rates
    threads: int

    @staticmethod
    def nominal(isa: ISA, caches: Caches, threads: int) -> Target:
        """One with the rates that cores usually have."""
        return Target(isa, caches, nominal(isa), threads)

    def unit(self, dtype: DType) -> float:
        """Seconds of a vector multiply-add at the peak."""
        return 2 * self.isa.lanes(dtype) / self.rates.peak(dtype)

    @cached_property
    def tiles(self) -> dict[tuple[str, int], dict[int, TileSpeed]]:
        """The register tiles that were measured: by type and vectors, then by rows."""
        found: dict[tuple[str, int], dict[int, TileSpeed]] = {}
        for name, speed in self.rates.tiles:
            found.setdefault((name, speed.vectors), {})[speed.rows] = speed
        return found


def places(apart: int, size: int) -> int:
    """In how many places of a cache of `size` bytes lines may begin that lie `apart` bytes, whole lines, apart."""
    sets = max(1, size // (WAYS * LINE))
    return sets // gcd(apart // LINE, sets)
