"""The seconds of a contraction under a choice of structure and tiles: traffic of each level against multiply-adds.

    for each loop over tiles, outermost first: what does one iteration touch of each operand (a footprint)?
    for each cache: the outermost loop whose iterations fit in it; what lies outside of it is fetched again
    seconds: the multiply-adds of the register tiles, the bytes of each level over its bandwidth, the copies, the TLB

The working sets are those of PolyDL (Tavarageri et al., ACM TACO 18(1), 2021, section 4), in closed form for boxes; the
seconds follow the execution-cache-memory model (Stengel et al., ICS 2015), with the levels overlapping in part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil, prod
from operator import mul

from poly.cost import Cost, Part
from poly.grouping import Side
from poly.model.choice import POINTERS, SUMS, Caches, Choice, call_steps, shape_penalty
from poly.model.footprint import Operand
from poly.model.rates import Rates
from poly.model.traffic import FULL, SHORT, Traffic, crowding
from poly.model.walk import SIDES, Walk, Work, walk

OVERLAP = 3.0
"""How resources overlap: the exponent of the norm over their seconds (1: in turn, infinite: all at once)."""

LATE = 0.5
"""The part of late lines' time that overlaps with nothing."""

ENTRY = 2.5
"""What a call of a register tile takes beside its steps, in multiply-adds for each vector of the tile."""

COPIED, TURNED = 1.0, 1.5
"""What copying takes beside its bytes, in vector multiply-adds: a line along the panel, an element across it."""

MISS, WALK = 4.0, 10.0
"""What a miss in the first-level TLB costs, in vector multiply-adds, and one in the second; half of it is hidden."""

CONFLICT = 1.3
"""What a read takes longer, in vector multiply-adds, where twice as many rows share a place as it has ways."""


def _shared(cost: Cost, share: float) -> Cost:
    """The cost of the longest thread, which has a share of the work."""
    parts = (replace(part, seconds=part.seconds * share) for part in cost.parts)
    return Cost(cost.seconds * share, tuple(parts))


