"""The time of the calls of a register tile: multiply-adds, partial tiles, operands in place in the first level."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Literal

from microkernels.dot import DotProduct
from microkernels.dtypes import DType
from poly.machine.description import LINE, PAGE
from poly.machine.measured import between
from poly.model.choice import TOO_MANY_ROWS, shape_penalty
from poly.model.core import LATENCY, PER_CYCLE, POINTERS, Target, set_count
from poly.model.traffic import crowding

SUMS = 1.35 * LATENCY * PER_CYCLE
"""Accumulators that saturate the multiply-add units: tiles with 10 of them reach 92 % of the peak, with 12 99 %."""

LOADS = 0.04
"""The time of a load in a step, which a quiet core hides: a busy one issues half as many instructions.

It is more than the differences between measurements of tiles that all reach the peak.
"""

ENTRY = 2.5
"""The overhead of a call of a register tile, in multiply-adds per vector of the tile."""

SHORT = 96
"""The most steps of a short reduction (SHORT_DEPTH of microkernels/c/gemm.h)."""

STORE, TURN = 2.0, 12.0
"""Multiply-adds in the time to add a result to an element alone, and to turn a vector of results in registers (four
shuffles for sixteen lanes, one a cycle) and to add it to its elements by way of the stack (two stores, one a cycle)."""

Stores = Literal["vectors", "turned", "alone"]
"""How results reach memory: by vectors, or where they lie apart along the columns, by vectors of rows or alone."""

KNOWN = 1024
"""The widths that are kept: a grid's points cut the same loops alike."""

Edges = tuple[tuple[float, int], ...]
"""The number of tiles of each width."""


@dataclass(frozen=True)
class Pitches:
    """Bytes from row to row of the left operand and the output, and from step to step of the right operand.

    0 for packed operands. `uneven` tells that rows of the left operand in place are not all as far apart, so that a
    tile has a pointer to each. `left_steps` are the bytes from step to step of the left operand.
    """

    left: int
    right: int
    output: int
    uneven: bool = False
    left_steps: int = 0


