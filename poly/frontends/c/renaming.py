"""Variables whose names mean something else in Python or in a nest, such as `in` and `lambda`, called otherwise."""

from __future__ import annotations

import keyword
from collections.abc import Iterator

from pycparser import c_ast

from codegen.names import KEYWORDS, another
from microkernels.dtypes import DTYPES
from poly.frontends.names import CALLED, SET_WORDS

NO_NAMES = frozenset(("range", *DTYPES, *keyword.kwlist, *CALLED, *KEYWORDS))
"""Names that mean something else in the Python text of a nest, or in the C text of its kernel."""


def with_free_names(tree: c_ast.FileAST, words: frozenset[str]) -> dict[str, str]:
    """Give each variable of a tree that has such a name another one, which is none of `words`.

    Returns:
        The names of the renamed variables by their new ones.
    """
    taken = set(words)
    names: dict[str, str] = {}
    for name in sorted(set(variables(tree))):
        if name in NO_NAMES or name.lower() in SET_WORDS:
            names[name] = another(f"{name}_", frozenset(taken))
            taken.add(names[name])
    if names:
        rename(tree, names)
    return {new: old for old, new in names.items()}


def variables(node: c_ast.Node) -> Iterator[str]:
    """The names of variables and enumerators that are declared below a node."""
    for child in node:
        match child:
            case c_ast.Decl(name=str(name), type=kind) if not isinstance(kind, c_ast.FuncDecl):
                yield name
            case c_ast.Enumerator(name=name):
                yield name
        if not isinstance(child, c_ast.Struct | c_ast.Union):
            yield from variables(child)


def rename(node: c_ast.Node, names: dict[str, str]) -> None:
    """Rename variables below a node; functions, fields and types of the same names stay."""
    match node:
        case c_ast.FuncCall(name=c_ast.ID(), args=args):
            if args is not None:
                rename(args, names)
            return
        case c_ast.Struct() | c_ast.Union():
            return
        case c_ast.ID() | c_ast.Enumerator():
            node.name = names.get(node.name, node.name)
        case c_ast.Decl(type=kind) if not isinstance(kind, c_ast.FuncDecl):
            node.name = names.get(node.name, node.name)
        case c_ast.TypeDecl(declname=name):
            node.declname = names.get(name, name)
    for child in node:
        rename(child, names)
