"""The order of assignments below an `if` on data: what the condition reads is assigned last, if that changes nothing.

if x[i] < best:                     if x[i] < best:
    best = x[i]            is           where = i
    where = i                           best = x[i]

Each assignment below an `if` is a statement of its own, which tests the condition. The first one to change what is
tested must therefore be the last.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

ASSIGNMENTS = (ast.Assign, ast.AugAssign, ast.AnnAssign)


def tested_last(test: ast.expr, body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The assignments below a condition, with those to names in it behind all others that they may change places with.

    A body with loops or conditions keeps its order, as does one whose assignments need each other's values.
    """
    tested = {name.id for name in ast.walk(test) if isinstance(name, ast.Name)}
    moved = [node for node in body if isinstance(node, ast.Assign) and _written(node) & tested]
    others = [node for node in body if node not in moved]
    behind = [(first, second) for first in moved for second in others if body.index(first) < body.index(second)]
    return [*others, *moved] if all(_commute(first, second) for first, second in behind) else list(body)


def overwritten(test: ast.expr, branches: Sequence[ast.stmt]) -> list[ast.expr]:
    """The elements and scalars in a condition that assignments below it change before others run, each text once."""
    simple = [node for branch in branches for node in ast.walk(branch) if isinstance(node, ASSIGNMENTS)]
    changed = {name for node in simple[:-1] for name in _written(node)}
    found = {ast.unparse(node): node for node in _elements(test) if _names(_array(node)) <= changed}
    return [*found.values()]


def _elements(node: ast.AST) -> Iterator[ast.expr]:
    """The elements and names that an expression reads, without those in subscripts."""
    if isinstance(node, ast.Subscript | ast.Name):
        yield node
    else:
        for part in ast.iter_child_nodes(node):
            yield from _elements(part)


def read_names(node: ast.AST) -> set[str]:
    """The names of these elements' arrays, and of the scalars."""
    return {name for one in _elements(node) for name in _names(_array(one))}


def _array(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Subscript) else node


def _commute(first: ast.stmt, second: ast.stmt) -> bool:
    """Whether two assignments may change places, as neither writes a name that the other has."""
    if not (isinstance(first, ast.Assign) and isinstance(second, ast.Assign)):
        return False
    return not (_written(first) & _names(second) or _written(second) & _names(first))


def _written(node: ast.Assign | ast.AugAssign | ast.AnnAssign) -> set[str]:
    """The names of the arrays and scalars that an assignment changes."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {name for target in targets for name in _names(_array(target))}


def _names(node: ast.AST) -> set[str]:
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
