"""Contractions with no rows to speak of: matrix times vector, streamed by a kernel of its own.

    for j: for k:                               for j_tile:                     (a share for each thread)
      y[j] += x[k] * B[k, j]           ->         gemvn over j, k               (B contiguous along j)
      y[j] += B[j, k] * x[k]           ->         gemvt over j, k               (both contiguous along k)
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from microkernels.isa import ISA
from poly.model import WORTHWHILE
from poly.roles import Axis, Roles
from poly.steps import Microkernel, Order, Parallel, Split, Step


def matrix_vector_steps(
    r: Roles, loops: Mapping[str, str], isa: ISA, threads: int, initial: str | None
) -> list[Step] | None:
    """The steps for a contraction without rows; None where no kernel streams the matrix as it lies."""
    picked = _by_rows(r) or _by_columns(r)
    if picked is None:
        return None
    family, column, reduced = picked
    inner = (loops[column.iterator], loops[reduced.iterator])
    outer = [loop for loop in loops.values() if loop not in inner]
    steps: list[Step] = []
    share = _share(column, reduced, threads)
    if share is not None:
        steps.append(Split(((inner[0], share),)))
        outer.append(f"{inner[0]}_tile")
    steps += [Order((*outer, *inner)), Microkernel(f"{family}_{isa.name}", r.contraction.statement, initial)]
    return [*steps, Parallel(outer[-1])] if share is not None else steps


def _by_rows(r: Roles) -> tuple[str, Axis, Axis] | None:
    """The matrix and the result contiguous along one loop: `gemvn`, over the longest reduction."""
    columns = [axis for axis in r.columns if axis.right.constant == 1 and axis.output.constant == 1]
    return ("gemvn", columns[0], _longest(r.reduce)) if columns and r.reduce else None


def _by_columns(r: Roles) -> tuple[str, Axis, Axis] | None:
    """Matrix and vector contiguous along the reduction: `gemvt`."""
    reduced = [axis for axis in r.reduce if axis.right.constant == 1 and axis.left.constant == 1]
    return ("gemvt", _longest(r.columns), reduced[0]) if reduced and r.columns else None


def _longest(axes: tuple[Axis, ...]) -> Axis:
    return max(axes, key=lambda axis: axis.guess)


def _share(column: Axis, reduced: Axis, threads: int) -> int | None:
    """The columns of one thread, where there is work enough for several."""
    if threads == 1 or column.guess * reduced.guess < WORTHWHILE or column.guess < 64 * threads:
        return None
    return ceil(column.guess / threads / 64) * 64
