"""Changed copies of Python's syntax trees, which share what stays the same."""

from __future__ import annotations

import ast
import copy
from typing import Any, TypeVar

AstT = TypeVar("AstT", bound=ast.AST)


def replaced(whole: AstT, old: ast.expr, new: ast.expr) -> AstT:
    """The tree with one node in it replaced."""

    class Replacer(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            return new if node is old else self.generic_visit(copy.copy(node))

        def generic_visit(self, node: ast.AST) -> ast.AST:
            for name, value in ast.iter_fields(node):
                setattr(node, name, list(value) if isinstance(value, list) else value)
            return super().generic_visit(node)

    found: AstT = Replacer().visit(whole)
    return found
