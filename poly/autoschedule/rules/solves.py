"""Blocked triangular solves: the contribution of earlier blocks of rows to a block is a matrix product.

    for i:                                for i_tile:
      for j < i:                            for i in the tile: for j < start of the tile: for r:
        for r:                                X[i, r] -= L[i, j]*X[j, r]          (a microkernel)
          X[i, r] -= L[i, j]*X[j, r]  ->    for i_2 in the tile:
      for r:                                  for start of the tile <= j_2 < i_2: for r_2:
        X[i, r] /= L[i, i]                      X[i_2, r_2] -= L[i_2, j_2]*X[j_2, r_2]
                                              for r_3:
                                                X[i_2, r_3] /= L[i_2, i_2]

The update becomes two statements: the far instances read results of earlier blocks, the near ones of the same block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from microkernels.catalogue import gemm, tiles
from microkernels.dtypes import DType
from microkernels.isa import ISA
from microkernels.kernel import OuterProduct
from microkernels.product import MULTIPLY_ADD
from poly.analysis.contraction import Contraction, recognise
from poly.autoschedule.rules.attempt import applied, attempt
from poly.autoschedule.rules.contiguous import contiguous
from poly.autoschedule.rules.form import WHOLE, Form
from poly.autoschedule.rules.lanes import vectorized
from poly.autoschedule.rules.sharing import parallelized
from poly.autoschedule.spaces.grids import fitting, tile_knobs
from poly.autoschedule.spaces.space import Knob, Values
from poly.errors import ScheduleError
from poly.ir.edits import find_loop
from poly.ir.nest import Nest, Statement
from poly.ir.paths import paths
from poly.ir.strides import extent, is_contiguous_along, moved_iterator
from poly.ir.tree import Band
from poly.model.core import Target
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import Distribute, Order, Part, Split, Tensorize

LEAST = 16
"""The least number of rows in a block: few, since updates within a block run without a microkernel."""

TILES = (1, 2, 3, 4, 6, 8)
"""Register tiles per block of rows in a search."""


@dataclass(frozen=True)
class _Update:
    """A contraction that reads the array it writes, with one iterator in each role."""

    statement: Statement
    row: str
    column: str
    reduce: str


@dataclass(frozen=True)
class Solve:
    """The rows per block, and the microkernel that updates a block."""

    block: int
    kernel: OuterProduct


def solves(nest: Nest, target: Target) -> Iterator[Form]:
    """The blocked solve, sequential and parallel; nothing if there is no triangular update."""
    first = blocked_solve(nest, target.isa)
    if first is not None:
        for threads in dict.fromkeys((1, target.threads)):
            yield _form(nest, target.isa, first, threads)


def usual_solve(nest: Nest, target: Target) -> Form | None:
    """The blocked solve, parallel if there are several threads; None if there is no triangular update."""
    first = blocked_solve(nest, target.isa)
    return _form(nest, target.isa, first, target.threads) if first is not None else None


def _form(nest: Nest, isa: ISA, first: Schedule, threads: int) -> Form:
    """The form of a solve; `first` has the usual sizes and no vectorised or parallel loops yet."""
    dtype = _updated(first)
    row, cuts = _loops(first)
    usual, fits = usual_sizes(isa, dtype), fitting(isa)
    most = (extent(nest, find_loop(schedule(nest).tree, row)) or WHOLE) // 2

    def finished(made: Schedule) -> Schedule:
        return vectorized(parallelized(made, threads) if threads > 1 else made)

    def make(values: Values) -> Schedule | None:
        kernel = gemm(isa, dtype, values["rows"] or 1, values["vectors"] or 1)
        made = blocked_solve(nest, isa, Solve(_block(values), kernel))
        return made and finished(made)

    return Form(
        (("solve", "by blocks"), ("parallel", "outermost" if threads > 1 else "none")),
        make,
        finished(first),
        (*tile_knobs(WHOLE, WHOLE, usual.kernel), Knob("tiles", TILES)),
        _values(usual),
        cuts,
        lambda values: fits(values) and 2 <= _block(values) <= most,
        lambda values: _blocks(values, isa.lanes(dtype)),
    )


def _updated(made: Schedule) -> DType:
    """The type of the array that the microkernel updates."""
    name = next(step.statement for step in made.steps if isinstance(step, Tensorize) and step.statement)
    return made.nest.array(made.nest.statement(name).target.array).dtype


def _values(solve: Solve) -> tuple[tuple[str, int], ...]:
    """The values of the knobs for a solve."""
    kernel = solve.kernel
    return ("rows", kernel.rows), ("vectors", kernel.vectors), ("tiles", solve.block // kernel.rows)


def _loops(made: Schedule) -> tuple[str, dict[str, str]]:
    """The row loop, and the knobs of the loops over blocks of rows and over the rows and columns of register tiles."""
    ((row, _),), ((far, _), (column, _)) = (step.sizes for step in made.steps if isinstance(step, Split))
    return row, {f"{row}_tile": "block", f"{far}_tile2": "rows", f"{column}_tile": "columns"}


def _block(values: Values) -> int:
    """The rows per block."""
    return (values["rows"] or 1) * (values["tiles"] or 1)


def _blocks(values: Values, lanes: int) -> dict[str, int]:
    rows, vectors = (values[name] or 1 for name in ("rows", "vectors"))
    return {"block": _block(values), "rows": rows, "columns": vectors * lanes}


def usual_sizes(isa: ISA, dtype: DType) -> Solve:
    """The best kernel for large operands, and the smallest block that consists of whole tiles of it."""
    kernel = tiles(isa, dtype)[0]
    return Solve(kernel.rows * ceil(LEAST / kernel.rows), kernel)


def blocked_solve(nest: Nest, isa: ISA, solve: Solve | None = None) -> Schedule | None:
    """A schedule with a microkernel for the first triangular update; None if there is none.

    In the schedule's nest, the update is two statements, `S` and `S_near`. `solve` overrides the usual sizes.
    """
    for statement in nest.statements:
        update = _update(nest, statement)
        if update is not None:
            made = _blocked(nest, update, solve or usual_sizes(isa, nest.array(statement.target.array).dtype))
            if made is not None:
                return made
    return None


def _update(nest: Nest, statement: Statement) -> _Update | None:
    found: Contraction | None = recognise(nest, statement)
    if found is None or found.product != MULTIPLY_ADD:
        return None
    if statement.target.array not in (found.left.array, found.right.array):
        return None
    if found.batch or not len(found.rows) == len(found.columns) == len(found.reduce) == 1:
        return None
    update = _Update(statement, found.rows[0], found.columns[0], found.reduce[0])
    return update if is_contiguous_along(nest, statement.target, update.column) else None


def _blocked(nest: Nest, update: _Update, solve: Solve) -> Schedule | None:
    size = solve.block
    name = update.statement.name
    loop, column = (_loop(schedule(nest), name, iterator) for iterator in (update.row, update.column))
    if loop is None or column is None:
        return None
    if (extent(nest, loop) or 2 * size) < 2 * size or (extent(nest, column) or LEAST) < LEAST:
        return None
    try:
        parted = schedule(nest).apply([Part(name, loop.name, size)])
    except ScheduleError:
        return None
    return _scheduled(parted, update, solve)


def _scheduled(parted: Schedule, update: _Update, solve: Solve) -> Schedule | None:
    """The blocked loops, with the microkernel for the far statement; None if the dependences forbid it."""
    far = update.statement.name
    made = contiguous(parted)
    around = [band.name for band in paths(made.tree)[far] if isinstance(band, Band)]
    row = _loop(made, far, update.row)
    if row is None or row.name == around[-1]:
        return None
    below = around[around.index(row.name) + 1]
    blocks = attempt(made, [Distribute(below), Split(((row.name, solve.block),)), Distribute(row.name, behind=far)])
    return blocks and _with_microkernel(blocks, update, solve.kernel)


def _with_microkernel(made: Schedule, update: _Update, kernel: OuterProduct) -> Schedule | None:
    far = update.statement.name
    found = [_loop(made, far, iterator) for iterator in (update.row, update.column, update.reduce)]
    row, column, reduce = (band.name for band in found if band is not None)
    tiled = applied(made, [Split(((row, kernel.rows), (column, kernel.columns)))])
    around = [band.name for band in paths(tiled.tree)[far] if isinstance(band, Band)]
    row_tile, column_tile = (around[around.index(name) - 1] for name in (row, column))
    order = Order((column_tile, row_tile, row, column, reduce))
    return attempt(tiled, [order, Tensorize(kernel.name, far)])


def _loop(made: Schedule, statement: str, iterator: str) -> Band | None:
    """The loop that advances an iterator of a statement by one."""
    path = paths(made.tree)[statement]
    described = made.nest.statement(statement)
    loops = (band for band in path if isinstance(band, Band))
    return next((band for band in loops if moved_iterator(described, path, band.name) == iterator), None)
