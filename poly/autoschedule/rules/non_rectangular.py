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

If the output is contiguous along few loops only, such as the three taps of a weight's gradient or seven pixels, vectors
may cost less along others: each tile of results is then turned, and stored where the results belong.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product, takewhile
from math import ceil, inf, prod
from typing import Literal, get_args

from codegen.expr import Load
from microkernels.catalogue import gemm
from microkernels.dtypes import DType
from microkernels.isa import ISA
from microkernels.kernel import LEVELS, OuterProduct
from poly.analysis.contraction import Contraction, exchange, overlapping, recognise
from poly.analysis.roles import ASSUMED
from poly.autoschedule.rules.form import Form
from poly.autoschedule.rules.isolation import MadeWith
from poly.autoschedule.spaces.grids import fitting, tile_knobs
from poly.autoschedule.spaces.space import Values
from poly.ir.instances import Instances, coordinates
from poly.ir.layout import step
from poly.ir.nest import Nest, Statement
from poly.lowering.calls import iterators_of
from poly.model import ASSUMED_STRIDE, tile_shape
from poly.model.core import Target
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Order, Pack, Parallel, Split, Step, Tensorize

LEAST = 16
"""The least number of reduction steps in the box for which a kernel call pays off."""

LINE = 64
"""Bytes of a cache line."""

STORE, COPY = 1.0, 1.0
"""Costs relative to the multiply-add of a vector: to store a result alone, and to copy an element into a panel."""

TURN = 8
"""The same, to turn a block of results in registers and to store it, for each of its vectors."""


