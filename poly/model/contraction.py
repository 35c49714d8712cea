"""The seconds of a contraction under a choice of structure and tiles: traffic of each level against multiply-adds.

    for each loop over tiles, outermost first: what does one iteration touch of each operand (a footprint)?
    for each cache: the outermost loop whose iterations fit in it; what lies outside of it is fetched again
    seconds: the multiply-adds of the register tiles, the bytes of each level over its bandwidth, the copies, the TLB

The working sets are those of PolyDL (Tavarageri et al., ACM TACO 18(1), 2021, section 4), in closed form for boxes; the
seconds follow the execution-cache-memory model (Stengel et al., ICS 2015), with the levels overlapping in part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, gcd, prod

from microkernels.dtypes import DType
from microkernels.isa import ISA
from poly.cost import Cost, Part
from poly.grouping import Side
from poly.model.choice import LATENCY, LINE, PAGE, PER_CYCLE, POINTERS, Caches, Choice
from poly.model.footprint import Operand, spread
from poly.model.rates import Rates
from poly.roles import Axis, Roles

FULL = 0.75
"""The part of a cache that a working set may fill before lines are lost: replacement is not perfect."""

OVERLAP = 2.0
"""How resources overlap: the exponent of the norm over their seconds (1: in turn, infinite: all at once)."""

ENTRY = 2.5
"""What a call of a register tile takes beside its steps, in multiply-adds for each vector of the tile."""

COPIED, TURNED = 1.0, 1.5
"""What copying takes beside its bytes, in vector multiply-adds: a line along the panel, an element across it."""

MISS, ENTRIES = 4.0, 64
"""Of the first-level TLB: what a miss costs, in vector multiply-adds (half of it is hidden), and its entries."""

WAYS = 8
"""Ways of the first two levels: lines whose addresses differ by a multiple of size / WAYS share so many places."""

CONFLICT = 2.0
"""What a read takes longer, in vector multiply-adds, whose line was lost to the tile's other rows meanwhile."""

SCATTERED = 512
"""Bytes of a run, together with a line, that take twice as long as their share of the bandwidth from far caches."""


SIDES: tuple[Side, ...] = ("output", "left", "right")


@dataclass(frozen=True)
class Work:
    """A contraction as its schedule's loops see it.

    The axes that are flattened to the rows' and to the columns' loop, and those of both roles that stay apart.
    """

    roles: Roles
    rows: tuple[Axis, ...]
    extra_rows: tuple[Axis, ...]
    columns: tuple[Axis, ...]
    extra_columns: tuple[Axis, ...]
    isa: ISA
    dtype: DType

    @property
    def axes(self) -> tuple[Axis, ...]:
        return (*self.roles.batch, *self.roles.rows, *self.roles.columns, *self.roles.reduce)

    @property
    def m(self) -> int:
        return prod(axis.guess for axis in self.rows)

    @property
    def n(self) -> int:
        return prod(axis.guess for axis in self.columns)

    @property
    def whole(self) -> dict[str, int]:
        """All iterations."""
        return {axis.iterator: axis.guess for axis in self.axes}

    def operand(self, side: Side) -> Operand:
        return Operand.of(self.axes, side, self.dtype.size)


@dataclass(frozen=True)
class Level:
    """A loop over tiles: how often it runs, and what one of its iterations spans of the nest's own loops."""

    role: str
    trips: float
    counts: Mapping[str, int]


@dataclass(frozen=True)
class Walk:
    """The loops over tiles, outermost first; the first entry is the whole nest.

    `right` and `left` are the entries whose iterations copy the operand, where it is copied.
    """

    levels: tuple[Level, ...]
    right: int
    left: int

    def runs(self, at: int) -> float:
        """How often an entry's body runs."""
        return prod(level.trips for level in self.levels[: at + 1])


