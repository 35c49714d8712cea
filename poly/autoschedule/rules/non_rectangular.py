"""Contractions over a non-rectangular domain: a kernel over the loops that form a box once all others are fixed.

    for p, q, f:                                            for p, s:
      for r, s:                                               for q_tile: for f_tile:
        if 0 <= p + r - 1 < P and 0 <= q + s - 1 < Q:   ->      microkernel over q, f, r, c
          for c:
            O[p, q, f] += I[p+r-1, q+s-1, c] * W[r, s, c, f]

The taps of a padded convolution that would multiply by zero are not in the domain, so they cost nothing. The kernel
takes all loops of the reduction that belong to the box: for one p, all q have the same r. A right operand that is not
contiguous along the columns, such as an image read at every second pixel, is packed. If the operand of all pixels, the
weights, exceeds the second-level cache, the loop over its tiles goes outside.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product, takewhile
from math import prod
from typing import Literal, get_args

from codegen.expr import Load
from microkernels.catalogue import gemm
from microkernels.dtypes import DType
from microkernels.kernel import LEVELS, OuterProduct
from poly.analysis.contraction import Contraction, overlapping, recognise
from poly.analysis.roles import ASSUMED
from poly.autoschedule.rules.form import Form
from poly.autoschedule.rules.isolation import MadeWith
from poly.autoschedule.spaces.grids import fitting, tile_knobs
from poly.autoschedule.spaces.space import Values
from poly.ir.instances import Instances, coordinates
from poly.ir.layout import step
from poly.ir.nest import Nest, Statement
from poly.lowering.calls import iterators_of
from poly.model import tile_shape
from poly.model.core import Target
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Order, Pack, Parallel, Split, Step, Tensorize

LEAST = 16
"""The least number of reduction steps in the box for which a kernel call pays off."""


@dataclass(frozen=True)
class InnerBox:
    """A contraction whose `row`, `column` and `reduce` iterators form a box for each value of the others.

    Of the others, `own` index the results and `taps` are summed over; `overlaps` reach the same results with different
    values, so they stay outside all loops. The taps in `within` belong to the box, too. The right operand must be
    `packed` if it is not contiguous along the columns.
    """

    nest: Nest
    statement: Statement
    contraction: Contraction
    row: str
    column: str
    reduce: str
    own: tuple[str, ...]
    taps: tuple[str, ...]
    overlaps: tuple[str, ...]
    within: tuple[str, ...]
    packed: bool

    @property
    def dtype(self) -> DType:
        return self.nest.array(self.statement.target.array).dtype

    @property
    def work(self) -> int:
        """An upper bound of the multiply-adds."""
        return prod(self.extent(iterator) for iterator in self.statement.iterators)

    def extent(self, iterator: str) -> int:
        """The number of values that an iterator takes in total; ASSUMED if it depends on a size."""
        return _extent(self.statement, iterator)

    @property
    def reduction(self) -> tuple[str, ...]:
        """The loops of the reduction in the box, in the statement's order."""
        return tuple(i for i in self.statement.iterators if i == self.reduce or i in self.within)

    def reused(self, tiled: str) -> int:
        """Bytes of the operand that moves along `tiled`, if it does not move along `own`: each value there reads it."""
        for access in (self.contraction.left, self.contraction.right):
            used = iterators_of(self.statement, access)
            if tiled in used and not used.intersection(self.own):
                return prod(map(self.extent, used)) * self.dtype.size
        return 0


Place = Literal["inside", "between", "outside", "under rows"]
"""The position of the column tile loop: inside the row tile loop, right around it, around all other loops, or inside
all of them with the row tile loop around them."""


@dataclass(frozen=True)
class RegisterTile:
    """The register tile, the position of the loop over its columns, and the iterator of the parallel loop, if any."""

    kernel: OuterProduct
    columns: Place = "inside"
    parallel: str | None = None