@dataclass(frozen=True)
class InnerBox:
    """A contraction whose `row`, `column` and `reduce` iterators form a box for each value of the others.

    Of the others, `own` index the results and `taps` are summed over; `overlaps` reach the same results with different
    values, so they stay outside all loops. The taps in `within` belong to the box, too.
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

    @property
    def steps(self) -> int:
        """The greatest number of steps of a call."""
        return prod(map(self.extent, self.reduction))

    @property
    def packed(self) -> bool:
        """Whether the right operand must be packed, since it is not contiguous along the columns."""
        return _is_apart(self.nest, self.contraction.right, self.column)

    def cost(self, lanes: int) -> float:
        """The cost of a multiply-add relative to those of whole vectors."""
        return _cost(self.nest, self.statement, self.contraction, self.column, self.reduction, lanes)

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


Place = Literal["inside", "between", "outside", "under rows", "over all"]
"""The position of the column tile loop: inside the row tile loop, right around it, around all other loops, inside all
of them with the row tile loop around them, or around all of them with the row tile loop right inside it."""


@dataclass(frozen=True)
class RegisterTile:
    """The register tile, the position of the loop over its columns, and the iterator of the parallel loop, if any."""

    kernel: OuterProduct
    columns: Place = "inside"
    parallel: str | None = None


def inner_box(nest: Nest, statement: Statement, isa: ISA) -> InnerBox | None:
    """The contraction, oriented as a kernel for this ISA runs it, with the box of least cost; None if it has none."""
    c = recognise(nest, statement)
    if c is None or statement.domain.is_empty():
        return None
    lanes, best = isa.lanes(nest.array(statement.target.array).dtype), None
    for least, oriented, column in _columns(nest, statement, c, lanes):
        if best is not None and best[0] <= least:
            break
        box = _box(nest, statement, oriented, column)
        cost = box.cost(lanes) if box else inf
        if box is not None and (best is None or cost < best[0]):
            best = cost, box
    return best[1] if best else None


def _box(nest: Nest, statement: Statement, c: Contraction, column: str) -> InnerBox | None:
    """The box with these columns and the longest rows and reduction; None if there is none."""
    rows = _longest(statement, c.rows)
    if _distance(nest, c.output, column) != 1:
        rows.sort(key=lambda name: _distance(nest, c.output, name))
    for row, reduce in product(rows, _longest(statement, c.reduce)):
        inner = row, column, reduce
        others = [i for i in (*c.batch, *c.rows, *c.columns) if i not in inner]
        overlaps = overlapping(statement, [row, column, *_longest(statement, others)])
        if not set(overlaps).intersection(inner) and _is_box(statement, inner):
            taps = tuple(i for i in c.reduce if i not in inner)
            within = _within(statement, inner, taps)
            if prod(_extent(statement, name) for name in (reduce, *within)) < LEAST:
                continue
            own = tuple(i for i in others if i not in overlaps)
            return InnerBox(nest, statement, c, *inner, own, taps, overlaps, within)
    return None


def _apart(r: InnerBox, name: str) -> int:
    """The distance of results along an iterator, in elements."""
    return _distance(r.nest, r.contraction.output, name)


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
    turned = TURN * target.isa.lanes(r.dtype) / r.steps * _is_apart(r.nest, r.contraction.output, r.column)
    kernel = tile_shape(m, n, target.isa, r.dtype, turned)
    place = _usual_place(r, target)
    shared = r.own[0] if r.own and r.work >= target.worthwhile(r.dtype) else None
    if shared and place == "outside" and r.extent(r.column) >= target.threads * kernel.columns:
        shared = r.column
    return RegisterTile(kernel, place, shared)


def _usual_place(r: InnerBox, target: Target) -> Place:
    """Where the column tile loop goes: each of the `own` loops' iterations finds its operands in the nearer caches.

    Where these loops count results in the same cache line, those of a tile are finished while it is there.
    """
    if any(_apart(r, name) < min(_apart(r, r.column), LINE // r.dtype.size) for name in r.own):
        return "over all"
    if r.reused(r.column) > target.caches.l2:
        return "outside"
    return "under rows" if not r.packed and r.reused(r.row) > target.caches.l2 else "inside"


def non_rectangular_steps(
    nest: Nest, statement: Statement, loops: Mapping[str, str], target: Target
) -> list[Step] | None:
    """The steps with the usual tiles; None if there is no box. `loops` names the loop of each iterator."""
    found = inner_box(nest, statement, target.isa)
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
        "over all": [*first, column_tile, row_tile, *taps, *own],
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


def _columns(nest: Nest, statement: Statement, c: Contraction, lanes: int) -> list[tuple[float, Contraction, str]]:
    """Each loop that may count the columns, the best first: its least cost, and the contraction with it in that role.

    Of those that cost the same, a loop along which the right operand is contiguous comes first, then the longest.
    """
    ways = [(oriented, column) for oriented in (c, exchange(c)) for column in oriented.columns]
    found = [(_cost(nest, statement, *way, way[0].reduce, lanes), *way) for way in ways]
    return sorted(found, key=lambda way: (way[0], _is_apart(nest, way[1].right, way[2]), -_extent(statement, way[2])))


def _cost(nest: Nest, statement: Statement, c: Contraction, column: str, reduction: Iterable[str], lanes: int) -> float:
    """The cost of a multiply-add with these columns and steps of the reduction, relative to those of whole vectors.

    Vectors may be partial; results may not be contiguous, and are then stored one by one after these steps; the right
    operand may have to be copied, once for all rows that use an element.
    """
    extents = {name: _extent(statement, name) for name in statement.iterators}
    idle = ceil(extents[column] / lanes) * lanes / extents[column]
    alone = STORE * lanes / prod(extents[name] for name in reduction)
    used = iterators_of(statement, c.right)
    copy = COPY * lanes / prod(extent for name, extent in extents.items() if name not in used)
    return idle + alone * _is_apart(nest, c.output, column) + copy * _is_apart(nest, c.right, column)


def _is_apart(nest: Nest, access: Load, iterator: str) -> bool:
    """Whether consecutive values of an iterator do not access neighbours."""
    return _distance(nest, access, iterator) != 1


def _distance(nest: Nest, access: Load, iterator: str) -> int:
    """The stride of an access along an iterator, in elements; that of open sizes is long."""
    stride = step(nest.array(access.array), access, iterator).number
    return ASSUMED_STRIDE if stride is None else abs(stride)


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
