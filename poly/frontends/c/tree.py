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


class Field(c_ast.Node):  # type: ignore[misc]
    """The name of a member behind `.` or `->`: no variable, unlike the identifier that pycparser has there."""

    __slots__ = ("coord", "name")
    attr_names = ("name",)

    def __init__(self, name: str, coord: c_ast.Node | None = None) -> None:
        self.name, self.coord = name, coord

    def __iter__(self) -> Iterator[c_ast.Node]:
        return iter(())

    def children(self) -> tuple[()]:
        return ()


def with_fields(tree: c_ast.Node) -> None:
    """Give each access of a member a `Field`."""
    for node in below(tree):
        if isinstance(node, c_ast.StructRef) and isinstance(node.field, c_ast.ID):
            node.field = Field(node.field.name, node.field.coord)


def parameters(function: c_ast.FuncDef) -> list[c_ast.Decl]:
    """The declarations of a function's parameters that have names."""
    declared = function.decl.type.args
    return [node for node in (declared.params if declared else []) if isinstance(node, c_ast.Decl) and node.name]
