"""Contractions without rows: matrix-vector products, whose kernels stream the matrix.

for j: for k:                               for j_tile:                     (a share for each thread)
  y[j] += x[k] * B[k, j]           ->         gemvn over j, k               (B contiguous along j)
  y[j] += B[j, k] * x[k]           ->         gemvt over j, k               (both contiguous along k)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import ceil, prod

from microkernels.cached import cached_property
from microkernels.dtypes import f32
from microkernels.isa import ISA
from microkernels.kernel import named
from microkernels.product import MULTIPLY_ADD
from poly.analysis.roles import Axis, Roles
from poly.autoschedule.rules.form import Form
from poly.autoschedule.rules.isolation import MadeWith
from poly.autoschedule.spaces.grids import sizes, uncut
from poly.autoschedule.spaces.space import Knob, Values
from poly.model.core import Target
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Order, Parallel, Split, Step, Tensorize

SHARES = (256, 1 << 16)
"""The smallest and the largest number of results per pass in a search."""


@dataclass(frozen=True)
class Streamed:
    """A matrix-vector product: the kernel's family, the axis of the results, and the reduction axis."""

    family: str
    column: Axis
    reduced: Axis


def streamed(r: Roles) -> tuple[Streamed, ...]:
    """The ways to stream the matrix in its layout, the usual one first; empty if no kernel can."""
    if r.contraction.product != MULTIPLY_ADD:
        return ()
    return tuple(found for found in (_by_rows(r), _by_columns(r)) if found is not None)


def matrix_vector_steps(r: Roles, loops: Mapping[str, str], target: Target, initial: str | None) -> list[Step] | None:
    """The steps for a contraction without rows; None if no kernel streams the matrix in its layout."""
    found = streamed(r)
    if not found:
        return None
    share = usual_share(found[0], target)
    return _steps(r, loops, target.isa, found[0], share, target.threads > 1, initial)


def _steps(
    r: Roles,
    loops: Mapping[str, str],
    isa: ISA,
    chosen: Streamed,
    share: int | None,
    parallel: bool,
    initial: str | None,
) -> list[Step]:
    """The steps for one way: `share` results per pass (None: all), the passes shared among threads if `parallel`."""
    inner = (loops[chosen.column.iterator], loops[chosen.reduced.iterator])
    outer = [loop for loop in loops.values() if loop not in inner]
    steps: list[Step] = []
    if share is not None:
        steps.append(Split(((inner[0], share),)))
        outer.append(f"{inner[0]}_tile")
    kernel = Tensorize(named(chosen.family, isa), r.contraction.statement, initial)
    steps += [Order((*outer, *inner)), kernel]
    return [*steps, Parallel(outer[-1])] if share is not None and parallel else steps


@dataclass(frozen=True)
class StreamedProduct:
    """A matrix-vector product and its loops by iterator; `made` builds the nest's schedule with given steps for it."""

    roles: Roles
    loops: Mapping[str, str]
    initial: str | None
    target: Target
    made: MadeWith

    @property
    def work(self) -> int:
        """Multiply-adds."""
        r = self.roles
        return prod(axis.guess for axis in (*r.batch, *r.columns, *r.reduce))

    def forms(self) -> Iterator[Form]:
        """Every way to stream the matrix, with and without sharing the results among threads."""
        for way, parallel in product(streamed(self.roles), (False, True) if self.target.threads > 1 else (False,)):
            form = self._form(way, parallel)
            if form is not None:
                yield form

    @cached_property
    def usual(self) -> Form | None:
        """The default form; None if it is illegal."""
        way = streamed(self.roles)[0]
        return self._form(way, usual_share(way, self.target) is not None)

    def _form(self, way: Streamed, parallel: bool) -> Form | None:
        usual = usual_share(way, self.target)
        shares = sizes(way.column.extent, *SHARES, () if usual is None else (usual,))
        if parallel and not shares:
            return None

        def make(values: Values) -> Schedule | None:
            def steps(loops: Mapping[str, str]) -> list[Step]:
                return _steps(self.roles, loops, self.target.isa, way, values["share"], parallel, self.initial)

            return self.made(steps)

        share = usual if parallel and usual else shares[-1] if parallel else None
        tried = make({"share": share})
        if tried is None:
            return None
        return Form(
            (("kernel", way.family), ("parallel", "shares" if parallel else "none")),
            make,
            tried,
            (Knob("share", shares if parallel else uncut(shares)),),
            (("share", share),),
            {f"{self.loops[way.column.iterator]}_tile": "share"},
        )


def _by_rows(r: Roles) -> Streamed | None:
    """`gemvn`, if matrix and result are contiguous along one axis; it sums over the longest reduction axis."""
    columns = [axis for axis in r.columns if axis.right.number == 1 and axis.output.number == 1]
    return Streamed("gemvn", columns[0], _longest(r.reduce)) if columns and r.reduce else None


def _by_columns(r: Roles) -> Streamed | None:
    """`gemvt`, if matrix and vector are contiguous along the reduction."""
    reduced = [axis for axis in r.reduce if axis.right.number == 1 and axis.left.number == 1]
    return Streamed("gemvt", _longest(r.columns), reduced[0]) if reduced and r.columns else None


def _longest(axes: tuple[Axis, ...]) -> Axis:
    return max(axes, key=lambda axis: axis.guess)


def usual_share(chosen: Streamed, target: Target) -> int | None:
    """The columns per thread; None if there is too little work for several threads."""
    column, threads = chosen.column.guess, target.threads
    if column * chosen.reduced.guess < target.worthwhile(f32) or column < 64 * threads:
        return None
    return ceil(column / threads / 64) * 64
