"""Conditions: Python's comparisons of indices and sizes as integer sets."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import reduce

import islpy as isl

from poly.frontends import extremes, remainders
from poly.frontends.affine import integer
from poly.frontends.expressions import is_data
from poly.frontends.extremes import extreme
from poly.frontends.remainders import by_size
from poly.frontends.rewriting import AstT, replaced
from poly.frontends.scope import Scope
from poly.ir.sets import function

COMPARISONS: dict[type[ast.cmpop], Callable[[isl.Aff, isl.Aff], isl.Set]] = {
    ast.Lt: isl.Aff.lt_set, ast.LtE: isl.Aff.le_set, ast.Gt: isl.Aff.gt_set, ast.GtE: isl.Aff.ge_set,
    ast.Eq: isl.Aff.eq_set, ast.NotEq: isl.Aff.ne_set,
}  # fmt: skip


def condition(node: ast.expr, scope: Scope, domain: isl.Set) -> isl.Set:
    """The indices in the `domain` of the loops around a condition, and perhaps others, that satisfy it.

    Raises:
        SpecError: it is not affine.
    """
    parts = parted(node, scope, domain)
    if parts is None:
        return _holds(node, scope, domain.get_space())
    return reduce(isl.Set.union, (where.intersect(condition(part, scope, where)) for where, part in parts))


def parted(node: AstT, scope: Scope, domain: isl.Set) -> list[tuple[isl.Set, AstT]] | None:
    """The parts of a domain that differ in a choice, a quotient by a size or an extreme, and the expression in each.

    None if the expression has none of these.
    """
    choice = next((n for n in ast.walk(node) if isinstance(n, ast.IfExp) and not is_data(n.test, scope)), None)
    if choice is not None:
        test = condition(choice.test, scope, domain)
        sides = [(domain.intersect(test), choice.body), (domain.subtract(test), choice.orelse)]
        some = [side for side in sides if not side[0].is_empty()]
        return [(where, replaced(node, choice, side)) for where, side in some or sides]
    call = extreme(node, scope)
    divided = by_size(node if call is None else call, scope)
    if divided is not None:
        return [(where, replaced(node, divided, value)) for where, value in remainders.cases(divided, scope, domain)]
    if call is not None:
        return [(where, replaced(node, call, value)) for where, value in extremes.cases(call, scope, domain)]
    return None


def _holds(node: ast.expr, scope: Scope, space: isl.Space) -> isl.Set:
    match node:
        case ast.Compare(left=first, ops=ops, comparators=others):
            return _comparison(node, [first, *others], ops, scope, space)
        case ast.BoolOp(op=op, values=values):
            join = isl.Set.intersect if isinstance(op, ast.And) else isl.Set.union
            return reduce(join, (_holds(value, scope, space) for value in values))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _holds(operand, scope, space).complement()
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
    sides = [function(space, integer(term, scope), scope.indices) for term in terms]
    parts = []
    for op, left, right in zip(ops, sides, sides[1:], strict=False):
        if type(op) not in COMPARISONS:
            raise scope.unordered(node)
        parts.append(COMPARISONS[type(op)](left, right))
    return reduce(isl.Set.intersect, parts)
