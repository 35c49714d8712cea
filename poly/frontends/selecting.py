"""The order of assignments below an `if` on data: what the condition reads is assigned last, if that changes nothing.

if x[i] < best:                     if x[i] < best:
    best = x[i]            is           where = i
    where = i                           best = x[i]

Each assignment below an `if` is a statement of its own, which tests the condition. The first one to change what is
tested must therefore be the last.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence


def tested_last(test: ast.expr, body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The assignments below a condition, with those to names in it behind all others that they may change places with.

    A body with loops or conditions keeps its order, as does one whose assignments need each other's values.
    """
    tested = {name.id for name in ast.walk(test) if isinstance(name, ast.Name)}
    moved = [node for node in body if isinstance(node, ast.Assign) and _written(node) & tested]
    others = [node for node in body if node not in moved]
    behind = [(first, second) for first in moved for second in others if body.index(first) < body.index(second)]
    return [*others, *moved] if all(_commute(first, second) for first, second in behind) else list(body)


def _commute(first: ast.stmt, second: ast.stmt) -> bool:
    """Whether two assignments may change places, as neither writes a name that the other has."""
    if not (isinstance(first, ast.Assign) and isinstance(second, ast.Assign)):
        return False
    return not (_written(first) & _names(second) or _written(second) & _names(first))


def _written(node: ast.Assign) -> set[str]:
    """The names of the arrays and scalars that an assignment changes."""
    targets = (target.value if isinstance(target, ast.Subscript) else target for target in node.targets)
    return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


def _names(node: ast.stmt) -> set[str]:
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
