"""Contractions over triangles and other slanted domains of results: packed and tiled like one over the box around it.

for i:                             for k_tile: for j_tile: for i_tile, if the tile has a result:
  for j <= i:                ->      microkernel over i, j, k on the whole tile, of which the results are stored
    for k:
      C[i, j] += A[i, k]*A[j, k]
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from microkernels.dtypes import DType
from poly.analysis.roles import Roles, enclosing_roles
from poly.autoschedule.rules.contraction import outlined, planned_steps
from poly.ir.nest import Nest, Statement
from poly.model.core import Target
from poly.schedules.steps import Step

LEAST = 4096
"""The least number of multiply-adds in the box around the domain for which tiles pay off."""


def triangle_steps(
    nest: Nest, statement: Statement, dtype: DType, loops: Mapping[str, str], target: Target, initial: str | None
) -> list[Step] | None:
    """The steps for a contraction whose domain is no box from 0; None if it is small, has no rows, or has open sizes.

    No code can be made of them if the results do not have the same steps of the reduction.
    """
    r = enclosing_roles(nest, statement)
    if r is None or not r.rows or _size(r) < LEAST:
        return None
    outline = outlined(r, dtype, target)
    return planned_steps(r, dtype, loops, target, initial) if outline and len(outline.work.rows) == 1 else None


def _size(r: Roles) -> int:
    """The multiply-adds in the box; 0 if its size is open, since the room of a copy might not be bounded then."""
    return prod(axis.extent or 0 for axis in (*r.batch, *r.overlaps, *r.rows, *r.columns, *r.reduce))
