"""Assumed properties of CPU cores that are neither described nor measured, all in one place.

Times are in vector multiply-adds, of which a core starts `PER_CYCLE` per cycle. None of these numbers is the speed of a
particular machine; they serve to compare schedules.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import pairwise
from math import ceil, exp, gcd, inf

from microkernels.cached import cached_property
from microkernels.dot import DotProduct
from microkernels.dtypes import DType
from microkernels.isa import ISA
from poly.machine.description import LINE
from poly.machine.measured import TileCosts, TileSpeed
from poly.model.rates import Rates, nominal

LATENCY, PER_CYCLE = 4, 2
"""The latency of a fused multiply-add in cycles, and the number started per cycle, which is also that of loads.

Typical of Intel's cores since Skylake, AMD's since Zen 3 and Arm's Neoverse N. They only serve to compare tile shapes,
so a core that differs by a cycle gets a tile that is nearly as good.
"""

MISPREDICTED = 20
"""The cycles of a mispredicted branch, typical of the same cores: where it was not measured."""

POINTERS = 14
"""Rows whose pointers stay in general registers: nearly all of the 16 of x86."""

FULL = 0.75
"""The fraction of a cache that a working set may fill before lines are evicted, since replacement is imperfect."""

MISSING = (0, 1 / 16, 1 / 4, 1 / 2, 3 / 4, 1)
"""The parts of the lines of a working set that are told apart: few already cost much, since far lines take so long."""

KNOWN = 1024
"""The answers that are kept of how much of a cache misses."""

MANY = 4
"""Times the size of a cache, of which hardly a line is used again."""

HASHED = 4 << 20
"""The bytes from which a cache counts as a last level, whose sets are chosen by a hash of the address."""

SCATTERED = 512
"""The bytes of a run plus one line for which far caches take twice as long as by bandwidth alone."""

STREAMS = 32
"""The number of runs that a prefetcher follows at a time."""

ENTRIES, SECOND_ENTRIES = 64, 2048
"""Entries of a first-level TLB that are free for data, and of a second-level one."""

MISS, WALK = 4.0, 10.0
"""The cost of a miss in the first-level TLB and in the second, in vector multiply-adds; half of it is hidden."""


@dataclass(frozen=True)
class Caches:
    """Bytes of one core's first and second-level caches, and of its share of the last level; ways of the first two."""

    l1: int
    l2: int
    l3: int
    ways: tuple[int, int] = (8, 8)

    def within(self, rates: Rates) -> Caches:
        """The caches with as much of the last level as a core really keeps."""
        return replace(self, l3=int(min(self.l3, rates.room)))


@dataclass(frozen=True)
class Target:
    """What runs a schedule: `threads` cores, each with its caches (its share of shared ones) and rates.

    On a GPU, `threads` is the number of compute units, and `isa` has the limits of a work-group. `features` are those
    of the CPU beside the instruction set that microkernels may use, sorted.
    """

    isa: ISA
    caches: Caches
    rates: Rates
    threads: int
    features: tuple[str, ...] = ()
    similar: Rates | None = None
    """The rates that decide between choices that take hardly longer: None for the most similar described CPU's."""

    @staticmethod
    def nominal(isa: ISA, caches: Caches, threads: int) -> Target:
        """A target with nominal rates."""
        return Target(isa, caches, nominal(isa), threads)

    def unit(self, dtype: DType) -> float:
        """Seconds of a vector multiply-add at the peak."""
        return 2 * self.isa.lanes(dtype) / self.rates.peak(dtype)

    def worthwhile(self, dtype: DType) -> float:
        """The multiply-adds from which n threads pay off, whether they are awake or asleep, which nobody knows before.

        There, waking them for t / n seconds of work each loses the same factor, n, as leaving them awake but unused:
        t / n + wake = n t. Infinite for one thread.
        """
        wider = self.threads - 1 / self.threads
        return self.rates.wake / wider * self.rates.peak(dtype) / 2 if wider else inf

    def line(self, operand: str, level: str, rows: int = 1) -> float:
        """The time of a line of a register tile's operand beside the tile's arithmetic, in vector multiply-adds."""
        return self.costs.line(operand, level, rows)

    def product(self, dtype: DType, dot: DotProduct | None = None) -> float:
        """The time of a register tile's multiply-add in those of floats: measured, or else by its instructions."""
        if dtype.is_float and dot is None:
            return 1.0
        name, assumed = (dot.name, 2.0 - dot.is_fused) if dot else (dtype.name, 2.0)
        return next((one.cost for one in self.costs.products if one.name == name), assumed)

    @property
    def mispredicted(self) -> float:
        """The time of a mispredicted branch, in vector multiply-adds."""
        known = self.costs.mispredicted
        return MISPREDICTED * PER_CYCLE if known is None else known

    @property
    def costs(self) -> TileCosts:
        """What calls of register tiles take."""
        return self.rates.tiles

    @cached_property
    def tiles(self) -> dict[int, dict[int, TileSpeed]]:
        """The measured register tiles: by vectors, then by rows."""
        found: dict[int, dict[int, TileSpeed]] = {}
        for speed in self.rates.tiles.speeds:
            found.setdefault(speed.vectors, {})[speed.rows] = speed
        return found


@cache
def _evicted(lines: int, ways: int) -> float:
    """The part of `lines` of one set, used in turn, that are gone when they are used again.

    If the least recently used line is replaced, all are that do not fit. If any line may be, one stays if none of the
    misses until its next use has chosen its way: m = 1 - exp(-m lines / ways). Real caches are in between.
    """
    part = 1.0
    for _ in range(200):
        part = 1 - exp(-part * lines / ways)
    return (part + (lines > ways)) / 2


@lru_cache(KNOWN)
def missed(times: float, ways: int) -> float:
    """The part of the lines that miss in a second level, if `times` of its size are used again and again.

    Its sets are chosen by physical addresses and pages lie anywhere, so as many pages share sets as Poisson says: some
    lines miss though there is room elsewhere. Of more than fits, some stay.
    """
    mean = min(times, MANY) * ways
    found, chance = 0.0, exp(-mean)
    for lines in range(1, ceil(3 * mean) + 3 * ways):
        chance *= mean / lines
        found += chance * lines * _evicted(lines, ways)
    return found / mean if mean else 0.0


@cache
def rooms(ways: int) -> tuple[tuple[float, float], ...]:
    """Parts of a second level, and how many more of the lines miss of working sets that are larger than each."""

    def size(part: float) -> float:
        return bisect_left(range(1, 100 * MANY), part, key=lambda n: missed(n / 100, ways)) / 100

    return tuple((size((less + more) / 2), more - less) for less, more in pairwise(MISSING))


def set_count(apart: int, size: int, ways: int) -> int:
    """The number of sets of a cache of `size` bytes in which lines begin that are `apart` bytes, whole lines, apart."""
    sets = max(1, size // (ways * LINE))
    return sets // gcd(apart // LINE, sets)


def room(apart: int, width: int, size: int, ways: int) -> int:
    """The bytes of a cache that runs of `width` bytes can use that begin `apart` bytes from each other."""
    if apart % LINE or apart <= width:
        return size
    return min(size, set_count(apart, size, ways) * ceil(width / LINE) * ways * LINE)
