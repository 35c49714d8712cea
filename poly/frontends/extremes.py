"""max, min and abs of indices and sizes, which are affine by cases.

x[max(i - 1, 0)]    is    x[i - 1] where i - 1 >= 0, and x[0] where i - 1 < 0
"""

from __future__ import annotations

import ast

import islpy as isl

from poly.frontends.affine import integer
from poly.frontends.expressions import is_data
from poly.frontends.scope import Scope
from poly.ir.sets import function

EXTREMES = ("max", "min", "abs")


def extreme(node: ast.AST, scope: Scope) -> ast.Call | None:
    """One of EXTREMES in the subscripts of an expression, or in an affine one, without another one inside; or None."""
    whole = not isinstance(node, ast.expr) or is_data(node, scope)
    places = [part.slice for part in ast.walk(node) if isinstance(part, ast.Subscript)] if whole else [node]
    calls = (part for place in places for part in ast.walk(place) if isinstance(part, ast.Call))
    return _innermost([call for call in calls if _name(call, scope) in EXTREMES and not is_data(call, scope)])


def _innermost(calls: list[ast.Call]) -> ast.Call | None:
    return next((call for call in calls if not any(part in calls for part in ast.walk(call) if part is not call)), None)


def _name(call: ast.Call, scope: Scope) -> str | None:
    return scope.functions.get(ast.unparse(call.func)) if call.args and not call.keywords else None


def cases(call: ast.Call, scope: Scope, domain: isl.Set) -> list[tuple[isl.Set, ast.expr]]:
    """The parts of a domain in which an extreme is one of its arguments, or the size of its only one, and which.

    Raises:
        SpecError: an argument is not affine.
    """
    kind, args = _name(call, scope), list(call.args)
    if kind == "abs":
        kind, args = "max", [args[0], ast.copy_location(ast.UnaryOp(ast.USub(), args[0]), args[0])]
    values = [function(domain.get_space(), integer(arg, scope), scope.indices) for arg in args]
    beats = isl.Aff.ge_set if kind == "max" else isl.Aff.le_set
    found, left = [], domain
    for arg, value in zip(args, values, strict=True):
        where = left
        for other in values:
            where = where.intersect(beats(value, other))
        left = left.subtract(where)
        if not where.is_empty():
            found.append((where, arg))
    return found or [(domain, args[0])]  # in a domain without points, each case is as good