@dataclass(frozen=True)
class TileCalls:
    """All calls that compute `m` rows by `n` columns of sums over `steps`, `others` times.

    `rows` and `columns` are the extents of the nested tiles, outermost first; a call takes `steps_a_call` steps. Where
    `dot` multiplies and adds words, steps are words.
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
    shared: tuple[float, ...] = (1.0,)
    starts: float = 0.0
    operations: int = 1
    """The vector operations of a step; a multiply-add is one."""
    stores: Stores = "vectors"
    dot: DotProduct | None = None

    @property
    def instances(self) -> float:
        return self.m * self.n * self.steps * self.others

    def time(self, target: Target) -> float:
        """The time on one core, in vector multiply-adds."""
        lanes = target.isa.lanes(self.dtype)
        widths = edges(ceil(self.n / lanes), tuple([ceil(cut / lanes) for cut in self.columns]))
        return (
            self.others
            * sum(
                many
                * times
                * (
                    self._sums(target, rows, vectors)
                    + self._right_place(target, vectors)
                    + self._left_place(target, rows)
                    + self._branches(target, rows)
                )
                for many, rows in edges(ceil(self.m), self.rows)
                for times, vectors in widths
            )
            + self._conflicts(target, lanes)
            + self._stored(lanes)
        )

    def _sums(self, target: Target, rows: int, vectors: int) -> float:
        """The time of one tile's calls: measured, scaled from the nearest measured tile, or by a formula."""
        calls, size = ceil(self.steps / self.steps_a_call), rows * vectors
        known, slower = target.tiles.get(vectors), target.product(self.dtype, self.dot) - 1
        if not known:
            steps = self.steps * (1 + slower + shape_penalty(rows, vectors))
            return steps * max(size * self.operations, SUMS, rows + vectors) + calls * ENTRY * size
        near = min(known, key=lambda r: abs(r - rows))
        tile, alike = known[near], size / (near * vectors)
        step = max(tile.step * alike, size * self.operations + LOADS * (rows + vectors))
        step *= 1 + TOO_MANY_ROWS * (self.pitches.uneven and rows > POINTERS)
        return self.steps * (step + slower * size) + calls * tile.call * alike

    def _branches(self, target: Target, rows: int) -> float:
        """The time to turn to one tile's calls, and back from them, where it has fewer rows than those before it.

        Both branches are mispredicted.
        """
        return 2 * target.mispredicted * ceil(self.steps / self.steps_a_call) * (rows < self.rows[-1] < self.m)

    def _right_place(self, target: Target, vectors: int) -> float:
        """The time of one tile's lines of the right operand in place.

        Measured rows begin behind a line, so that each of their vectors has a line of its own; of whole lines apart,
        short vectors share lines.
        """
        pitch = self.pitches.right
        if not pitch:
            return 0.0
        whole = ceil(vectors * target.isa.vector_bytes / LINE)
        lines = vectors if pitch % LINE else min(vectors, whole)
        return self.steps * lines * self._place(target, line_classes(pitch))

    def _left_place(self, target: Target, rows: int) -> float:
        """The time of one tile's lines of the left operand in place, if rows are neighbours and steps share sets.

        Elements do not cross lines, so that they cost only what sets in common do.
        """
        apart, pitch = self.pitches.left, self.pitches.left_steps
        if not 0 < apart < LINE or pitch < LINE:
            return 0.0
        shared = self._place(target, line_classes(pitch)) - self._place(target, PAGE // LINE)
        return self.steps * ceil(rows * apart / LINE) * max(0.0, shared)

    def _place(self, target: Target, classes: int) -> float:
        """The time of a line in place, between the measured classes of a page's lines."""
        rows: dict[float, dict[float, float]] = {}
        for one in target.costs.places:
            rows.setdefault(one.steps, {})[one.classes] = one.cost
        return between(self.steps_a_call, {steps: between(classes, costs) for steps, costs in rows.items()})

    def _stored(self, lanes: int) -> float:
        """The time to put results where they belong that are no vectors in memory."""
        if self.stores == "vectors":
            return 0.0
        by_rows = TURN / min(self.rows[-1], ceil(self.m), lanes)
        return self.instances / self.steps_a_call * (STORE if self.stores == "alone" else min(STORE, by_rows))

    def _conflicts(self, target: Target, lanes: int) -> float:
        """The time lost to conflict misses, if more lines map to a set of L1 than it has ways.

        A line of the left operand, read in place for many rows, is then evicted before the next step of the reduction
        reads on in it; a line of the output before it is written.
        """
        rows, columns, caches = min(self.rows[-1], ceil(self.m)), self.columns[-1], target.caches
        lost = crowding(self.pitches.left, rows, caches) * self.instances / self.n * ceil(self.n / columns)
        lost += crowding(self.pitches.output, rows, caches) * self.instances / self.steps_a_call / lanes
        return lost * target.costs.crowded


def stores(along: int, down: int) -> Stores:
    """How results reach memory that are so many elements apart along the columns and down the rows of a tile."""
    if along <= 1:
        return "vectors"
    return "turned" if down == 1 else "alone"


def line_classes(pitch: int) -> int:
    """The classes of a page's lines in which rows begin that are `pitch` bytes apart."""
    return PAGE // LINE if pitch % LINE else min(PAGE // LINE, set_count(pitch, PAGE, 1))


@lru_cache(KNOWN)
def edges(whole: int, cuts: tuple[int, ...]) -> Edges:
    """The widths of the pieces that nested cuts make of a loop, with the number of each."""
    if not cuts:
        return ((1, whole),) if whole else ()
    many, rest = divmod(whole, cuts[0])
    inner = ((many * n, width) for n, width in edges(cuts[0], cuts[1:]) if many)
    return (*inner, *edges(rest, cuts[1:]))
