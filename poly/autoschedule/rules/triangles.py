"""Contractions over triangles and other slanted domains: packed and tiled like one over the box around it.

for i:                             for k_tile: for j_tile: for i_tile, if the tile has a result:
  for j <= i:                ->      microkernel over i, j, k on the whole tile, of which the results are stored
    for k:
      C[i, j] += A[i, k]*A[j, k]

If a bound of the reduction is slanted, the steps that not all rows of a tile have are left to plain loops:

for i:                             for k_tile: for j_tile: for i_tile:
  for j:                             microkernel over i, j, and k up to the first row of the tile
    for k < i:               ->    for i:
      C[i, j] += A[i, k]*B[k, j]     for k from the first row of its tile to i:
                                       for j: C[i, j] += A[i, k]*B[k, j]

A triangle that is multiplied in place takes both in turn, since each replaces elements that the other has yet to read:

for i:                             for k_tile: for j_tile: for i_tile:
  for j:                             for i: for j: for k from i to the last row of the tile:
    for k > i:               ->        B[i, j] += A[i, k]*B[k, j]
      B[i, j] += A[i, k]*B[k, j]     microkernel over i, j, and k from there on
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, inf, prod

import islpy as isl

from microkernels.dtypes import DType
from poly.analysis.contraction import in_place
from poly.analysis.roles import Roles, enclosing_roles, roles_around
from poly.autoschedule.rules.contraction import Outline, Planner, Tilings, outlined, planned_steps
from poly.ir.instances import coordinates
from poly.ir.nest import Nest, Statement
from poly.model import Choice
from poly.model.core import Target
from poly.schedules.steps import Distribute, Part, Step
from poly.schedules.steps.formulas import Formula

LEAST = 4096
"""The least number of multiply-adds in the box around the domain for which tiles pay off."""

TILES = 4
"""The least number of tiles for each thread where the work of one depends on where it lies."""


def triangle_steps(
    nest: Nest, statement: Statement, dtype: DType, loops: Mapping[str, str], target: Target, initial: str | None
) -> list[Step] | None:
    """The steps for a contraction whose domain is no box from 0; None if it is small, or has no rows.

    No code can be made of them if the results do not have the same steps of the reduction.
    """
    r = enclosing_roles(nest, statement)
    if r is None or not r.rows or _size(r) < LEAST:
        return None
    outline = outlined(r, dtype, target)
    if outline is None or len(outline.work.rows) != 1:
        return None
    return planned_steps(r, dtype, loops, target, initial, _in_equal_parts(outline, target))


def _in_equal_parts(outline: Outline, target: Target) -> Choice:
    """The model's choice, with enough tiles of columns for threads to get about the same work: it grows along them."""
    choice = Tilings(outline, target).usual
    if choice.parallel != "columns":
        return choice
    alone = Tilings(outline, replace(target, threads=1)).usual
    width, count = alone.kernel.columns, prod(axis.guess for axis in outline.work.columns)
    cut = ceil(count / (TILES * target.threads) / width) * width
    return replace(alone, columns_cut=min(cut, alone.columns_cut or cut), parallel="columns")


@dataclass(frozen=True)
class SlantedSum:
    """A contraction with one slanted bound of its reduction, and how it is tiled.

    The bound depends on a loop `along` its rows or columns. `part` leaves the steps that not all of these in a register
    tile have to a statement of their own.
    """

    roles: Roles
    outline: Outline
    choice: Choice
    along: str
    part: Part

    def apart(self, loops: Mapping[str, str]) -> list[Step]:
        """The steps that give both statements their own loops; `loops` names those of the sum, outermost first."""
        return [self.part, Distribute(next(iter(loops.values())))]


def slanted_sum(nest: Nest, statement: Statement, dtype: DType, target: Target) -> SlantedSum | None:
    """A contraction as a slanted sum; None if it is none, or small."""
    return _slanted(statement, enclosing_roles(nest, statement), dtype, target)


def _slanted(statement: Statement, r: Roles | None, dtype: DType, target: Target) -> SlantedSum | None:
    if r is None or _size(r) < LEAST or not len(r.rows) == len(r.columns) == len(r.reduce) == 1:
        return None
    outline = outlined(r, dtype, target)
    if outline is None:
        return None
    choice, (summed,) = Tilings(outline, target).usual, r.reduce
    kernel = choice.kernel
    for along, (axis,), size in (("rows", r.rows, kernel.rows), ("columns", r.columns, kernel.columns)):
        slant = _slant(statement, axis.iterator, summed.iterator)
        if slant is not None and axis.guess >= 2 * size:
            upper, behind = slant
            block = f"{axis.iterator} // {size} * {size} + {behind if upper else behind + size}"
            near = Formula(f"{summed.iterator} {'>=' if upper else '<'} {block}")
            part = Part(statement.name, where=near, into=f"{statement.name}_near")
            return SlantedSum(r, outline, _cut_evenly(choice, size), along, part)
    return None


def _cut_evenly(choice: Choice, size: int) -> Choice:
    """The choice with the reduction cut where tiles of the slanted bound end."""
    cut = choice.reduce_cut
    return choice if cut is None else replace(choice, reduce_cut=max(cut // size, 1) * size)


def slanted_sum_steps(
    nest: Nest, statement: Statement, dtype: DType, loops: Mapping[str, str], target: Target
) -> list[Step] | None:
    """The steps for a slanted sum; None if a contraction is none."""
    found = slanted_sum(nest, statement, dtype, target)
    if found is None:
        return None
    return [*found.apart(loops), *Planner(found.outline, found.choice, loops, None).steps()]


def in_place_steps(
    nest: Nest, statement: Statement, dtype: DType, loops: Mapping[str, str], target: Target
) -> list[Step] | None:
    """The steps for a slanted sum that replaces elements which it has read before; None if a statement is none."""
    contraction = in_place(nest, statement)
    r = roles_around(nest, statement, contraction) if contraction else None
    found = _slanted(statement, r, dtype, target)
    if found and found.choice.parallel == found.along:
        found = _slanted(statement, r, dtype, replace(target, threads=1))
    if found is None:
        return None
    return [found.part, *Planner(found.outline, found.choice, loops, None, beside=True).steps()]


def _slant(statement: Statement, own: str, summed: str) -> tuple[bool, int] | None:
    """Whether a bound is `summed < own + b` or `summed > own + b`, and `b`; None if there is neither, or both."""
    values = coordinates(statement.domain, statement.iterators)
    first, second, apart = (
        isl.Map.from_pw_aff(value).intersect_domain(statement.domain).range()
        for value in (values[summed], values[own], values[summed].sub(values[own]))
    )
    ends = (end for one in (first, second, apart) for end in (one.dim_min_val(0), one.dim_max_val(0)))
    low, high, own_low, own_high, least, most = map(_number, ends)
    upper, lower = most < high - own_low, least > low - own_high
    return None if upper == lower else (upper, int(most + 1 if upper else least - 1))


def _number(end: isl.Val) -> float:
    """A bound as a number, infinite if it depends on open sizes."""
    return int(end.to_python()) if end.is_int() else inf * end.sgn()


def _size(r: Roles) -> int:
    """The multiply-adds in the box, with open sizes at assumed values."""
    return prod(axis.guess for axis in (*r.batch, *r.overlaps, *r.rows, *r.columns, *r.reduce))
