"""Quasi-affine functions of loop values and sizes as C expressions."""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from codegen.affine import Affine
from codegen.integer import integer


def text(function: isl.PwAff, names: Sequence[str]) -> str:
    """The C expression of a function of the sizes (its parameters) and of loops (its input dimensions).

    `names` are the variables of the loops in C.
    """
    return str(value(function, names))


def value(function: isl.PwAff, names: Sequence[str]) -> Affine:
    """The same as an affine expression, in which what is not affine is a name."""
    function = function.coalesce()
    known = function.dim(isl.dim_type.param)
    own = [f"#{position}" for position in range(len(names))]  # no size has such a name
    for position, name in enumerate(own):
        function = function.set_dim_id(isl.dim_type.in_, position, isl.Id(name))
    if names:
        function = function.reset_tuple_id(isl.dim_type.in_) if function.has_tuple_id(isl.dim_type.in_) else function
        function = function.move_dims(isl.dim_type.param, known, isl.dim_type.in_, 0, len(names))
    function = function.project_domain_on_params()
    build = isl.AstBuild.from_context(function.domain())
    return integer(build.expr_from_pw_aff(function), dict(zip(own, map(Affine.name, names), strict=True)))


def constants(function: isl.PwAff) -> frozenset[int] | None:
    """The values that the function takes, or None where some piece is not constant."""
    values = set()
    for _, piece in function.get_pieces():
        if not piece.is_cst():
            return None
        values.add(int(piece.get_constant_val().to_python()))
    return frozenset(values)
