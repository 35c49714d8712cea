"""A contraction's loops over tiles, as a schedule orders them, and what one iteration of each spans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod

from microkernels.dtypes import DType
from microkernels.isa import ISA
from poly.grouping import Side
from poly.model.choice import Choice
from poly.model.footprint import Operand, spread
from poly.roles import Axis, Roles

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
        r = self.roles
        return (*r.batch, *r.overlaps, *r.rows, *r.columns, *r.reduce)

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
        return prod(ceil(level.trips) for level in self.levels[: at + 1])


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
    w.each("batch", (*r.batch, *r.overlaps))
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
