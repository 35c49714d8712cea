"""Contractions over triangles and other slanted domains: packed and tiled like one over the box around it.

for i:                             for k_tile: for j_tile: for i_tile, if the tile has a result:
  for j <= i:                ->      microkernel over i, j, k on the whole tile, of which the results are stored
    for k:
      C[i, j] += A[i, k]*A[j, k]

All results of a tile need the same steps of the reduction. Where their number depends on the result, as in a triangular
matrix times another, the statement is parted: the steps that all results of a tile have, and the others near the edge.

for i: for j:                         for i: for j:
  for k < i:                            for k of the tile of i, k < i:   C[i, j] += L[i, k]*B[k, j]
    C[i, j] += L[i, k]*B[k, j]   ->   for i_tile: for j_tile:
                                        microkernel over i_2, j_2, and k_2 in earlier tiles
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod

import islpy as isl

from microkernels.dtypes import DType, f16
from poly.analysis.roles import Roles, enclosing_roles
from poly.autoschedule.rules.contraction import Tilings, outlined, planned_steps
from poly.errors import ScheduleError
from poly.ir.nest import Nest, Statement
from poly.ir.sets import integer, parameters
from poly.model import Choice
from poly.model.core import Target
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import Order, Part, Split, Step
from poly.schedules.steps.formulas import Formula

LEAST = 4096
"""The least number of multiply-adds in the box around the domain for which tiles pay off."""

ONE = "1"
"""The name of a bound's constant term."""


def triangle_steps(
    nest: Nest,
    statement: Statement,
    dtype: DType,
    loops: Mapping[str, str],
    target: Target,
    initial: str | None,
    choice: Choice | None = None,
) -> list[Step] | None:
    """The steps for a contraction whose domain is no box from 0; None if it is small, has no rows, or has open sizes.

    No code can be made of them if the results do not have the same steps of the reduction.
    """
    r = enclosing_roles(nest, statement)
    if r is None or not r.rows or _size(r) < LEAST:
        return None
    outline = outlined(r, dtype, target)
    return planned_steps(r, dtype, loops, target, initial, choice) if outline and len(outline.work.rows) == 1 else None


@dataclass(frozen=True)
class Evened:
    """A nest whose parts for microkernels are statements of their own; `edges` has the tiles of the others, by name."""

    start: Schedule
    edges: Mapping[str, Edge]

    @property
    def choices(self) -> dict[str, Choice]:
        """How the parts are tiled: as the edges were chosen for."""
        return {edge.whole: edge.choice for edge in self.edges.values()}


def even_reductions(nest: Nest, target: Target) -> Evened | None:
    """The loops as written, with each contraction parted whose tiles have unequal reductions; None if there is none."""
    made, edges = schedule(nest), dict[str, Edge]()
    for statement in nest.statements:
        edge = _edge(nest, statement, target)
        with suppress(ScheduleError):
            made = made.apply([edge.part] if edge else [])
            edges |= {statement.name: edge} if edge else {}
    return Evened(made, edges) if edges else None


@dataclass(frozen=True)
class Edge:
    """How a contraction is tiled, its tiles that slanted bounds cut, by iterator, and these bounds for whole tiles."""

    roles: Roles
    choice: Choice
    tiles: Mapping[str, int]
    bounds: Sequence[str]

    @property
    def whole(self) -> str:
        """The name of the statement of whole tiles."""
        return f"{self.roles.contraction.statement}_even"

    @property
    def part(self) -> Part:
        """The step that leaves the statement only the steps that some results of their tile do not have."""
        return Part(self.roles.contraction.statement, where=Formula(" and ".join(self.bounds)), into=self.whole)

    def steps(self, loops: Mapping[str, str]) -> list[Step]:
        """The steps for what is left: tile by tile, so that the steps beside an edge are few, and columns innermost."""
        cut = [(loops[name], tile) for name, tile in self.tiles.items()]
        tiles = [f"{loop}_tile" for loop, _ in cut]
        groups = (self.roles.rows, self.roles.reduce, self.roles.columns)
        inner = [loops[axis.iterator] for axes in groups for axis in axes]
        return [Split(tuple(cut)), Order((*(loop for loop in loops.values() if loop not in inner), *tiles, *inner))]


def _edge(nest: Nest, statement: Statement, target: Target) -> Edge | None:
    """The tiles of a contraction and the bounds that end inside them; None if there are none, or if it is small."""
    dtype = nest.array(statement.target.array).dtype
    r = enclosing_roles(nest, statement) if dtype != f16 else None
    if r is None or not r.rows or _size(r) < LEAST:
        return None
    outline = outlined(r, dtype, target)
    if outline is None or len(outline.work.rows) > 1 or len(outline.work.columns) > 1:
        return None
    choice = Tilings(outline, target).usual
    (row,), (column,), kernel = outline.work.rows, outline.work.columns, choice.kernel
    tiles, steps = {row.iterator: kernel.rows, column.iterator: kernel.columns}, {axis.iterator for axis in r.reduce}
    slanted = [
        bound for bound in _bounds(statement) if bound.keys() & tiles and len(bound.keys() & {*tiles, *steps}) > 1
    ]
    cut = {name: tile for name, tile in tiles.items() if any(name in bound for bound in slanted)}
    uneven = any(bound.keys() & steps for bound in slanted)
    return Edge(r, choice, cut, [_on_tiles(bound, cut) for bound in slanted]) if uneven else None


def _bounds(statement: Statement) -> Iterator[dict[str, int]]:
    """The bounds of a statement's instances: the coefficients of iterators, sizes and 1 in a sum that is at least 0."""
    kinds = ((isl.dim_type.set, statement.iterators), (isl.dim_type.param, parameters(statement.domain)))
    for bound in statement.domain.simple_hull().get_constraints():
        counts = {n: bound.get_coefficient_val(kind, at) for kind, names in kinds for at, n in enumerate(names)}
        if not bound.is_equality():
            values = {**counts, ONE: bound.get_constant_val()}
            yield {name: integer(count) for name, count in values.items() if not count.is_zero()}


def _on_tiles(bound: Mapping[str, int], tiles: Mapping[str, int]) -> str:
    """The condition that a bound holds for all points of a tile: at its first or its last, where it is tightest."""

    def side(sign: int) -> str:
        def term(name: str, count: int) -> str:
            if name == ONE:
                return str(count)
            tile = tiles.get(name, 1)
            first = f"{name} // {tile} * {tile}" if tile > 1 else name
            ends = f"{first} + {tile - 1}" if tile > 1 and sign < 0 else first
            return ends if count == 1 else f"{count} * ({ends})"

        return " + ".join(term(name, abs(count)) for name, count in bound.items() if sign * count > 0) or "0"

    return f"{side(-1)} <= {side(1)}"


def _size(r: Roles) -> int:
    """The multiply-adds in the box; 0 if its size is open, since the room of a copy might not be bounded then."""
    return prod(axis.extent or 0 for axis in (*r.batch, *r.overlaps, *r.rows, *r.columns, *r.reduce))
