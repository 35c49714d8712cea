"""Proof that a nest's accesses stay inside their arrays, for all sizes at once, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import islpy as isl

from codegen.expr import Load
from codegen.promotion import LARGEST_INDEX
from microkernels.errors import shown
from poly.errors import SpecError
from poly.ir.guards import unconditional
from poly.ir.nest import Array, Nest, Statement
from poly.ir.sets import at_least, first_point, parameters
from poly.ir.strides import accesses

PIECES = 4
"""A domain with more pieces is first checked without its conditions."""


def check(nest: Nest) -> Nest:
    """Prove that each access of each iteration is inside its array, and return the nest that is safe to run.

    An iteration that accesses an array without elements, at sizes of 0, is not an error: it does not run. The result's
    domains leave out such iterations; if there are none, the result is the nest itself.

        for i in range(M):                         for i in range(M):
            x[i] = A[i, 0]    for A: f32[M, N]         if N >= 1: x[i] = A[i, 0]

    Raises:
        SpecError: an array is larger than any memory, or an access is outside its array. The message names the access,
            the smallest sizes and the first iteration.
    """
    _check_room(nest)
    statements = tuple(_checked(statement, nest) for statement in nest.statements)
    same = all(new is old for new, old in zip(statements, nest.statements, strict=True))
    return nest if same else replace(nest, statements=statements)


def _check_room(nest: Nest) -> None:
    """Refuse arrays that are larger than any memory, in which offsets would not fit in 64 bits."""
    for array in nest.arrays:
        known = prod((max(e.constant, 1) for e in array.shape if not e.terms), start=array.dtype.size)
        if known > LARGEST_INDEX:
            raise SpecError(f"{array} of {nest.name} takes {shown(known)} bytes or more: 2**48 is the most.")


def _checked(statement: Statement, nest: Nest) -> Statement:
    domain = statement.domain
    simple = unconditional(statement) if domain.n_basic_set() > PIECES else statement
    for access in accesses(statement):
        array = nest.array(access.array)
        if array.kind == "scalar" or _outside(simple, access, array, nest).is_empty():
            continue
        outside = _outside(statement, access, array, nest)
        if outside.is_empty():
            continue
        not_empty = _not_empty(array, nest)
        wrong = outside.intersect_params(not_empty)
        if not wrong.is_empty():
            raise _error(nest, statement, access, _witness(wrong, statement))
        domain = domain.intersect_params(not_empty)
    return statement if domain is statement.domain else replace(statement, domain=domain)


def _outside(statement: Statement, access: Load, array: Array, nest: Nest) -> isl.Set:
    """The instances in which an access is outside its array."""
    relation = statement.relation(access).intersect_params(nest.context)
    return relation.subtract_range(array.elements(nest.sizes)).domain()


def _not_empty(array: Array, nest: Nest) -> isl.Set:
    """The sizes at which an array has elements."""
    return at_least(nest.sizes, array.shape, 1)


def _witness(outside: isl.Set, statement: Statement) -> dict[str, int]:
    """The sizes and iterators of one point: the smallest sizes, and then the first iteration."""
    sizes = parameters(outside)
    flat = outside.move_dims(isl.dim_type.set, 0, isl.dim_type.param, 0, len(sizes))
    return dict(zip((*sizes, *statement.iterators), first_point(flat), strict=True))


def _error(nest: Nest, statement: Statement, access: Load, values: Mapping[str, int]) -> SpecError:
    array = nest.array(access.array)
    axis, index, extent = next(
        (axis, i.evaluate(values), e.evaluate(values))
        for axis, (i, e) in enumerate(zip(access.indices, array.shape, strict=True))
        if not 0 <= i.evaluate(values) < e.evaluate(values)
    )
    verb = "writes" if access == statement.target else "reads"
    iteration = ", ".join(f"{name} = {values[name]}" for name in statement.iterators)
    sizes = ", ".join(f"{size} = {values[size]}" for size in nest.sizes)
    which = f"{array.shape[axis]} = {extent}" if array.shape[axis].terms else str(extent)
    where = " and ".join(filter(None, (iteration and f"at {iteration}", sizes and f"with {sizes}")))
    remedy = (
        "A negative index does not count from the end: write the extent minus it."
        if not access.indices[axis].terms and index < 0
        else f"Shorten the loops, put an `if` around the statement, or make {access.array} larger."
    )
    return SpecError(
        f"{nest.file}:{statement.line}: {statement.name} {verb} {access} outside of {access.array}\n"
        f"    {statement.text}\n"
        f"{where[:1].upper()}{where[1:]}, index {index} of dimension {axis} is outside of 0 <= index < {which}.\n"
        f"{remedy}"
    )