class _Walker:
    """Makes a walk: enters loops one after the other."""

    def __init__(self, work: Work) -> None:
        self.counts = {axis.iterator: axis.guess for axis in work.axes}
        self.levels = [Level("all", 1.0, dict(self.counts))]

    @property
    def here(self) -> int:
        return len(self.levels) - 1

    def enter(self, role: str, trips: float, changed: Mapping[str, int]) -> None:
        if trips > 1:
            self.counts.update(changed)
            self.levels.append(Level(role, trips, dict(self.counts)))

    def each(self, role: str, axes: Sequence[Axis]) -> None:
        """A loop over every value of each axis."""
        for axis in axes:
            self.enter(role, axis.guess, {axis.iterator: 1})

    def blocks(self, role: str, axes: Sequence[Axis], whole: int, cut: int | None) -> int:
        """A loop over blocks of so many; returns what one block holds."""
        if cut is None or cut >= whole:
            return whole
        self.enter(role, whole / cut, spread(axes, cut))
        return cut


def walk(work: Work, choice: Choice) -> Walk:
    """The loops over tiles as `poly.plan` orders them."""
    w, c = _Walker(work), choice
    r, m, n = work.roles, work.m, work.n
    w.each("batch", r.batch)
    if c.parallel == "rows":
        m = w.blocks("rows", work.rows, m, c.rows_cut)
    n = w.blocks("columns", work.columns, n, c.columns_cut)
    outer = r.reduce[: len(r.reduce) - c.inner]
    if c.reduce_cut is not None:
        w.each("reduce", outer[:-1])
        w.blocks("reduce", outer[-1:], outer[-1].guess, c.reduce_cut)
    else:
        w.each("reduce", outer)
    left = w.here
    if c.rows_inside:
        w.each("columns", work.extra_columns)
    right = w.here
    if c.parallel != "rows" and c.rows_cut is not None and c.rows_cut < m:
        m = w.blocks("rows", work.rows, m, c.rows_cut)
        left = w.here
    width, height = min(n, c.kernel.columns), min(m, c.kernel.rows)
    if not c.rows_inside:
        w.each("rows", work.extra_rows)
        w.enter("rows", m / height, spread(work.rows, height))
        w.each("columns", work.extra_columns)
    w.enter("columns", n / width, spread(work.columns, width))
    if c.panel_by_panel:
        right = w.here
    if c.rows_inside:
        w.each("rows", work.extra_rows)
        w.enter("rows", m / height, spread(work.rows, height))
    return Walk(tuple(w.levels), right, left)


