"""pycparser's syntax trees: the nodes of one, copies with other parts, and what a function declares."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

from pycparser import c_ast


def below(node: c_ast.Node) -> Iterator[c_ast.Node]:
    """A node and all below it, in textual order."""
    yield node
    for child in node:
        yield from below(child)


def with_parts(node: c_ast.Node, change: Callable[[c_ast.Node], c_ast.Node]) -> c_ast.Node:
    """A copy of a node with its parts changed."""
    made = copy.copy(node)
    for slot in node.__slots__:
        value = getattr(node, slot, None) if slot not in ("coord", "__weakref__") else None
        if isinstance(value, c_ast.Node):
            setattr(made, slot, change(value))
        elif isinstance(value, list):
            setattr(made, slot, [change(part) if isinstance(part, c_ast.Node) else part for part in value])
    return made


def parameters(function: c_ast.FuncDef) -> list[c_ast.Decl]:
    """The declarations of a function's parameters that have names."""
    declared = function.decl.type.args
    return [node for node in (declared.params if declared else []) if isinstance(node, c_ast.Decl) and node.name]
