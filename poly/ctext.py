"""Quasi-affine functions of loop values and sizes as integer expressions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import islpy as isl

from codegen.integer import Int, Linear, maximum, minimum
from codegen.isl_ast import integer

MOST_PIECES = 5
"""A function of more pieces is printed piece by piece."""


def value(function: isl.PwAff, names: Sequence[str]) -> Int:
    """The expression of a function of the sizes (its parameters) and of loops (its input dimensions).

    `names` are the variables of the loops in C.
    """
    function = function.coalesce()
    pieces = function.get_pieces()
    if 1 < len(pieces) <= MOST_PIECES:
        for extreme, bounds in ((minimum, _bounds(function, above=True)), (maximum, _bounds(function, above=False))):
            if bounds:
                return extreme(*(value(bound, names) for bound in bounds))
    known = function.dim(isl.dim_type.param)
    own = [f"#{position}" for position in range(len(names))]  # no size has such a name
    for position, name in enumerate(own):
        function = function.set_dim_id(isl.dim_type.in_, position, isl.Id(name))
    if names:
        function = function.reset_tuple_id(isl.dim_type.in_) if function.has_tuple_id(isl.dim_type.in_) else function
        function = function.move_dims(isl.dim_type.param, known, isl.dim_type.in_, 0, len(names))
    function = function.project_domain_on_params()
    build = isl.AstBuild.from_context(function.domain())
    return integer(build.expr_from_pw_aff(function), dict(zip(own, map(Linear.name, names), strict=True)))


def _bounds(function: isl.PwAff, above: bool) -> list[isl.PwAff]:
    """Those functions among a function's pieces of which it is the minimum (the maximum); none where it isn't.

    `N if N < 64 else 64` is the minimum of N and 64.
    """
    domain = function.domain()
    pieces = [isl.PwAff.from_aff(piece).intersect_domain(domain) for _, piece in function.get_pieces()]
    bounds = [p for p in pieces if domain.is_subset(function.le_set(p) if above else function.ge_set(p))]
    met = (function.eq_set(bound) for bound in bounds)
    return bounds if bounds and domain.is_subset(reduce(isl.Set.union, met)) else []


def constants(function: isl.PwAff) -> frozenset[int] | None:
    """The values that the function takes, or None where some piece is not constant."""
    values = set()
    for _, piece in function.get_pieces():
        if not piece.is_cst():
            return None
        values.add(int(piece.get_constant_val().to_python()))
    return frozenset(values)
