"""The dense box around the footprint of an array in each iteration of the surrounding loops.

    { copy[i_tile] -> u[x0, x1] : 64*i_tile - 1 <= x0 <= 64*i_tile + 64 and 0 <= x1 < N }

(tiles of a five-point stencil) starts at `(64*i_tile - 1, 0)` and has the extents `(66, N)`.
"""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from codegen.ir.integer import Int, Linear
from poly.lowering.ctext import value


@dataclass(frozen=True)
class Box:
    """The start and extents of a box, and the elements to copy.

    `starts` has a function `{ copy[loops] -> [x] }` for each dimension of the array; `extents` depend on the sizes
    alone. `elements` is `{ copy[loops] -> A[x0, x1] }`.
    """

    starts: tuple[isl.PwAff, ...]
    extents: tuple[Int, ...]
    elements: isl.Map


def enclose(footprint: isl.Map, array: isl.Set) -> Box:
    """The box around a non-empty footprint `{ copy[loops] -> A[x0, x1] }`; `array` is `{ A[x0, x1] }`.

    A footprint of one piece is copied exactly; of several pieces, such as the cross that a stencil reads, the hull is
    copied. The footprint is cut to the array: with conditions of statements left out, it may go beyond.
    """
    inside = footprint.range().is_subset(array)
    elements = (footprint if inside else footprint.intersect_range(array)).coalesce()
    if elements.n_basic_map() > 1:
        hull = isl.Map.from_basic_map(footprint.simple_hull())
        elements = hull.intersect_domain(footprint.domain()).intersect_range(array)
    sides = [side(elements, d) for d in range(elements.dim(isl.dim_type.out))]
    return Box(tuple(start for start, _ in sides), tuple(extent for _, extent in sides), elements)


def side(footprint: isl.Map, dimension: int) -> tuple[isl.PwAff, Int]:
    """The start and the extent, along a dimension, of the box around a non-empty footprint.

    One of several lower bounds, such as those in `max(0, 64*i_tile - 1)`, keeps the indices simpler than their maximum.
    It is the start if the extent then has a constant bound; otherwise the maximum is.
    """
    least, high = footprint.dim_min(dimension), footprint.dim_max(dimension)
    domain = footprint.domain()
    bounds = [isl.PwAff.from_aff(aff) for _, aff in least.get_pieces()]
    single = [bound for bound in bounds if domain.is_subset(bound.le_set(least))]
    extents = [(_number(_counts(bound, high)), number) for number, bound in enumerate(single)]
    bounded = [(extent, number) for extent, number in extents if extent is not None]
    if bounded:
        least_extent, number = min(bounded)
        return single[number], Linear.of(least_extent)
    start = single[0] if len(bounds) == 1 else least
    return start, value(_counts(start, high).dim_max(0), ())


def _counts(start: isl.PwAff, high: isl.PwAff) -> isl.Set:
    """`{ [count] }`: all extents of the box."""
    return isl.Map.from_pw_aff(high.sub(start).add_constant_val(isl.Val(1))).range().coalesce()


def _number(counts: isl.Set) -> int | None:
    """The greatest count over all sizes; None if it is unbounded."""
    most = counts.project_out(isl.dim_type.param, 0, counts.dim(isl.dim_type.param)).dim_max_val(0)
    return int(most.to_python()) if most.is_int() else None
