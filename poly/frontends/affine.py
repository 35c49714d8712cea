"""Indices and bounds: Python expressions as affine and quasi-affine expressions, which divide by positive integers."""

from __future__ import annotations

import ast
from typing import cast

from codegen.ir.integer import Affine, Int, Linear, floor_quotient
from codegen.ir.promotion import LARGEST_INDEX
from poly.frontends.scope import Scope

FORM = "An index, bound or condition is a sum of loop indices and sizes, each times an integer, plus an integer."


def affine(node: ast.expr, scope: Scope) -> Affine:
    """A Python expression as an affine expression of indices and sizes.

    Raises:
        SpecError: as for `integer`, or it divides.
    """
    found = integer(node, scope)
    if not found.is_affine:
        remedy = "Write two loops instead: with i = 4*q + r, `i // 4` is q and `i % 4` is r."
        raise scope.source.error(node, f"`{ast.unparse(node)}` is not affine: it divides", remedy)
    return cast("Affine", found)


def integer(node: ast.expr, scope: Scope) -> Int:
    """A Python expression as a sum of indices, sizes, and quotients of such sums by positive integers, rounded down.

    Raises:
        SpecError: it is none, a name in it is neither an index nor a size, or an integer in it is too large.
    """
    found = _integer(node, scope)
    if found.largest > LARGEST_INDEX:
        why = f"`{ast.unparse(node)}` has the integer {shortened(found.largest)} in it"
        raise scope.source.error(node, why, "Indices, bounds and sizes, and their factors, go up to 2**48.")
    return found


def shortened(value: int) -> str:
    """An integer as text for a message; a long one is described by its number of digits."""
    digits = value.bit_length() * 3 // 10
    return str(value) if digits < 40 else f"of about {digits} digits"


def _integer(node: ast.expr, scope: Scope) -> Int:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return Affine.of(value)
        case ast.Name(id=name):
            return _name(node, name, scope)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -integer(operand, scope)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return integer(operand, scope)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return integer(left, scope) + integer(right, scope)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return integer(left, scope) - integer(right, scope)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _product(node, integer(left, scope), integer(right, scope), scope)
        case ast.BinOp(left=left, op=ast.FloorDiv() | ast.Mod() as op, right=right):
            dividend, by = integer(left, scope), _divisor(node, right, scope)
            quotient = floor_quotient(dividend, by)
            return quotient if isinstance(op, ast.FloorDiv) else dividend - quotient * by
        case ast.Subscript():
            raise scope.source.error(
                node,
                f"`{ast.unparse(node)}` is data: an index, bound or condition can't depend on an array's elements",
                f"{FORM} For a choice between values, use min and max.",
            )
    raise scope.source.error(node, f"`{ast.unparse(node)}` is not affine", FORM)


def _product(node: ast.expr, left: Int, right: Int, scope: Scope) -> Int:
    if left.terms and right.terms:
        raise scope.source.error(
            node,
            f"`{ast.unparse(node)}` is not affine: it multiplies two names",
            f"{FORM} Give the array one more dimension instead (A[i, j] for A[i*N + j]), or fix one "
            "factor as a global integer.",
        )
    return right * left.constant if not left.terms else left * right.constant


def _divisor(node: ast.expr, right: ast.expr, scope: Scope) -> int:
    divisor = integer(right, scope)
    if divisor.terms:
        why = f"`{ast.unparse(node)}` divides by a size here"
        remedy = "Divide by a literal or a global integer, or write the cases: `i - N if i >= N else i` for `i % N`."
        raise scope.source.error(node, why, remedy)
    if divisor.constant <= 0:
        why = f"`{ast.unparse(right)}` divides, and is no positive integer"
        raise scope.source.error(right, why, "Divide by a literal or a global integer.")
    return divisor.constant


def _name(node: ast.Name, name: str, scope: Scope) -> Affine:
    if scope.is_index(name):
        return Affine.name(name)
    value = scope.constants.get(name)
    if isinstance(value, Linear):
        return value
    if name in scope.arguments or name in scope.locals or value is not None:
        raise scope.source.error(node, f"`{name}` is data, not an index or a size", FORM)
    raise scope.undeclared(node)
