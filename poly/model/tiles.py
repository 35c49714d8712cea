"""The time of the calls of a register tile: multiply-adds, including partial tiles, and conflict misses in L1."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from microkernels.dtypes import DType
from poly.model.choice import shape_penalty
from poly.model.core import CONFLICT, LATENCY, PER_CYCLE, POINTERS, Target
from poly.model.traffic import crowding

SUMS = 1.35 * LATENCY * PER_CYCLE
"""Accumulators that saturate the multiply-add units: tiles with 10 of them reach 92 % of the peak, with 12 99 %."""

ENTRY = 2.5
"""The overhead of a call of a register tile, in multiply-adds per vector of the tile."""

SHORT = 96
"""The most steps of a short reduction (SHORT_DEPTH of microkernels/c/gemm.h)."""

Edges = tuple[tuple[float, int], ...]
"""The number of tiles of each width."""


@dataclass(frozen=True)
class Pitches:
    """Bytes from row to row of the left operand and the output, and from step to step of the right operand.

    0 for packed operands.
    """

    left: int
    right: int
    output: int


@dataclass(frozen=True)
class TileCalls:
    """All calls that compute `m` rows by `n` columns of sums over `steps`, `others` times.

    `rows` and `columns` are the extents of the nested tiles, outermost first; a call takes `steps_a_call` steps.
    """

    dtype: DType
    m: float
    n: float
    steps: float
    others: float
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    steps_a_call: float
    pitches: Pitches
    panels: bool
    """Whether the left operand is read from panels."""
    shared: float = 1.0
    starts: float = 0.0

    @property
    def instances(self) -> float:
        return self.m * self.n * self.steps * self.others

    def time(self, target: Target) -> float:
        """The time on one core, in vector multiply-adds."""
        lanes = target.isa.lanes(self.dtype)
        widths = edges(ceil(self.n / lanes), [ceil(cut / lanes) for cut in self.columns])
        return self.others * sum(
            many * times * self._sums(target, rows, vectors)
            for many, rows in edges(ceil(self.m), self.rows)
            for times, vectors in widths
        ) + self._conflicts(target, lanes)

    def _sums(self, target: Target, rows: int, vectors: int) -> float:
        """The time of one tile's calls: measured, scaled from the nearest measured tile, or by a formula.

        The tiles were measured with the left operand in place; a panel needs one pointer for any number of rows.
        """
        calls = ceil(self.steps / self.steps_a_call)
        size, steps = rows * vectors, self.steps * (1 + shape_penalty(rows, vectors))
        known = target.tiles.get((self.dtype.name, vectors))
        if not known:
            return steps * max(size, SUMS, rows + vectors) + calls * ENTRY * size
        near = min(known, key=lambda r: abs(r - rows))
        tile, alike = known[near], size / (near * vectors)
        step = size if self.panels and rows > POINTERS else tile.step * alike
        return steps * step + calls * tile.call * alike

    def _conflicts(self, target: Target, lanes: int) -> float:
        """The time lost to conflict misses, if more lines map to a set of L1 than it has ways.

        A line of the left operand, read in place for many rows, is then evicted before the next step of the reduction
        reads on in it; a line of the output before it is written; and a line of the right operand, prefetched in a
        short reduction, before the next tile reads it.
        """
        rows, columns, l1 = min(self.rows[-1], ceil(self.m)), self.columns[-1], target.caches.l1
        lost = crowding(self.pitches.left, rows, l1) * self.instances / self.n * ceil(self.n / columns)
        lost += crowding(self.pitches.output, rows, l1) * self.instances / self.steps_a_call / lanes
        if self.steps_a_call <= SHORT:
            crowd = min(1.0, crowding(self.pitches.right, ceil(self.steps_a_call), l1))
            lost += crowd * self.instances / self.m * ceil(self.m / rows) / lanes
        return lost * CONFLICT


def edges(whole: int, cuts: tuple[int, ...] | list[int]) -> Edges:
    """The widths of the pieces that nested cuts make of a loop, with the number of each."""
    if not cuts:
        return ((1, whole),) if whole else ()
    many, rest = divmod(whole, cuts[0])
    inner = ((many * n, width) for n, width in edges(cuts[0], cuts[1:]) if many)
    return (*inner, *edges(rest, cuts[1:]))
