"""The dense box that holds what each iteration of some loops reads of an array.

    { copy[i_tile] -> u[x0, x1] : 64*i_tile - 1 <= x0 <= 64*i_tile + 64 and 0 <= x1 < N }

(tiles of a five-point stencil) starts at `(64*i_tile - 1, 0)` and has the extents `(66, N)`.
"""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from codegen.integer import Int, Linear
from poly.lowering.ctext import value


@dataclass(frozen=True)
class Box:
    """Where a box starts, and how large it is in every iteration.

    `starts` has, for each dimension of the array, a function `{ copy[loops] -> [x] }`; `extents` are in terms of the
    sizes alone. `elements` is `{ copy[loops] -> A[x0, x1] }`: what is to be copied.
    """

    starts: tuple[isl.PwAff, ...]
    extents: tuple[Int, ...]
    elements: isl.Map


def enclose(footprint: isl.Map, array: isl.Set) -> Box:
    """The box around a footprint `{ copy[loops] -> A[x0, x1] }` that is not empty; `array` is `{ A[x0, x1] }`.

    What is copied is exact where it is one piece. Several pieces, as the cross that a stencil reads, are filled up. A
    footprint of statements without their conditions may go beyond the array.
    """
    inside = footprint.range().is_subset(array)
    elements = (footprint if inside else footprint.intersect_range(array)).coalesce()
    if elements.n_basic_map() > 1:
        hull = isl.Map.from_basic_map(footprint.simple_hull())
        elements = hull.intersect_domain(footprint.domain()).intersect_range(array)
    sides = [_side(elements, d) for d in range(elements.dim(isl.dim_type.out))]
    return Box(tuple(start for start, _ in sides), tuple(extent for _, extent in sides), elements)


def _side(footprint: isl.Map, dimension: int) -> tuple[isl.PwAff, Int]:
    """The box's start along a dimension, and its extent.

    Of the bounds from below, `max(0, 64*i_tile - 1)`, one alone keeps the indices simple. It is taken where it leaves
    the extent bounded by a number, and only otherwise their maximum.
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
    """`{ [count] }`: the extents that occur."""
    return isl.Map.from_pw_aff(high.sub(start).add_constant_val(isl.Val(1))).range().coalesce()


def _number(counts: isl.Set) -> int | None:
    """The greatest count for any sizes, if there is one."""
    most = counts.project_out(isl.dim_type.param, 0, counts.dim(isl.dim_type.param)).dim_max_val(0)
    return int(most.to_python()) if most.is_int() else None
