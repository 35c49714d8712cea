"""The `if`s on data of a nest's text: what is affine in one is tested first, and both its sides may be one choice."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Sequence


def affine_first(node: ast.If, is_data: Callable[[ast.expr], bool]) -> ast.If | None:
    """`if p and q` with an affine p and data q as an `if q` inside an `if p`; None unless some parts are each."""
    tests = _conjuncts(node.test)
    affine = [test for test in tests if not is_data(test)]
    data = [test for test in tests if is_data(test)]
    if not affine or not data:
        return None
    inner = ast.copy_location(ast.If(_all(data), node.body, copy.deepcopy(node.orelse)), node)  # it stands there twice
    return ast.copy_location(ast.If(_all(affine), [inner], node.orelse), node)


def _conjuncts(test: ast.expr) -> list[ast.expr]:
    """The parts that `and` joins, also where these are joined by it themselves."""
    match test:
        case ast.BoolOp(op=ast.And(), values=parts):
            return [inner for part in parts for inner in _conjuncts(part)]
    return [test]


def _all(tests: list[ast.expr]) -> ast.expr:
    return tests[0] if len(tests) == 1 else ast.copy_location(ast.BoolOp(ast.And(), tests), tests[0])


def as_choice(node: ast.If) -> ast.Assign | ast.AugAssign | None:
    """The one assignment that an `if` on data makes if both sides assign one thing alike; None if they don't.

    if x[i] > 0: y[i] = x[i]                         y[i] = x[i] if x[i] > 0 else 0
    else:        y[i] = 0                    ->
    """
    match _only(node.body), _only(node.orelse):
        case ast.Assign(targets=[target], value=value), ast.Assign(targets=[other], value=second):
            made: ast.Assign | ast.AugAssign = ast.Assign([target], ast.IfExp(node.test, value, second))
        case ast.AugAssign(target=target, op=op, value=value), ast.AugAssign(target=other, op=second_op, value=second):
            if type(op) is not type(second_op):
                return None
            made = ast.AugAssign(target, op, ast.IfExp(node.test, value, second))
        case _:
            return None
    if ast.dump(target) != ast.dump(other):
        return None
    ast.copy_location(made.value, node.test)
    return ast.copy_location(made, node)


def _only(body: Sequence[ast.stmt]) -> ast.stmt | None:
    """The only statement of a side of an `if`, itself a choice if it can be."""
    if len(body) != 1:
        return None
    (one,) = body
    return as_choice(one) if isinstance(one, ast.If) else one