class Model:
    """The model for one contraction on one machine: `predict` gives the cost of a choice."""

    def __init__(self, work: Work, caches: Caches, rates: Rates, threads: int) -> None:
        self._work, self._caches, self._rates, self._threads = work, caches, rates, threads
        self._sides: dict[Side, Operand] = {side: work.operand(side) for side in SIDES}
        self._lanes = work.isa.lanes(work.dtype)
        self._tiles = {(t.rows, t.vectors): t for name, t in rates.tiles if name == work.dtype.name}
        self._unit = 2 * self._lanes / rates.peak(work.dtype)
        """Seconds of a vector multiply-add at the machine's peak."""

    def predict(self, choice: Choice) -> Cost:
        """The seconds of one call whose arrays are where the call before has left them, and what they are made of."""
        w = walk(self._work, choice)
        traffic = Traffic(self._sides, choice, w, call_steps(self._work.roles.reduce, choice))
        caches = {"L2": self._caches.l1, "L3": self._caches.l2, "memory": self._caches.l3}
        fetched = {level: traffic.fetched(size) if size else {} for level, size in caches.items()}
        parts = [
            Part("multiply-add", (self._compute(choice) + self._conflicts(choice)) * self._unit),
            *self._levels(fetched),
            Part("TLB", sum(map(mul, traffic.misses(), (MISS, WALK))) * self._unit),
        ]
        together = sum(part.seconds**OVERLAP for part in parts) ** (1 / OVERLAP)
        alone = [Part("late lines", self._late(traffic, fetched)), Part("copies", self._copies(choice, w))]
        cost = Cost(together + sum(part.seconds for part in alone), (*parts, *alone))
        share = self._share(choice)
        return cost if share == 1 else _shared(cost, share)

    def _share(self, choice: Choice) -> float:
        """The longest thread's part of the work."""
        w, c = self._work, choice
        trips = {
            None: 1,
            "batch": w.roles.batch[0].guess if w.roles.batch else 1,
            "columns": ceil(w.n / (c.columns_cut or c.kernel.columns)),
            "rows": ceil(w.m / (c.rows_cut or c.kernel.rows)),
        }[c.parallel]
        return ceil(trips / self._threads) / trips

    def _levels(self, fetched: Mapping[str, Mapping[Side, float]]) -> list[Part]:
        """Seconds and bytes from L2, L3 and memory."""
        rates = {"L2": self._rates.l2, "L3": self._rates.l3, "memory": self._rates.memory}
        moved = {level: float(sum(sides.values())) for level, sides in fetched.items()}
        return [Part(level, bytes / rates[level], bytes) for level, bytes in moved.items()]

    def _late(self, traffic: Traffic, fetched: Mapping[str, Mapping[Side, float]]) -> float:
        """Seconds that lines take which nothing fetches ahead: from memory, and results from L3 too.

        A tile waits for its results before its first step; other lines from L3 arrive while it works.
        """
        memory = sum(bytes * traffic.lateness(side) for side, bytes in fetched["memory"].items())
        results = fetched["L3"].get("output", 0.0) * traffic.lateness("output")
        return LATE * (memory / self._rates.memory + results / self._rates.l3)

    def _compute(self, choice: Choice) -> float:
        """The time of the register tiles in vector multiply-adds, those at the edges counted as they are."""
        w = self._work
        steps = prod(axis.guess for axis in w.roles.reduce)
        calls = ceil(steps / call_steps(w.roles.reduce, choice))
        outer = (*w.extra_rows, *w.extra_columns, *w.roles.batch, *w.roles.overlaps)
        others = prod(axis.guess for axis in outer)
        block = min(w.n, choice.columns_cut or w.n)
        whole = ceil(block / self._lanes)
        total = 0.0
        for many, rows in _tiles(w.m, choice.kernel.rows):
            for times, vectors in _tiles(whole, choice.kernel.vectors):
                total += many * times * self._tile(choice, rows, vectors, steps, calls)
        return total * others * w.n / block

    def _tile(self, choice: Choice, rows: int, vectors: int, steps: float, calls: int) -> float:
        """The time of one tile's calls: as measured, of a tile like it, or by a formula.

        The tiles were measured on a left operand in place; rows in a panel need one pointer, however many they are.
        """
        size, steps = rows * vectors, steps * (1 + shape_penalty(rows, vectors))
        near = min((r for r, v in self._tiles if v == vectors), key=lambda r: abs(r - rows), default=None)
        if near is None:
            return steps * max(size, SUMS, rows + vectors) + calls * ENTRY * size
        known = self._tiles[near, vectors]
        step = size if choice.pack_left and rows > POINTERS else known.step * size / (near * vectors)
        return steps * step + calls * known.call * size / (near * vectors)

    def _conflicts(self, choice: Choice) -> float:
        """The time lost where lines share places in L1, and are more than it has ways.

        A line of the left operand, read in place by many rows, is then gone before the next step of the reduction reads
        on in it; one of the output before it is written; one of the right operand, fetched ahead in a short reduction,
        before the next tile reads it.
        """
        w, kernel, steps = self._work, choice.kernel, call_steps(self._work.roles.reduce, choice)
        if not w.rows:
            return 0.0
        rows, row, step = min(kernel.rows, w.m), w.rows[-1].iterator, w.roles.reduce[-1].iterator
        work = prod(axis.guess for axis in w.axes)
        lost = 0.0
        if not choice.pack_left:
            lost += self._crowding("left", row, rows) * work / w.n * ceil(w.n / kernel.columns)
        if not choice.pack_right and steps <= SHORT:
            lost += min(1.0, self._crowding("right", step, steps)) * work / w.m * ceil(w.m / rows) / self._lanes
        reduced = prod(axis.guess for axis in w.roles.reduce)
        written = work / reduced / self._lanes
        lost += self._crowding("output", row, rows) * written * reduced / steps
        return lost * CONFLICT

    def _crowding(self, side: Side, loop: str, count: int) -> float:
        """How many of so many lines along a loop share a place of L1 with too many others."""
        return crowding(self._sides[side].stride(loop) * self._work.dtype.size, count, self._caches.l1)

    def _copies(self, choice: Choice, w: Walk) -> float:
        """Seconds that copies of the operands take: the work, the lines read, the panels written."""
        seconds = 0.0
        left, right = (self._sides["left"], w.left), (self._sides["right"], w.right)
        for operand, at in ((left,) if choice.pack_left else ()) + ((right,) if choice.pack_right else ()):
            touched = operand.touched(w.levels[at].counts)
            written = touched.elements * operand.size
            across = any(operand.stride(axis.iterator) == 1 for axis in self._work.roles.reduce)
            work = touched.elements * TURNED if across else touched.elements / self._lanes * COPIED
            rate = self._rates.l2 if written <= self._caches.l2 / 2 else self._rates.l3
            together = any(operand.stride(axis.iterator) == 1 for axis in self._work.extra_columns)
            read = written if together else touched.lines  # panels beside each other are copied together
            seconds += w.runs(at) * (work * self._unit + read / self._source() + written / rate)
        return seconds

    def _source(self) -> float:
        """Bytes a second from where the arrays lie between calls."""
        whole = sum(operand.touched(self._work.whole).elements * operand.size for operand in self._sides.values())
        if whole <= self._caches.l2 * FULL:
            return self._rates.l2
        return self._rates.l3 if whole <= self._caches.l3 * FULL else self._rates.memory


def _tiles(whole: int, tile: int) -> list[tuple[int, int]]:
    """How many tiles there are of which height: the whole ones, and the rest."""
    many, rest = divmod(whole, tile)
    return [(count, height) for count, height in ((many, tile), (1, rest)) if count and height]
