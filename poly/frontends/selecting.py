"""The assignments below an `if` on data: what it reads is assigned last, if that changes nothing, or kept before.

if x[i] < best:                     if x[i] < best:
    best = x[i]            is           where = i
    where = i                           best = x[i]

Each assignment below an `if` is a statement of its own, which tests the condition. The first one to change what is
tested must therefore be the last, or test a copy.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from codegen.names import another
from poly.frontends.rewriting import Copier


def tested_last(test: ast.expr, body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The assignments below a condition, with those to names in it behind all others that they may change places with.

    A body with loops or conditions keeps its order, as does one whose assignments need each other's values.
    """
    tested = {name.id for name in ast.walk(test) if isinstance(name, ast.Name)}
    last = [node for node in body if isinstance(node, ast.Assign) and _written(node) & tested]
    others = [node for node in body if node not in last]
    behind = [(first, second) for first in last for second in others if body.index(first) < body.index(second)]
    return [*others, *last] if all(_commute(first, second) for first, second in behind) else list(body)


def with_kept(node: ast.If, taken: set[str]) -> tuple[list[ast.stmt], ast.If] | None:
    """Copies of what an `if` tests and changes before the last assignment below it, and the `if` of these copies.

        if v > top[q]:               top_tested = top[q]
            t = top[q]               if v > top_tested:
            top[q] = v       ->          t = top[q]
            v = t                        top[q] = v
                                         v = t

    None if there is nothing to keep. The copies have names that are not yet `taken`.
    """
    below = [*_assignments(tested_last(node.test, node.body)), *_assignments(node.orelse)]
    changed = {name for one in below[:-1] for name in _written(one)}
    tested = [part for part in _operands(node.test) if _base(part) in changed]
    if not tested:
        return None
    names: dict[str, str] = {}
    copies: list[ast.stmt] = []
    for part in tested:
        text = ast.unparse(part)
        if text not in names:
            names[text] = another(f"{_base(part)}_tested", frozenset(taken))
            taken.add(names[text])
            target = ast.copy_location(ast.Name(names[text], ast.Store()), part)
            copies.append(ast.copy_location(ast.Assign([target], part), part))
    return copies, ast.copy_location(ast.If(_Kept(names).visit(node.test), node.body, node.orelse), node)


class _Kept(Copier):
    """Names in place of elements and names, by their texts."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self._named(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        return self._named(node)

    def _named(self, node: ast.expr) -> ast.AST:
        name = self._names.get(ast.unparse(node))
        return node if name is None else ast.copy_location(ast.Name(name, ast.Load()), node)


def _assignments(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The assignments of statements in their order, those in loops twice."""
    for node in body:
        match node:
            case ast.If(body=then, orelse=other):
                yield from _assignments([*then, *other])
            case ast.For(body=inside):
                yield from (*_assignments(inside), *_assignments(inside))
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign():
                yield node


def _operands(node: ast.expr) -> Iterator[ast.expr]:
    """The elements and names in an expression; what is in subscripts stays there."""
    if isinstance(node, ast.Subscript | ast.Name):
        yield node
        return
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.expr):
            yield from _operands(part)


def _base(node: ast.expr) -> str:
    """The name of the array or scalar that an element or a name is of."""
    return _base(node.value) if isinstance(node, ast.Subscript) else getattr(node, "id", "")


def _commute(first: ast.stmt, second: ast.stmt) -> bool:
    """Whether two assignments may change places, as neither writes a name that the other has."""
    if not (isinstance(first, ast.Assign) and isinstance(second, ast.Assign)):
        return False
    return not (_written(first) & _names(second) or _written(second) & _names(first))


def _written(node: ast.stmt) -> set[str]:
    """The names of the arrays and scalars that an assignment changes."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
    places = (target.value if isinstance(target, ast.Subscript) else target for target in targets)
    return {name.id for place in places for name in ast.walk(place) if isinstance(name, ast.Name)}


def _names(node: ast.stmt) -> set[str]:
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
