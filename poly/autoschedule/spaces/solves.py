"""Forms of triangular solves by blocks of rows: the register tile, and how many of them make a block."""

from __future__ import annotations

from collections.abc import Iterator

from microkernels.catalogue import gemm
from microkernels.dtypes import DType
from poly.autoschedule.defaults.marks import shared_out, vectorized
from poly.autoschedule.defaults.solves import Solve, blocked_solve, usual_solve
from poly.autoschedule.spaces.form import WHOLE, Form, SpaceTarget
from poly.autoschedule.spaces.grids import fitting, tile_knobs
from poly.autoschedule.spaces.space import Knob, Values
from poly.ir.edits import find_loop
from poly.ir.nest import Nest
from poly.ir.strides import extent
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import Split, Tensorize

TILES = (1, 2, 3, 4, 6, 8)
"""Register tiles in a block of rows."""


def solves(nest: Nest, target: SpaceTarget) -> Iterator[Form]:
    """The solve by blocks, its loops shared out or not; none where there is no triangular update."""
    isa, first = target.isa, blocked_solve(nest, target.isa)
    if first is None:
        return
    dtype = _updated(first)
    usual, fits = usual_solve(isa, dtype), fitting(isa)
    row, cuts = _loops(first)
    most = (extent(nest, find_loop(schedule(nest).tree, row)) or WHOLE) // 2
    for parallel in (False, True) if target.threads > 1 else (False,):

        def make(values: Values, parallel: bool = parallel) -> Schedule | None:
            kernel = gemm(isa, dtype, values["rows"] or 1, values["vectors"] or 1)
            made = blocked_solve(nest, isa, Solve(_block(values), kernel))
            return made and vectorized(shared_out(made) if parallel else made)

        yield Form(
            (("solve", "by blocks"), ("parallel", "outermost" if parallel else "none")),
            make,
            (*tile_knobs(WHOLE, WHOLE, usual.kernel), Knob("tiles", TILES)),
            _values(usual),
            cuts,
            lambda values: fits(values) and 2 <= _block(values) <= most,
            lambda values: _blocks(values, isa.lanes(dtype)),
            default=parallel == (target.threads > 1),
        )


def _updated(made: Schedule) -> DType:
    """The type of what the microkernel updates."""
    name = next(step.statement for step in made.steps if isinstance(step, Tensorize) and step.statement)
    return made.nest.array(made.nest.statement(name).target.array).dtype


def _values(solve: Solve) -> tuple[tuple[str, int], ...]:
    """The knobs' values of a solve."""
    kernel = solve.kernel
    return ("rows", kernel.rows), ("vectors", kernel.vectors), ("tiles", solve.block // kernel.rows)


def _loops(made: Schedule) -> tuple[str, dict[str, str]]:
    """The loop over rows, and the knobs of those over blocks of rows, and over register tiles' rows and columns."""
    ((row, _),), ((far, _), (column, _)) = (step.sizes for step in made.steps if isinstance(step, Split))
    return row, {f"{row}_tile": "block", f"{far}_tile2": "rows", f"{column}_tile": "columns"}


def _block(values: Values) -> int:
    """The rows of a block."""
    return (values["rows"] or 1) * (values["tiles"] or 1)


def _blocks(values: Values, lanes: int) -> dict[str, int]:
    rows, vectors = (values[name] or 1 for name in ("rows", "vectors"))
    return {"block": _block(values), "rows": rows, "columns": vectors * lanes}