def inner_box(nest: Nest, statement: Statement) -> InnerBox | None:
    """The contraction with its box; None if it has none, or its right operand is not contiguous along the columns."""
    c = recognise(nest, statement)
    if c is None or statement.domain.is_empty():
        return None
    for inner in _candidates(nest, statement, c):
        others = [i for i in (*c.batch, *c.rows, *c.columns) if i not in inner]
        overlaps = overlapping(statement, [*inner[:2], *_longest(statement, others)])
        if not set(overlaps).intersection(inner) and _is_box(statement, inner):
            taps = tuple(i for i in c.reduce if i not in inner)
            within = _within(statement, inner, taps)
            if prod(_extent(statement, name) for name in (inner[2], *within)) < LEAST:
                continue
            own = tuple(i for i in others if i not in overlaps)
            packed = not _is_contiguous(nest, c.right, inner[1])
            return InnerBox(nest, statement, c, *inner, own, taps, overlaps, within, packed)
    return None


def _within(statement: Statement, inner: tuple[str, str, str], taps: Sequence[str]) -> tuple[str, ...]:
    """The taps that form a larger box with `inner`, as many as a kernel has loops for."""
    found: tuple[str, ...] = ()
    for tap in taps:
        if len(found) + 1 < LEVELS and _is_box(statement, (*inner, *found, tap)):
            found = (*found, tap)
    return found


def usual_tiles(r: InnerBox, target: Target) -> RegisterTile:
    """The register tile that fits the box best, and the outermost loop for the threads if there is enough work."""
    m, n = (min(r.extent(name), ASSUMED) for name in (r.row, r.column))
    kernel, place = tile_shape(m, n, target.isa, r.dtype), _usual_place(r, target)
    shared = r.own[0] if r.own and r.work >= target.worthwhile(r.dtype) else None
    if shared and place == "outside" and r.extent(r.column) >= target.threads * kernel.columns:
        shared = r.column
    return RegisterTile(kernel, place, shared)


def _usual_place(r: InnerBox, target: Target) -> Place:
    """Where the column tile loop goes: each of the `own` loops' iterations finds its operands in the nearer caches."""
    if r.reused(r.column) > target.caches.l2:
        return "outside"
    return "under rows" if not r.packed and r.reused(r.row) > target.caches.l2 else "inside"


def non_rectangular_steps(
    nest: Nest, statement: Statement, loops: Mapping[str, str], target: Target
) -> list[Step] | None:
    """The steps with the usual tiles; None if there is no box. `loops` names the loop of each iterator."""
    found = inner_box(nest, statement)
    return tiled_steps(found, loops, usual_tiles(found, target)) if found else None


@dataclass(frozen=True)
class NonRectangular:
    """A non-rectangular contraction and its loops by iterator; `made` builds the nest's schedule with given steps."""

    box: InnerBox
    loops: Mapping[str, str]
    target: Target
    made: MadeWith

    @property
    def work(self) -> int:
        """An upper bound of the multiply-adds."""
        return self.box.work

    def forms(self) -> Iterator[Form]:
        """Every position of the column tile loop combined with every loop that may be parallel."""
        shared = [None, *self.box.own[:2], self.box.column] if self.target.threads > 1 else [None]
        places: tuple[Place, ...] = get_args(Place)
        for place, parallel in product(places, shared):
            form = self._form(place, parallel) if parallel != self.box.column or place == "outside" else None
            if form is not None:
                yield form

    @cached_property
    def usual(self) -> Form | None:
        """The default form; None if it is illegal."""
        return self._form(self._tile.columns, self._tile.parallel)

    @property
    def _tile(self) -> RegisterTile:
        return usual_tiles(self.box, self.target)

    def _form(self, place: Place, parallel: str | None) -> Form | None:
        box, isa, usual = self.box, self.target.isa, self._tile.kernel
        lanes = isa.lanes(box.dtype)

        def make(values: Values) -> Schedule | None:
            kernel = gemm(isa, box.dtype, values["rows"] or 1, values["vectors"] or 1)
            return self.made(lambda loops: tiled_steps(box, loops, RegisterTile(kernel, place, parallel)))

        values = (("rows", usual.rows), ("vectors", usual.vectors))
        tried = make(dict(values))
        if tried is None:
            return None
        return Form(
            (("columns", place), ("parallel", parallel or "none")),
            make,
            tried,
            tile_knobs(box.extent(box.row), box.extent(box.column), usual),
            values,
            {f"{self.loops[box.row]}_tile": "rows", f"{self.loops[box.column]}_tile": "columns"},
            fitting(isa),
            lambda values: {"rows": values["rows"] or 1, "columns": (values["vectors"] or 1) * lanes},
        )


