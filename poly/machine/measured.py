"""What is measured of a machine, as values: peaks, bandwidths, register tiles, starts of threads."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import Any

from microkernels.cached import cached_property

USUAL_ROWS = 8
"""The rows of a matrix that loops read at once where that was not measured."""


@dataclass(frozen=True)
class Peak:
    """GFLOP/s of fused multiply-adds on `threads` cores together."""

    dtype: str
    threads: int
    gflops: float


@dataclass(frozen=True)
class Bandwidth:
    """GB/s at a level (`L1`, `L2`, `L3`, `memory`) on `threads` cores together: reads, and the triad `a = b + s*c`.

    `held` are the bytes of a last level that each of these cores keeps; 0 if it keeps all of its share.
    """

    level: str
    threads: int
    read: float
    triad: float
    held: int = 0


@dataclass(frozen=True)
class TileSpeed:
    """A register tile of `rows` x `vectors`: the time of a step and the overhead of a call, in multiply-adds."""

    rows: int
    vectors: int
    step: float
    call: float


@dataclass(frozen=True)
class LineCost:
    """The time of a cache line of an operand from a level of memory (`L2`, `L3`, `memory`), in multiply-adds.

    `operand` is `left` or `right`, in place; `right apart` for a whole run of lines of a row, if rows are pages apart;
    `left panels` or `right panels`; `output`, of calls whose tiles come one below the other, `output along`, one beside
    the other, both also `short`, of calls of few steps; or `copy` and `turned copy`, for packing a line whose lanes, or
    whose steps, are contiguous. `rows` are those of the tile that was called (0: any), which tell how much a right
    operand's line is used for.
    """

    operand: str
    level: str
    cost: float
    rows: int = 0


COPIES = ("copy", "turned copy")
"""The operands that are copies."""


@dataclass(frozen=True)
class PlaceCost:
    """The time of a vector of the right operand in place, in calls of `steps` steps.

    The operand's rows begin in `classes` of a page's 64 lines, as do the output's, and 16 bytes behind a line.
    """

    steps: int
    classes: int
    cost: float


@dataclass(frozen=True)
class ProductCost:
    """The time of a multiply-add of integers, or by the instruction `name` of a microkernel, in those of floats."""

    name: str
    cost: float


@dataclass(frozen=True)
class TileCosts:
    """What calls of register tiles take, in vector multiply-adds.

    `crowded` is the time of a line of the left operand or the output that is evicted between two steps, if twice as
    many rows share a set as it has ways; `missed` is that of a page that the first-level TLB no longer holds, `walked`
    of one that the second does not hold either; `mispredicted` is that of a mispredicted branch, None where it was not
    measured. `disturbed` is the part of the rounds that were done again, `spread` the median over all jobs of the time
    between the quartiles, relative to the least.
    """

    speeds: tuple[TileSpeed, ...]
    lines: tuple[LineCost, ...]
    places: tuple[PlaceCost, ...]
    crowded: float
    missed: float
    walked: float
    disturbed: float = 0.0
    spread: float = 0.0
    products: tuple[ProductCost, ...] = ()
    mispredicted: float | None = None

    def line(self, operand: str, level: str, rows: int = 1) -> float:
        """The time of a line of an operand beside the arithmetic of a tile of so many rows."""
        return between(rows, self._lines[operand, level])

    @cached_property
    def _lines(self) -> dict[tuple[str, str], dict[float, float]]:
        """The times of lines, by the rows of the tile for which they were measured.

        Where a tall tile's left panels were not measured, a line of them is taken to cost as much as of its right ones.
        """
        found: dict[tuple[str, str], dict[float, float]] = {}
        for one in self.lines:
            found.setdefault((one.operand, one.level), {})[one.rows] = one.cost
        for level in {level for _, level in found}:
            left, right = (found.get((f"{side} panels", level), {}) for side in ("left", "right"))
            left.update((rows, cost) for rows, cost in right.items() if left and rows > max(left))
        return {**{(operand, "L3"): cost for (operand, level), cost in found.items() if level == "memory"}, **found}


def between(value: float, known: Mapping[float, float]) -> float:
    """What lies at a value between known ones, linear in its logarithm; beyond them, what lies at the nearest."""
    values = sorted(known)
    at = bisect_left(values, value)
    above = values[min(at, len(values) - 1)]
    if at in (0, len(values)) or above == value:
        return known[above]
    below = values[at - 1]
    return known[below] + log(value / below) / log(above / below) * (known[above] - known[below])


@dataclass(frozen=True)
class ThreadStarts:
    """Seconds to start all threads and to wait for them: of threads that are awake, and of threads that slept."""

    awake: float
    asleep: float


@dataclass(frozen=True)
class Measured:
    """The calibration of a machine for an instruction set: rates of one thread and of all allowed cores, and costs."""

    peaks: tuple[Peak, ...]
    bandwidths: tuple[Bandwidth, ...]
    tiles: TileCosts | None = None
    starts: ThreadStarts | None = None
    ahead: int = 0
    """The bytes by which loops that read what lies in memory fetch it ahead; 0 where that gains nothing."""
    rows: int = USUAL_ROWS
    """The rows of a matrix in memory that loops read at once."""

    def peak(self, dtype: str, threads: int = 1) -> float:
        """GFLOP/s; for a thread count that was not measured, the rate of one thread times the count."""
        rates = {p.threads: p.gflops for p in self.peaks if p.dtype == dtype}
        return rates.get(threads, rates[1] * threads)

    def bandwidth(self, level: str, threads: int = 1) -> Bandwidth:
        """The rates at a level; for a thread count that was not measured, those of the next lower count."""
        return max((b for b in self.bandwidths if b.level == level and b.threads <= threads), key=lambda b: b.threads)

    def room(self, level: str, share: int, threads: int = 1) -> int:
        """The bytes of a level that a core keeps, of the `share` that it has by the level's size."""
        return min(share, self.bandwidth(level, threads).held or share)


def parsed(text: str | None) -> Measured | None:
    """The calibration in a stored text; None if it is missing or not valid."""
    try:
        data = json.loads(text or "")
        peaks = tuple(Peak(str(p["dtype"]), int(p["threads"]), float(p["gflops"])) for p in data["peaks"])
        bandwidths = tuple(
            Bandwidth(str(b["level"]), int(b["threads"]), float(b["read"]), float(b["triad"]), int(b.get("held", 0)))
            for b in data["bandwidths"]
        )
        starts = ThreadStarts(**data["starts"]) if data.get("starts") else None
        made = Measured(
            peaks,
            bandwidths,
            _tiles(data.get("tiles")),
            starts,
            int(data.get("ahead", 0)),
            int(data.get("rows", USUAL_ROWS)),
        )
    except (ValueError, KeyError, TypeError):
        return None
    return made if peaks and bandwidths else None


def _tiles(data: Mapping[str, Any] | None) -> TileCosts | None:
    if data is None:
        return None
    speeds = tuple(TileSpeed(**one) for one in data["speeds"])
    lines = tuple(LineCost(**one) for one in data["lines"])
    places = tuple(PlaceCost(**one) for one in data["places"])
    numbers = {name: float(data[name]) for name in ("crowded", "missed", "walked", "disturbed", "spread")}
    products = tuple(ProductCost(**one) for one in data.get("products", ()))
    branch = data.get("mispredicted")
    mispredicted = None if branch is None else float(branch)
    return TileCosts(speeds, lines, places, **numbers, products=products, mispredicted=mispredicted)
