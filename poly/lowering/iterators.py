"""Further iterators of statements, for values that are not affine: `S0[i, j]` becomes `S0[i, j, i mod 3]`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import islpy as isl

from poly.ir.nest import Statement
from poly.ir.tree import Band, Node, mapped


def extended(statement: Statement, names: Sequence[str], values: isl.Map) -> Statement:
    """The statement with further iterators, whose values are `{ S[i, j] -> [x] }`."""
    domain = values.wrap().flatten().set_tuple_name(statement.name)
    return replace(statement, iterators=(*statement.iterators, *names), domain=domain)


def on_extended(function: isl.PwAff, statement: Statement) -> isl.PwAff:
    """A function of the first iterators of a statement as one of all of them."""
    old, new = function.dim(isl.dim_type.in_), len(statement.iterators)
    if old == new:
        return function
    dropped = isl.MultiAff.project_out_map(statement.domain.get_space(), isl.dim_type.set, old, new - old)
    return function.pullback_multi_aff(dropped.set_tuple_name(isl.dim_type.out, statement.name))


def on_all_extended(node: Node, statements: Mapping[str, Statement]) -> Node:
    """The tree with the loops' functions on the iterators of `statements`, by their names."""
    if isinstance(node, Band):
        functions = (
            (name, on_extended(f, statements[name]) if name in statements else f) for name, f in node.functions
        )
        node = replace(node, functions=tuple(functions))
    return mapped(node, lambda child: on_all_extended(child, statements))
