"""Forms with a microkernel for contractions over no box, and for those without rows.

ragged            the register tile, where the loop over its columns is, which loop the threads share
matrix, vector    the kernel's family, and how many results a thread or a pass has
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import get_args

from microkernels.catalogue import gemm
from poly.analysis.roles import Roles, roles
from poly.autoschedule.default import contracted_by, isolated
from poly.autoschedule.matrix_vector import Streamed, streamed, streamed_steps, usual_share
from poly.autoschedule.non_rectangular import Place, Ragged, RegisterTile, ragged, tiled_steps, usual_tiles
from poly.autoschedule.plan import contraction_steps
from poly.autoschedule.spaces.form import Form, SpaceTarget
from poly.autoschedule.spaces.grids import fitting, sizes, tile_knobs, uncut
from poly.autoschedule.spaces.solves import solves
from poly.autoschedule.spaces.space import Knob, Values
from poly.ir.nest import Nest, Statement
from poly.schedules.matching import zeroing
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import Step

SHARES = (256, 1 << 16)
"""The least and the most results of a matrix-vector product that are computed in one pass."""

StepsOf = Callable[[Mapping[str, str]], list[Step]]


@dataclass(frozen=True)
class _Product:
    """A statement that a kernel can take, with the names of its loops by iterator."""

    statement: Statement
    loops: Mapping[str, str]
    what: Ragged | Roles
    work: int


def kernel_forms(nest: Nest, target: SpaceTarget) -> Iterator[Form]:
    """The forms of the heaviest statement that a microkernel can take, the usual one marked."""
    found = max(_products(nest), key=lambda product: product.work, default=None)
    match found:
        case None:
            yield from solves(nest, target)
        case _Product(what=Ragged() as box):
            yield from _ragged(box, found.loops, target)
        case _Product(what=Roles() as axes):
            yield from _streamed(nest, axes, found, target)


def _products(nest: Nest) -> Iterator[_Product]:
    """The ragged and the matrix-vector statements."""
    made = schedule(nest)
    for statement in nest.statements:
        alone = isolated(made, statement)
        if alone is None:
            continue
        r = roles(nest, statement)
        box = ragged(nest, statement) if r is None else None
        if box is not None:
            yield _Product(statement, alone[1], box, box.work)
        elif r is not None and not r.rows and streamed(r):
            axes = (*r.batch, *r.columns, *r.reduce)
            yield _Product(statement, alone[1], r, prod(axis.guess for axis in axes))


def _with(nest: Nest, statement: Statement, target: SpaceTarget, steps_of: StepsOf) -> Schedule | None:
    """The default schedule but for one statement, which gets steps of its own; None where they are illegal."""

    def steps(other: Statement, loops: Mapping[str, str]) -> list[Step] | None:
        if other.name == statement.name:
            return steps_of(loops)
        initial = zeroing(nest, other)
        return contraction_steps(nest, other, loops, target.isa, target.caches, target.threads, initial, target.rates)

    made = contracted_by(nest, steps)
    return made if any(getattr(step, "statement", None) == statement.name for step in made.steps) else None


def _ragged(r: Ragged, loops: Mapping[str, str], target: SpaceTarget) -> Iterator[Form]:
    isa, lanes, usual = target.isa, target.isa.lanes(r.dtype), usual_tiles(r, target.isa, target.threads)
    m, n = r.extent(r.row), r.extent(r.column)
    shared = [None, *r.own[:2], r.column] if target.threads > 1 else [None]
    places: tuple[Place, ...] = get_args(Place)
    for place, parallel in product(places, shared):
        if parallel == r.column and place != "outside":
            continue

        def make(values: Values, place: Place = place, parallel: str | None = parallel) -> Schedule | None:
            tiles = RegisterTile(gemm(isa, r.dtype, values["rows"] or 1, values["vectors"] or 1), place, parallel)
            return _with(r.nest, r.statement, target, lambda names: tiled_steps(r, names, tiles))

        yield Form(
            (("columns", place), ("parallel", parallel or "none")),
            make,
            tile_knobs(m, n, usual.kernel),
            (("rows", usual.kernel.rows), ("vectors", usual.kernel.vectors)),
            {f"{loops[r.row]}_tile": "rows", f"{loops[r.column]}_tile": "columns"},
            fitting(isa),
            lambda values: {"rows": values["rows"] or 1, "columns": (values["vectors"] or 1) * lanes},
            default=place == usual.columns and parallel == usual.parallel,
        )


def _streamed(nest: Nest, r: Roles, found: _Product, target: SpaceTarget) -> Iterator[Form]:
    initial = zeroing(nest, found.statement)
    for way, parallel in product(streamed(r), (False, True) if target.threads > 1 else (False,)):
        usual = usual_share(way, target.threads)
        default = way == streamed(r)[0] and parallel == (usual is not None)

        def make(values: Values, way: Streamed = way, parallel: bool = parallel) -> Schedule | None:
            def steps(loops: Mapping[str, str]) -> list[Step]:
                return streamed_steps(r, loops, target.isa, way, values["share"], parallel, initial)

            return _with(nest, found.statement, target, steps)

        shares = sizes(way.column.extent, *SHARES, () if usual is None else (usual,))
        if parallel and not shares:
            continue
        yield Form(
            (("kernel", way.family), ("parallel", "shares" if parallel else "none")),
            make,
            (Knob("share", shares if parallel else uncut(shares)),),
            (("share", usual if parallel and usual else shares[-1] if parallel else None),),
            {f"{found.loops[way.column.iterator]}_tile": "share"},
            default=default,
        )
