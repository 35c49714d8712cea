"""Contractions with no rows to speak of: matrix times vector, streamed by a kernel of its own.

for j: for k:                               for j_tile:                     (a share for each thread)
  y[j] += x[k] * B[k, j]           ->         gemvn over j, k               (B contiguous along j)
  y[j] += B[j, k] * x[k]           ->         gemvt over j, k               (both contiguous along k)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from microkernels.isa import ISA
from microkernels.kernel import named
from poly.analysis.roles import Axis, Roles
from poly.model import WORTHWHILE
from poly.schedules.steps import Order, Parallel, Split, Step, Tensorize


@dataclass(frozen=True)
class Streamed:
    """A matrix-vector product: the kernel's family, the loop that counts results, and the one that is summed over."""

    family: str
    column: Axis
    reduced: Axis


def streamed(r: Roles) -> tuple[Streamed, ...]:
    """The ways to stream the matrix as it lies, the usual first; none where no kernel does."""
    return tuple(found for found in (_by_rows(r), _by_columns(r)) if found is not None)


def matrix_vector_steps(
    r: Roles, loops: Mapping[str, str], isa: ISA, threads: int, initial: str | None
) -> list[Step] | None:
    """The steps for a contraction without rows; None where no kernel streams the matrix as it lies."""
    found = streamed(r)
    if not found:
        return None
    return streamed_steps(r, loops, isa, found[0], usual_share(found[0], threads), threads > 1, initial)


def streamed_steps(
    r: Roles,
    loops: Mapping[str, str],
    isa: ISA,
    chosen: Streamed,
    share: int | None,
    parallel: bool,
    initial: str | None,
) -> list[Step]:
    """The steps for one way: `share` results at a time (None: all), those shared among threads if `parallel`."""
    inner = (loops[chosen.column.iterator], loops[chosen.reduced.iterator])
    outer = [loop for loop in loops.values() if loop not in inner]
    steps: list[Step] = []
    if share is not None:
        steps.append(Split(((inner[0], share),)))
        outer.append(f"{inner[0]}_tile")
    kernel = Tensorize(named(chosen.family, isa), r.contraction.statement, initial)
    steps += [Order((*outer, *inner)), kernel]
    return [*steps, Parallel(outer[-1])] if share is not None and parallel else steps


def _by_rows(r: Roles) -> Streamed | None:
    """The matrix and the result contiguous along one loop: `gemvn`, over the longest reduction."""
    columns = [axis for axis in r.columns if axis.right.number == 1 and axis.output.number == 1]
    return Streamed("gemvn", columns[0], _longest(r.reduce)) if columns and r.reduce else None


def _by_columns(r: Roles) -> Streamed | None:
    """Matrix and vector contiguous along the reduction: `gemvt`."""
    reduced = [axis for axis in r.reduce if axis.right.number == 1 and axis.left.number == 1]
    return Streamed("gemvt", _longest(r.columns), reduced[0]) if reduced and r.columns else None


def _longest(axes: tuple[Axis, ...]) -> Axis:
    return max(axes, key=lambda axis: axis.guess)


def usual_share(chosen: Streamed, threads: int) -> int | None:
    """The columns of one thread, where there is work enough for several."""
    column = chosen.column.guess
    if threads == 1 or column * chosen.reduced.guess < WORTHWHILE or column < 64 * threads:
        return None
    return ceil(column / threads / 64) * 64
