"""Indices, bounds and conditions: Python expressions as affine expressions and integer sets."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import reduce

import islpy as isl

from codegen.integer import Affine, Linear
from codegen.promotion import LARGEST_INDEX
from poly.frontends.scope import Scope
from poly.ir.sets import function, number

COMPARISONS: dict[type[ast.cmpop], Callable[[isl.Aff, isl.Aff], isl.Set]] = {
    ast.Lt: isl.Aff.lt_set, ast.LtE: isl.Aff.le_set, ast.Gt: isl.Aff.gt_set, ast.GtE: isl.Aff.ge_set,
    ast.Eq: isl.Aff.eq_set, ast.NotEq: isl.Aff.ne_set,
}  # fmt: skip
FORM = "An index, bound or condition is a sum of loop indices and sizes, each times an integer, plus an integer."


def affine(node: ast.expr, scope: Scope) -> Affine:
    """A Python expression as an affine expression of indices and sizes.

    Raises:
        SpecError: it is not affine, a name in it is neither an index nor a size, or an integer in it is too large.
    """
    found = _affine(node, scope)
    if found.largest > LARGEST_INDEX:
        why = f"`{ast.unparse(node)}` has the integer {shortened(found.largest)} in it"
        raise scope.source.error(node, why, "Indices, bounds and sizes, and their factors, go up to 2**48.")
    return found


def shortened(value: int) -> str:
    """An integer as text for a message; a long one is described by its number of digits."""
    digits = value.bit_length() * 3 // 10
    return str(value) if digits < 40 else f"of about {digits} digits"


def _affine(node: ast.expr, scope: Scope) -> Affine:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return Affine.of(value)
        case ast.Name(id=name):
            return _name(node, name, scope)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -affine(operand, scope)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return affine(operand, scope)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return affine(left, scope) + affine(right, scope)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return affine(left, scope) - affine(right, scope)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            factors = affine(left, scope), affine(right, scope)
            if factors[0].terms and factors[1].terms:
                raise scope.source.error(
                    node,
                    f"`{ast.unparse(node)}` is not affine: it multiplies two names",
                    f"{FORM} Give the array one more dimension instead (A[i, j] for A[i*N + j]), or fix one "
                    "factor as a global integer.",
                )
            number, other = sorted(factors, key=lambda factor: len(factor.terms))
            return other * number.constant
        case ast.BinOp(op=ast.FloorDiv() | ast.Mod()):
            raise scope.source.error(
                node,
                f"`{ast.unparse(node)}` is not affine: it divides",
                "Write two loops instead: with i = 4*q + r, `i // 4` is q and `i % 4` is r. "
                "(In the condition of an `if`, // and % by a positive integer are fine.)",
            )
        case ast.Subscript():
            raise scope.source.error(
                node,
                f"`{ast.unparse(node)}` is data: an index, bound or condition can't depend on an array's elements",
                f"{FORM} For a choice between values, use min and max.",
            )
    raise scope.source.error(node, f"`{ast.unparse(node)}` is not affine", FORM)


def _name(node: ast.Name, name: str, scope: Scope) -> Affine:
    if scope.is_index(name):
        return Affine.name(name)
    value = scope.constants.get(name)
    if isinstance(value, Linear):
        return value
    if name in scope.arguments or name in scope.locals or value is not None:
        raise scope.source.error(node, f"`{name}` is data, not an index or a size", FORM)
    raise scope.undeclared(node)


def condition(node: ast.expr, scope: Scope, space: isl.Space) -> isl.Set:
    """The set of indices that satisfy a condition, in a `space` of sizes and the indices of the loops around it.

    Integer division and remainder by positive integers are allowed.

    Raises:
        SpecError: it is not affine.
    """
    match node:
        case ast.Compare(left=first, ops=ops, comparators=others):
            return _comparison(node, [first, *others], ops, scope, space)
        case ast.BoolOp(op=op, values=values):
            join = isl.Set.intersect if isinstance(op, ast.And) else isl.Set.union
            return reduce(join, (condition(value, scope, space) for value in values))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return condition(operand, scope, space).complement()
        case ast.Constant(value=bool(value)):
            return isl.Set.universe(space) if value else isl.Set.empty(space)
    raise scope.source.error(
        node,
        f"`{ast.unparse(node)}` is not an affine condition",
        "Compare affine expressions with < <= > >= == !=, joined by and, or, not.",
    )


def _comparison(
    node: ast.Compare, terms: list[ast.expr], ops: list[ast.cmpop], scope: Scope, space: isl.Space
) -> isl.Set:
    parts = []
    for left, op, right in zip(terms, ops, terms[1:], strict=False):
        if type(op) not in COMPARISONS:
            raise scope.unordered(node)
        parts.append(COMPARISONS[type(op)](_quasi_affine(left, scope, space), _quasi_affine(right, scope, space)))
    return reduce(isl.Set.intersect, parts)


def _quasi_affine(node: ast.expr, scope: Scope, space: isl.Space) -> isl.Aff:
    """An affine expression that may have `//` and `%` by positive integers, as a function on the space."""
    match node:
        case ast.BinOp(left=left, op=ast.FloorDiv() | ast.Mod() as op, right=right):
            divisor = affine(right, scope)
            if divisor.terms or divisor.constant <= 0:
                why = f"`{ast.unparse(right)}` divides, and is no positive integer"
                raise scope.source.error(right, why, "Divide by a literal or a global integer.")
            inner, by = _quasi_affine(left, scope, space), number(divisor.constant)
            return inner.scale_down_val(by).floor() if isinstance(op, ast.FloorDiv) else inner.mod_val(by)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            first, second = _quasi_affine(left, scope, space), _quasi_affine(right, scope, space)
            return first.add(second) if isinstance(op, ast.Add) else first.sub(second)
    return function(space, affine(node, scope), scope.indices)
