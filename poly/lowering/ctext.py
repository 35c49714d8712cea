"""Convert quasi-affine functions and sets of loop values and sizes to integer expressions and conditions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import islpy as isl

from codegen.ir.integer import Int, Linear, Select, Test, maximum, minimum, walk
from codegen.ir.isl_ast import condition, integer
from codegen.ir.ranges import Ranges
from codegen.names import c_name
from poly.ir.sets import parameters

MOST_PIECES = 5
"""A function of more pieces is not simplified to a minimum or maximum."""

MANY = 64
"""The values of a function are not told apart if they may be more than these."""


def value(function: isl.PwAff, names: Sequence[str]) -> Int:
    """The expression of a function of the sizes (its parameters) and of loops (its input dimensions).

    `names` are the C variables of the loops.
    """
    function = function.coalesce()
    return Ranges.of_sizes(map(c_name, parameters(function))).value(_whole(function, names))


def _whole(function: isl.PwAff, names: Sequence[str]) -> Int:
    made = _printed(function, names)
    if function.n_piece() > MOST_PIECES or not any(isinstance(atom, Select) for atom in walk(made)):
        return made
    for extreme, above in ((minimum, True), (maximum, False)):
        bounds = _bounds(function, above)
        if bounds:
            return extreme(*(_printed(bound, names) for bound in bounds))
    return made


def _printed(function: isl.PwAff, names: Sequence[str]) -> Int:
    """The expression that isl generates for a function."""
    known, own = function.dim(isl.dim_type.param), _own(names)
    for position, name in enumerate(own):
        function = function.set_dim_id(isl.dim_type.in_, position, isl.Id(name))
    if names:
        function = function.reset_tuple_id(isl.dim_type.in_) if function.has_tuple_id(isl.dim_type.in_) else function
        function = function.move_dims(isl.dim_type.param, known, isl.dim_type.in_, 0, len(names))
    function = function.project_domain_on_params()
    build = isl.AstBuild.from_context(function.domain())
    return integer(build.expr_from_pw_aff(function), _called(parameters(function)[:known], names))


def test(points: isl.Set, names: Sequence[str]) -> Test:
    """The condition under which sizes (its parameters) and loops (its dimensions) are in a set; `names` as above."""
    known = points.dim(isl.dim_type.param)
    for position, name in enumerate(_own(names)):
        points = points.set_dim_id(isl.dim_type.set, position, isl.Id(name))
    points = points.move_dims(isl.dim_type.param, known, isl.dim_type.set, 0, len(names)).params()
    build = isl.AstBuild.from_context(isl.Set.universe(points.get_space()))
    sizes = parameters(points)[:known]
    return Ranges.of_sizes(map(c_name, sizes)).test(condition(build.expr_from_set(points), _called(sizes, names)))


def _own(names: Sequence[str]) -> list[str]:
    """Names for loops that no size has."""
    return [f"#{position}" for position in range(len(names))]


def _called(sizes: Sequence[str], names: Sequence[str]) -> dict[str, Int]:
    """The C variables of sizes and of loops."""
    own = dict(zip(_own(names), names, strict=True))
    return {name: Linear.name(new) for name, new in ({size: c_name(size) for size in sizes} | own).items()}


def _bounds(function: isl.PwAff, above: bool) -> list[isl.PwAff]:
    """The pieces of a function whose minimum (maximum, unless `above`) it is; empty if it is not of that form.

    `N if N < 64 else 64` is the minimum of N and 64.
    """
    domain = function.domain()
    simple = (isl.PwAff.from_aff(piece.gist(where)) for where, piece in function.get_pieces())
    pieces = [piece.intersect_domain(domain) for piece in simple]
    bounds = [p for p in pieces if domain.is_subset(function.le_set(p) if above else function.ge_set(p))]
    met = (function.eq_set(bound) for bound in bounds)
    return bounds if bounds and domain.is_subset(reduce(isl.Set.union, met)) else []


def constants(function: isl.PwAff, domain: isl.Set) -> frozenset[int] | None:
    """The values that the function takes in a domain; None if they depend on sizes, or may be too many."""
    function = function.intersect_domain(domain)
    low, high = function.min_val(), function.max_val()
    if not (low.is_int() and high.is_int()) or high.to_python() - low.to_python() >= MANY:
        return None
    taken = isl.Map.from_pw_aff(function).range()
    each = range(low.to_python(), high.to_python() + 1)
    return frozenset(one for one in each if not taken.fix_val(isl.dim_type.set, 0, isl.Val(one)).is_empty())
