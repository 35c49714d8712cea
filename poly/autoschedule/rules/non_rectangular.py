"""Contractions over a non-rectangular domain: a kernel over the loops that form a box once all others are fixed.

    for p, q, f:                                            for p, r, s:
      for r, s:                                               for q_tile: for f_tile:
        if 0 <= p + r - 1 < P and 0 <= q + s - 1 < Q:   ->      microkernel over q, f, c
          for c:
            O[p, q, f] += I[p+r-1, q+s-1, c] * W[r, s, c, f]

The taps of a padded convolution that would multiply by zero are not in the domain, so they cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Literal, get_args

from microkernels.catalogue import gemm
from microkernels.dtypes import DType
from microkernels.kernel import OuterProduct
from poly.analysis.contraction import Contraction, overlapping, recognise
from poly.analysis.roles import ASSUMED
from poly.autoschedule.rules.form import Form
from poly.autoschedule.rules.isolation import MadeWith
from poly.autoschedule.spaces.grids import fitting, tile_knobs
from poly.autoschedule.spaces.space import Values
from poly.ir.instances import Instances, coordinates
from poly.ir.layout import step
from poly.ir.nest import Nest, Statement
from poly.model import tile_shape
from poly.model.core import Target
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Order, Parallel, Split, Step, Tensorize

LEAST = 16
"""The least number of reduction steps for which a kernel call pays off."""


@dataclass(frozen=True)
class InnerBox:
    """A contraction whose `row`, `column` and `reduce` iterators form a box for each value of the others.

    Of the others, `own` index the results and `taps` are summed over; `overlaps` reach the same results with different
    values, so they stay outside all loops.
    """

    nest: Nest
    statement: Statement
    row: str
    column: str
    reduce: str
    own: tuple[str, ...]
    taps: tuple[str, ...]
    overlaps: tuple[str, ...]

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


Place = Literal["inside", "between", "outside"]
"""The position of the column tile loop: inside the row tile loop, right around it, or around all other loops."""


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
            own = tuple(i for i in others if i not in overlaps)
            return InnerBox(nest, statement, *inner, own, tuple(i for i in c.reduce if i not in inner), overlaps)
    return None


def usual_tiles(r: InnerBox, target: Target) -> RegisterTile:
    """The register tile that fits the box best, and the outermost loop for the threads if there is enough work."""
    m, n = (min(r.extent(name), ASSUMED) for name in (r.row, r.column))
    shared = r.own[0] if r.own and r.work >= target.worthwhile(r.dtype) else None
    return RegisterTile(tile_shape(m, n, target.isa, r.dtype), parallel=shared)


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
    row, column, reduced = (loops[name] for name in (r.row, r.column, r.reduce))
    others = [loops[name] for name in (*r.overlaps, *r.own, *r.taps)]
    row_tile, column_tile = f"{row}_tile", f"{column}_tile"
    around = {
        "inside": [*others, row_tile, column_tile],
        "between": [*others, column_tile, row_tile],
        "outside": [*others[: len(r.overlaps)], column_tile, *others[len(r.overlaps) :], row_tile],
    }[tiles.columns]
    steps: list[Step] = [
        Split(((row, tiles.kernel.rows),)),
        Split(((column, tiles.kernel.columns),)),
        Order((*around, row, column, reduced)),
        Tensorize(tiles.kernel.name, r.statement.name),
    ]
    if tiles.parallel is None:
        return steps
    return [*steps, Parallel(column_tile if tiles.parallel == r.column else loops[tiles.parallel])]


def _candidates(nest: Nest, statement: Statement, c: Contraction) -> Iterator[tuple[str, str, str]]:
    """Row, column and reduce iterators, longest first; output and right operand are contiguous along the columns."""

    columns = [
        name
        for name in c.columns
        if step(nest.array(c.output.array), c.output, name).number == 1
        and step(nest.array(c.right.array), c.right, name).number == 1
    ]
    reduce = [name for name in _longest(statement, c.reduce) if _extent(statement, name) >= LEAST]
    yield from product(_longest(statement, c.rows), columns, reduce)


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
