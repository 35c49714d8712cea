"""Changed copies of Python's syntax trees, which share what stays the same."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from typing import Any, TypeVar

AstT = TypeVar("AstT", bound=ast.AST)

DEEPEST = 150
"""The most levels of nested expressions and statements; a sum of 100 terms has 100."""


class Copier(ast.NodeTransformer):
    """Visits a copy of each node."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        made = copy.copy(node)
        for name, value in ast.iter_fields(made):
            setattr(made, name, list(value) if isinstance(value, list) else value)
        return super().generic_visit(made)


def replaced(whole: AstT, old: ast.expr, new: ast.expr) -> AstT:
    """The tree with another expression in place of one, wherever it stands."""
    text = ast.dump(old)

    class Replacer(Copier):
        def visit(self, node: ast.AST) -> Any:
            is_old = node is old or (type(node) is type(old) and ast.dump(node) == text)
            return new if is_old else self.generic_visit(node)

    found: AstT = Replacer().visit(whole)
    return found


def substituted(tree: AstT, values: Mapping[str, ast.expr]) -> AstT:
    """The tree with copies of expressions in place of names; a name that is assigned gets another name."""

    class Substitution(Copier):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            found = Copier().visit(values.get(node.id, node))
            if isinstance(found, ast.Name):
                found.ctx = node.ctx
            return found  # type: ignore[no-any-return]  # a copy of an expression

        def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
            match node.annotation:
                case ast.Constant(value=str(text)):
                    kind = ast.parse(text, mode="eval").body
                    node = ast.AnnAssign(node.target, moved(kind, node), node.value, node.simple)
            return self.generic_visit(node)

    found: AstT = Substitution().visit(tree)
    return found


def moved(tree: AstT, place: ast.AST) -> AstT:
    """The tree with all its nodes at the place of another one; it is changed."""
    for node in ast.walk(tree):
        if isinstance(node, ast.expr | ast.stmt | ast.keyword | ast.arg):
            ast.copy_location(node, place)
    return tree


def too_deep(function: ast.FunctionDef) -> ast.stmt | None:
    """A statement with more levels than recursive functions can follow, if the function has one."""
    below: list[tuple[ast.AST, ast.stmt, int]] = [(node, node, 1) for node in function.body]
    while below:
        node, statement, depth = below.pop()
        if depth > DEEPEST:
            return statement
        for child in ast.iter_child_nodes(node):
            below.append((child, child if isinstance(child, ast.stmt) else statement, depth + 1))
    return None