def tiled_steps(r: InnerBox, loops: Mapping[str, str], tiles: RegisterTile) -> list[Step]:
    """The steps for a contraction with a box; `loops` names the loop of each iterator."""
    row, column = loops[r.row], loops[r.column]
    first, own = ([loops[name] for name in names] for names in (r.overlaps, r.own))
    taps = [loops[name] for name in r.taps if name not in r.within]
    row_tile, column_tile = f"{row}_tile", f"{column}_tile"
    around = {
        "inside": [*first, *own, *taps, row_tile, column_tile],
        "between": [*first, *own, *taps, column_tile, row_tile],
        "outside": [*first, column_tile, *taps, *own, row_tile],
        "under rows": [*first, row_tile, *taps, *own, column_tile],
    }[tiles.columns]
    steps: list[Step] = [
        Split(((row, tiles.kernel.rows),)),
        Split(((column, tiles.kernel.columns),)),
        Order((*around, row, column, *(loops[name] for name in r.reduction))),
    ]
    if r.packed:
        steps.append(
            _copy(r, around, {column_tile, *(loops[name] for name in iterators_of(r.statement, r.contraction.right))})
        )
    steps.append(Tensorize(tiles.kernel.name, r.statement.name))
    if tiles.parallel is None:
        return steps
    return [*steps, Parallel(column_tile if tiles.parallel == r.column else loops[tiles.parallel])]


def _copy(r: InnerBox, around: Sequence[str], moving: Collection[str]) -> Pack:
    """The copy of the right operand, which no loop repeats: outside the first loop that is not among the `moving`."""
    above = list(takewhile(lambda loop: loop in moving, around))
    left, right = r.contraction.left.array, r.contraction.right.array
    return Pack(right, above[-1] if above else None, r.statement.name, "right" if left == right else None)


def _candidates(nest: Nest, statement: Statement, c: Contraction) -> Iterator[tuple[str, str, str]]:
    """Row, column and reduce iterators, longest first; the output is contiguous along the columns.

    Those along which the right operand is contiguous as well come first.
    """
    columns = [name for name in c.columns if _is_contiguous(nest, c.output, name)]
    columns.sort(key=lambda name: not _is_contiguous(nest, c.right, name))
    yield from product(_longest(statement, c.rows), columns, _longest(statement, c.reduce))


def _is_contiguous(nest: Nest, access: Load, iterator: str) -> bool:
    """Whether consecutive values of an iterator access neighbours."""
    return step(nest.array(access.array), access, iterator).number == 1


def _longest(statement: Statement, iterators: Sequence[str]) -> list[str]:
    """The iterators, longest first."""
    return sorted(iterators, key=lambda name: -_extent(statement, name))


def _extent(statement: Statement, iterator: str) -> int:
    """The number of values that an iterator takes in total; ASSUMED if it depends on a size."""
    position = statement.iterators.index(iterator)
    low, high = statement.domain.dim_min_val(position), statement.domain.dim_max_val(position)
    return high.to_python() - low.to_python() + 1 if low.is_int() and high.is_int() else ASSUMED


def _is_box(statement: Statement, inner: tuple[str, ...]) -> bool:
    """Whether these iterators take all combinations of their values for each value of the others."""
    values = coordinates(statement.domain, statement.iterators)
    others = tuple((name, value) for name, value in values.items() if name not in inner)
    return Instances("rest", statement.domain, others).is_box([values[name] for name in inner])