class Model:
    """The model for one contraction on one machine: `predict` gives the cost of a choice."""

    def __init__(self, work: Work, caches: Caches, rates: Rates, threads: int) -> None:
        self.work, self.caches, self.rates, self.threads = work, caches, rates, threads
        self.sides: dict[Side, Operand] = {side: work.operand(side) for side in SIDES}
        self.lanes = work.isa.lanes(work.dtype)
        self.tiles = {(t.rows, t.vectors): t for name, t in rates.tiles if name == work.dtype.name}
        self.unit = 2 * self.lanes / rates.peak(work.dtype)
        """Seconds of a vector multiply-add at the machine's peak."""

    def predict(self, choice: Choice) -> Cost:
        """The seconds of one call whose arrays are where the call before has left them, and what they are made of."""
        w = walk(self.work, choice)
        share = self._share(choice)
        compute, copies = self._compute(choice) + self._conflicts(choice), self._copies(choice, w)
        parts = [Part("multiply-add", compute), *self._traffic(choice, w), Part("TLB", self._tlb(choice, w))]
        together = sum(part.seconds**OVERLAP for part in parts) ** (1 / OVERLAP)
        shared = tuple(replace(part, seconds=part.seconds * share) for part in (*parts, Part("copies", copies)))
        return Cost((together + copies) * share, shared)

    def _share(self, choice: Choice) -> float:
        """The longest thread's part of the work."""
        w, c = self.work, choice
        trips = {
            None: 1,
            "batch": w.roles.batch[0].guess if w.roles.batch else 1,
            "columns": ceil(w.n / (c.columns_cut or c.kernel.columns)),
            "rows": ceil(w.m / (c.rows_cut or c.kernel.rows)),
        }[c.parallel]
        return ceil(trips / self.threads) / trips

    def _depth(self, choice: Choice) -> int:
        """Steps of the reduction in one call of the register tile."""
        axes = self.work.roles.reduce
        return prod(axis.guess for axis in axes[len(axes) - choice.inner :]) * (choice.reduce_cut or 1)

    def _compute(self, choice: Choice) -> float:
        """Seconds of the register tiles, those at the edges counted as they are."""
        w, rows, vectors = self.work, choice.kernel.rows, choice.kernel.vectors
        total = prod(axis.guess for axis in w.roles.reduce)
        calls = ceil(total / self._depth(choice))
        others = prod(axis.guess for axis in (*w.extra_rows, *w.extra_columns, *w.roles.batch))
        block = min(w.n, choice.columns_cut or w.n)
        whole = ceil(block / self.lanes)
        seconds = 0.0
        for many, height in _tiles(w.m, rows):
            for times, width in _tiles(whole, vectors):
                seconds += many * times * self._tile(choice, height, width, total, calls)
        return seconds * others * (w.n / block) * self.unit

    def _tile(self, choice: Choice, rows: int, vectors: int, steps: int, calls: int) -> float:
        """The time of one tile's calls, in vector multiply-adds: as measured, of a tile like it, or by a formula.

        The tiles were measured on a left operand in place; rows in a panel need one pointer, however many they are.
        """
        size = rows * vectors
        near = min((r for r, v in self.tiles if v == vectors), key=lambda r: abs(r - rows), default=None)
        if near is None:
            return steps * max(size, LATENCY * PER_CYCLE, rows + vectors) + calls * ENTRY * size
        known = self.tiles[near, vectors]
        step = size if choice.pack_left and rows > POINTERS else known.step * size / (near * vectors)
        return steps * step + calls * known.call * size / (near * vectors)

    def _conflicts(self, choice: Choice) -> float:
        """Seconds lost where the tile's rows share places in L1, and are more than it has ways.

        A line of the left operand, read in place, is then gone before the next step of the reduction reads on in it;
        one of the output before it is written.
        """
        w, kernel = self.work, choice.kernel
        lost = 0.0
        if not choice.pack_left and self._crowded("left", kernel.rows):
            lost += prod(axis.guess for axis in w.axes) / w.n * ceil(w.n / kernel.columns)
        if self._crowded("output", kernel.rows):
            calls = prod(axis.guess for axis in w.roles.reduce) / self._depth(choice)
            lost += prod(axis.guess for axis in (*w.roles.batch, *w.roles.rows, *w.roles.columns)) / self.lanes * calls
        return lost * CONFLICT * self.unit

    def _crowded(self, side: Side, rows: int) -> bool:
        """Whether more rows of a tile than there are ways begin at the same place of L1."""
        w = self.work
        apart = dict(self.sides[side].strides).get(w.rows[-1].iterator, 0) * w.dtype.size if w.rows else 0
        if not apart or apart % LINE:
            return False
        places = max(1, self.caches.l1 // (WAYS * LINE))
        return ceil(min(rows, w.m) / (places // gcd(apart // LINE, places))) > WAYS

    def _traffic(self, choice: Choice, w: Walk) -> list[Part]:
        """Seconds and bytes from L2, L3 and memory."""
        c, r = self.caches, self.rates
        parts = []
        for name, size, rate, far in (("L2", c.l1, r.l2, 0), ("L3", c.l2, r.l3, 1), ("memory", c.l3, r.memory, 1)):
            if size:
                moved = self._fetched(choice, w, size)
                slowed = sum(bytes * (1 + far * self._scatter(choice, w, side)) for side, bytes in moved.items())
                parts.append(Part(name, slowed / rate, sum(moved.values())))
        return parts

    def _scatter(self, choice: Choice, w: Walk, side: Side) -> float:
        """How much longer lines take that no prefetcher sees coming: short runs, pages apart."""
        operand, counts = self.sides[side], w.levels[-1].counts
        if _copied(choice, side) or operand.pitch(counts) * operand.size < PAGE:
            return 0.0
        return SCATTERED / (operand.run(counts) * operand.size + LINE)

    def _fetched(self, choice: Choice, w: Walk, size: int) -> dict[Side, float]:
        """Bytes of each operand that come into a cache of `size` bytes, and go out of it."""
        room = size * FULL
        held = [{side: self._held(choice, side, level.counts, size) for side in SIDES} for level in w.levels]
        last = len(w.levels) - 1
        fitting = next((i for i, sides in enumerate(held) if sum(sides.values()) <= room), last)
        moved: dict[Side, float] = {}
        for side in SIDES:
            at = fitting
            while at > 0 and self._stays(side, w, held, at, room):
                at -= 1
            copied = {"left": choice.pack_left and w.left, "right": choice.pack_right and w.right}.get(side, False)
            if (at == 0 and sum(held[0].values()) <= room) or (copied is not False and at <= copied):
                continue
            ways = 2 if side == "output" else 1
            moved[side] = self._touched(choice, side, w.levels[at].counts) * w.runs(at) * ways
        return moved

    def _stays(self, side: Side, w: Walk, held: Sequence[Mapping[Side, float]], at: int, room: float) -> bool:
        """Whether an operand's part stays while the loop of this entry runs, which doesn't move in it."""
        operand = self.sides[side]
        if operand.elements(w.levels[at - 1].counts) != operand.elements(w.levels[at].counts):
            return False
        others = sum(touched for other, touched in held[at].items() if other != side)
        return held[at][side] + 2 * others <= room

    def _touched(self, choice: Choice, side: Side, counts: Mapping[str, int]) -> float:
        """Bytes of an operand that so many iterations touch; a copy is dense."""
        operand = self.sides[side]
        return operand.elements(counts) * operand.size if _copied(choice, side) else operand.lines(counts)

    def _held(self, choice: Choice, side: Side, counts: Mapping[str, int], size: int) -> float:
        """Bytes of a cache that an operand's part takes: more where its lines share places and leave others empty."""
        touched = self._touched(choice, side, counts)
        if _copied(choice, side):
            return touched
        sets = max(1, size // (WAYS * LINE))
        operand = self.sides[side]
        apart = operand.pitch(counts) * operand.size
        if not apart or apart % LINE:
            return touched
        places = sets // gcd(apart // LINE, sets) * ceil(operand.run(counts) * operand.size / LINE)
        return touched / min(1.0, places / sets)

    def _tlb(self, choice: Choice, w: Walk) -> float:
        """Seconds of the misses in the first-level TLB: pages that a call of the register tile touches anew."""
        last = len(w.levels) - 1
        misses = 0.0
        for side, operand in self.sides.items():
            if _copied(choice, side):
                continue
            counts = w.levels[last].counts
            pages = operand.pages(counts)
            at = last
            while at > 0 and pages <= ENTRIES / 2 and operand.pages(w.levels[at - 1].counts) == pages:
                at -= 1
            misses += pages * w.runs(at) if pages > 1 else 0.0
        return misses * MISS * self.unit

    def _copies(self, choice: Choice, w: Walk) -> float:
        """Seconds that copies of the operands take."""
        seconds = 0.0
        for side, at in (("left", w.left), ("right", w.right)):
            if not _copied(choice, side):
                continue
            operand, counts = self.sides[side], w.levels[at].counts
            elements = operand.elements(counts)
            written = elements * operand.size
            across = any(
                operand.moves(a.iterator) and dict(operand.strides)[a.iterator] == 1 for a in self.work.roles.reduce
            )
            work = elements * TURNED if across else elements / self.lanes * COPIED
            rate = self.rates.l2 if written <= self.caches.l2 / 2 else self.rates.l3
            source = self._source()
            seconds += w.runs(at) * (work * self.unit + operand.lines(counts) / source + written / rate)
        return seconds

    def _source(self) -> float:
        """Bytes a second from where the arrays lie between calls."""
        whole = sum(operand.elements(self.work.whole) * operand.size for operand in self.sides.values())
        if whole <= self.caches.l2 * FULL:
            return self.rates.l2
        return self.rates.l3 if whole <= self.caches.l3 * FULL else self.rates.memory


def _tiles(whole: int, tile: int) -> list[tuple[int, int]]:
    """How many tiles there are of which height: the whole ones, and the rest."""
    many, rest = divmod(whole, tile)
    return [(count, height) for count, height in ((many, tile), (1, rest)) if count and height]


def _copied(choice: Choice, side: Side) -> bool:
    return choice.pack_left if side == "left" else side == "right" and choice.pack_right
