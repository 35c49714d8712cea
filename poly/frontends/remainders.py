"""Quotients and remainders by sizes, which are affine by cases.

x[(i + 1) % N]    for 0 <= i < N is    x[i + 1] where i + 1 < N, and x[i + 1 - N] where i + 1 >= N
"""

from __future__ import annotations

import ast

import islpy as isl

from codegen.ir.integer import Affine
from poly.errors import SpecError
from poly.frontends.affine import affine, integer
from poly.frontends.expressions import is_data
from poly.frontends.scope import Scope
from poly.ir.sets import at_least, first_point, function, parameters

QUOTIENTS = range(-2, 4)
"""The quotients of a dividend by a size that make a case."""


def by_size(node: ast.AST, scope: Scope) -> ast.BinOp | None:
    """An expression below a node that divides indices and sizes by a size, without another one inside; or None."""
    for part in ast.walk(node):
        if _divides_by_size(part, scope):
            assert isinstance(part, ast.BinOp)
            return by_size(part.left, scope) or by_size(part.right, scope) or part
    return None


def _divides_by_size(node: ast.AST, scope: Scope) -> bool:
    match node:
        case ast.BinOp(op=ast.FloorDiv() | ast.Mod(), right=right) if not is_data(node, scope):
            return any(isinstance(part, ast.Name) and not _is_number(part.id, scope) for part in ast.walk(right))
    return False


def _is_number(name: str, scope: Scope) -> bool:
    value = scope.constants.get(name)
    return not scope.is_index(name) and value is not None and not getattr(value, "terms", ())


def cases(node: ast.BinOp, scope: Scope, domain: isl.Set) -> list[tuple[isl.Set, ast.expr]]:
    """The parts of a domain in which a quotient or remainder is affine, and its value there.

    Raises:
        SpecError: it is not affine by parts, or of more parts than QUOTIENTS tells.
    """
    space, indices = domain.get_space(), scope.indices
    dividend = function(space, integer(node.left, scope), indices)
    size = affine(node.right, scope)
    sizes = parameters(domain)
    found, left = [], domain.intersect_params(at_least(sizes, map(Affine.name, sizes), 0))
    for quotient in QUOTIENTS:
        low, high = (function(space, size * factor, indices) for factor in (quotient, quotient + 1))
        where = dividend.ge_set(low).intersect(dividend.lt_set(high))
        if not left.is_disjoint(where):
            found.append((domain.intersect(where), _value(node, quotient)))
            left = left.subtract(where)
    if not left.is_empty():
        raise _unbounded(node, scope, left)
    return found or [(domain, _value(node, 0))]  # in a domain without points, each case is as good


def _value(node: ast.BinOp, quotient: int) -> ast.expr:
    """The quotient, or the remainder `dividend - quotient*size`."""
    number = ast.Constant(abs(quotient))
    made: ast.expr
    if isinstance(node.op, ast.FloorDiv):
        made = number if quotient >= 0 else ast.UnaryOp(ast.USub(), number)
    elif not quotient:
        return node.left
    else:
        product = node.right if abs(quotient) == 1 else ast.BinOp(number, ast.Mult(), node.right)
        made = ast.BinOp(node.left, ast.Sub() if quotient > 0 else ast.Add(), product)
    return ast.fix_missing_locations(ast.copy_location(made, node))


def _unbounded(node: ast.BinOp, scope: Scope, outside: isl.Set) -> SpecError:
    """The error for a dividend that is outside of what QUOTIENTS covers at some point of a set."""
    sizes = parameters(outside)
    point = first_point(outside.move_dims(isl.dim_type.set, 0, isl.dim_type.param, 0, len(sizes)))
    values = ", ".join(f"{name} = {value}" for name, value in zip((*sizes, *scope.indices), point, strict=True))
    size, dividend = ast.unparse(node.right), ast.unparse(node.left)
    low, high = f"{QUOTIENTS.start}*({size})", f"{QUOTIENTS.stop}*({size})"
    return scope.source.error(
        node,
        f"`{ast.unparse(node)}` divides by a size, and is not known to be within {low} <= {dividend} < {high}: "
        f"it is not at {values}",
        f"Divide by a literal or a global integer, or bound the loops by the size: `for i in range({size}):`.",
    )
