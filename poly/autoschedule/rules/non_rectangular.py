"""Contractions over a non-rectangular domain: a kernel over the loops that form a box once all others are fixed.

    for p, q, f:                                            for p, s:
      for r, s:                                               for q_tile: for f_tile:
        if 0 <= p + r - 1 < P and 0 <= q + s - 1 < Q:   ->      microkernel over q, f, r, c
          for c:
            O[p, q, f] += I[p+r-1, q+s-1, c] * W[r, s, c, f]

The taps of a padded convolution that would multiply by zero are not in the domain, so they cost nothing. The kernel
takes all loops of the reduction that belong to the box: for one p, all q have the same r. A right operand that is not
contiguous along the columns, such as an image read at every second pixel, is packed, and also one of which the model
expects that a copy pays: the weights of a group of channels, whose rows lie pages apart, so that no cache keeps them.
If the operand of all pixels, the weights, exceeds the second-level cache, the loop over its tiles goes outside.

If the output is contiguous along few loops only, such as the three taps of a weight's gradient or seven pixels, vectors
may cost less along others: each tile of results is then turned, and stored where the results belong.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product, takewhile
from math import inf
from typing import Literal, get_args

import islpy as isl

from microkernels.cached import cached_property
from microkernels.catalogue import gemm
from microkernels.kernel import OuterProduct
from poly.analysis.roles import expected_bytes
from poly.autoschedule.rules.attempt import applied
from poly.autoschedule.rules.form import Form, usual_parts
from poly.autoschedule.rules.inner_boxes import PAYS, InnerBox, distance, inner_box
from poly.autoschedule.rules.isolation import MadeWith, isolated
from poly.autoschedule.spaces.grids import fitting, tile_knobs
from poly.autoschedule.spaces.space import Values
from poly.errors import ScheduleError
from poly.ir.budget import QUESTION, TooCostly, limited
from poly.ir.nest import Nest, Statement
from poly.lowering.calls import iterators_of
from poly.machine.description import LINE
from poly.model.core import Target
from poly.model.price import price
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import Order, Pack, Parallel, Split, Step, Tensorize

FITS = 0.98
"""How much of the time of the usual tile one of another width may be expected to take in the same loops."""

Place = Literal["inside", "between", "outside", "under rows", "over all"]
"""The position of the column tile loop: inside the row tile loop, right around it, around all other loops, inside all
of them with the row tile loop around them, or around all of them with the row tile loop right inside it."""

PLACES: tuple[Place, ...] = get_args(Place)


@dataclass(frozen=True)
class RegisterTile:
    """The register tile, the position of the loop over its columns, and the iterator of the parallel loop, if any.

    `copied` tells that the right operand is packed though it is contiguous along the columns.
    """

    kernel: OuterProduct
    columns: Place = "inside"
    parallel: str | None = None
    copied: bool = False


def _apart(r: InnerBox, name: str) -> int:
    """The distance of results along an iterator, in elements."""
    return distance(r.nest, r.contraction.output, name)


def usual_tiles(r: InnerBox, target: Target) -> RegisterTile:
    """The register tile that fits the box best, and the outermost loop for the threads if there is enough work.

    The column tile loop goes where simple rules say, unless the model expects another place to be clearly better, or a
    tile of another width, or a copy of the right operand. What fits the second-level cache needs no such comparison.
    """
    usual = RegisterTile(r.kernel(target.isa), _simple_place(r, target))
    arrays = {load.array for load in (r.contraction.output, r.contraction.left, r.contraction.right)}
    if sum(expected_bytes(r.nest.array(name)) for name in arrays) > target.caches.l2:
        usual = _better(r, usual, [replace(usual, columns=place) for place in PLACES], target, PAYS)
        if not r.packed:
            usual = _better(r, usual, [replace(usual, columns=place, copied=True) for place in PLACES], target, PAYS)
        wider = [replace(usual, kernel=kernel) for kernel in r.kernels(target.isa)]
        usual = _better(r, usual, wider, target, FITS, ready=r.contraction.right.array)
    shared = r.own[0] if r.own and r.work >= target.worthwhile(r.dtype) else None
    if shared and usual.columns == "outside" and r.extent(r.column) >= target.threads * usual.kernel.columns:
        shared = r.column
    return replace(usual, parallel=shared)


def _better(
    r: InnerBox, usual: RegisterTile, others: Sequence[RegisterTile], target: Target, pays: float, ready: str = ""
) -> RegisterTile:
    """The best of some tiles by the model, if it takes less than `pays` of the time of the usual one.

    It ends where the comparison takes too much work. Copies of the array `ready` are left out: what they cost for tiles
    of different widths is known less exactly than what these save.
    """
    alone = isolated(schedule(r.nest), r.statement)
    if alone is None:
        return usual
    expected: dict[RegisterTile, float] = {}
    with suppress(TooCostly), limited(QUESTION):
        for tiles in dict.fromkeys((usual, *others)):
            with suppress(ScheduleError):
                made = applied(alone[0], tiled_steps(r, alone[1], tiles))
                expected[tiles] = price(usual_parts(made, target, ready), target).seconds
    best = min(expected, key=expected.__getitem__, default=usual)
    return best if expected.get(best, inf) < pays * expected.get(usual, inf) else usual


def _simple_place(r: InnerBox, target: Target) -> Place:
    """The place by which each of the `own` loops' iterations finds its operands in the nearer caches.

    Where these loops count results in the same cache line, those of a tile are finished while it is there.
    """
    if any(_apart(r, name) < min(_apart(r, r.column), LINE // r.dtype.size) for name in r.own):
        return "over all"
    if r.reused(r.column) > target.caches.l2:
        return "outside"
    return "under rows" if not r.packed and r.reused(r.row) > target.caches.l2 else "inside"


def best_box(nest: Nest, statement: Statement, target: Target) -> InnerBox | None:
    """The box of a contraction that takes the least time on a CPU; None if there is none."""
    return inner_box(nest, statement, target.isa, lambda box: box.time(target))


def turned_box(nest: Nest, statement: Statement, target: Target) -> InnerBox | None:
    """The box of a contraction of known sizes if its tiles are best turned before they are stored; None otherwise."""
    if statement.domain.dim(isl.dim_type.param):
        return None
    box = best_box(nest, statement, target)
    return box if box is not None and box.is_turned else None


def non_rectangular_steps(
    nest: Nest, statement: Statement, loops: Mapping[str, str], target: Target
) -> list[Step] | None:
    """The steps with the usual tiles; None if there is no box. `loops` names the loop of each iterator."""
    found = best_box(nest, statement, target)
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
        """Every position of the column tile loop with every loop that may be parallel, and the right operand copied."""
        shared = [None, *self.box.own[:2], self.box.column] if self.target.threads > 1 else [None]
        copied = (False,) if self.box.packed else (False, True)
        for place, parallel, copies in product(PLACES, shared, copied):
            form = self._form(place, parallel, copies) if parallel != self.box.column or place == "outside" else None
            if form is not None:
                yield form

    @cached_property
    def usual(self) -> Form | None:
        """The default form; None if it is illegal."""
        return self._form(self._tile.columns, self._tile.parallel, self._tile.copied)

    @cached_property
    def _tile(self) -> RegisterTile:
        return usual_tiles(self.box, self.target)

    def _form(self, place: Place, parallel: str | None, copied: bool) -> Form | None:
        box, isa, usual = self.box, self.target.isa, self._tile.kernel
        lanes = isa.lanes(box.dtype)

        def make(values: Values) -> Schedule | None:
            kernel = gemm(isa, box.dtype, values["rows"] or 1, values["vectors"] or 1, box.contraction.product)
            return self.made(lambda loops: tiled_steps(box, loops, RegisterTile(kernel, place, parallel, copied)))

        values = (("rows", usual.rows), ("vectors", usual.vectors))
        tried = make(dict(values))
        if tried is None:
            return None
        return Form(
            (("columns", place), ("parallel", parallel or "none"), *[("right", "copied")] * copied),
            make,
            tried,
            tile_knobs(box.extent(box.row), box.extent(box.column), usual),
            values,
            {f"{self.loops[box.row]}_tile": "rows", f"{self.loops[box.column]}_tile": "columns"},
            fitting(isa, box.contraction.product),
            lambda values: {"rows": values["rows"] or 1, "columns": (values["vectors"] or 1) * lanes},
        )


def tiled_steps(r: InnerBox, loops: Mapping[str, str], tiles: RegisterTile, initial: str | None = None) -> list[Step]:
    """The steps for a contraction with a box, whose kernel does what `initial` does before; `loops` names its loops."""
    row, column = loops[r.row], loops[r.column]
    first, own = ([loops[name] for name in names] for names in (r.overlaps, r.own))
    taps = [loops[name] for name in r.taps if name not in r.within]
    row_tile, column_tile = f"{row}_tile", f"{column}_tile"
    around = {
        "inside": [*first, *own, *taps, row_tile, column_tile],
        "between": [*first, *own, *taps, column_tile, row_tile],
        "outside": [column_tile, *first, *taps, *own, row_tile],
        "under rows": [*first, row_tile, *taps, *own, column_tile],
        "over all": [column_tile, *first, row_tile, *taps, *own],
    }[tiles.columns]
    steps: list[Step] = [
        Split(((row, tiles.kernel.rows),)),
        Split(((column, tiles.kernel.columns),)),
        Order((*around, row, column, *(loops[name] for name in r.reduction))),
    ]
    if r.packed or tiles.copied:
        steps.append(_copy(r, around, {column_tile, *(loops[name] for name in _copied_apart(r))}))
    steps.append(Tensorize(tiles.kernel.name, r.statement.name, initial))
    if tiles.parallel is None:
        return steps
    return [*steps, Parallel(column_tile if tiles.parallel == r.column else loops[tiles.parallel])]


def _copy(r: InnerBox, around: Sequence[str], moving: Collection[str]) -> Pack:
    """The copy of the right operand, which no loop repeats: outside the first loop that is not among the `moving`.

    What is copied once for several taps, since they lie next to each other, is read a line at a time.
    """
    above = list(takewhile(lambda loop: loop in moving, around))
    left, right = r.contraction.left.array, r.contraction.right.array
    return Pack(right, above[-1] if above else None, r.statement.name, "right" if left == right else None)


def _copied_apart(r: InnerBox) -> list[str]:
    """The iterators that move the right operand, without the overlaps along which it has neighbours in a cache line."""
    right, line = r.contraction.right, LINE // r.dtype.size
    used = iterators_of(r.statement, right)
    return [name for name in used if name not in r.overlaps or distance(r.nest, right, name) >= line]
