"""Subscripts that divide, as further iterators, whose values isl's generator prints: `x[i // 2]` becomes `x[q]`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce

import islpy as isl

from codegen.ir.expr import Index, Load, NodeT, integers, map_operands, walk
from codegen.ir.integer import Affine, Int, Lookup, lookups, map_lookups
from poly.ir.nest import Nest, Statement
from poly.ir.sets import function, own_names
from poly.ir.tree import Node
from poly.lowering.iterators import extended, on_all_extended


def with_quotients(nest: Nest, tree: Node) -> tuple[Nest, Node]:
    """The nest and its loop tree with an iterator for each subscript that is not affine, and each such value."""
    changed = {s.name: _extended(s) for s in nest.statements}
    if all(changed[s.name] is s for s in nest.statements):
        return nest, tree
    return replace(nest, statements=tuple(changed.values())), on_all_extended(tree, changed)


def _extended(statement: Statement) -> Statement:
    used = (statement.target, *walk(statement.expr))
    divided = [value for node in used for value in integers(node) if not (value.is_affine or lookups(value))]
    if not divided:
        return statement
    names = dict(zip(dict.fromkeys(divided), own_names("quotient", len(divided)), strict=False))
    made = extended(statement, tuple(names.values()), _values(statement, names))
    places = {value: Affine.name(name) for value, name in names.items()}
    return replace(made, target=_at(statement.target, places), expr=_at(statement.expr, places))


def _values(statement: Statement, values: Iterable[Int]) -> isl.Map:
    """`{ S[i, j] -> [values] }`."""
    space = statement.domain.get_space()
    maps = (isl.Map.from_aff(function(space, value, statement.iterators)) for value in values)
    return reduce(isl.Map.flat_range_product, maps).intersect_domain(statement.domain)


def _at(node: NodeT, places: Mapping[Int, Affine]) -> NodeT:
    """The expression with iterators in place of values that are not affine."""
    match node:
        case Load(array, indices):
            return Load(array, _all_at(indices, places))  # type: ignore[return-value]
        case Index(value):
            return Index(places.get(value, value))  # type: ignore[return-value]
    return map_operands(node, lambda operand: _at(operand, places))


def _all_at(indices: tuple[Int, ...], places: Mapping[Int, Affine]) -> tuple[Int, ...]:
    def inner(lookup: Lookup) -> Lookup:
        return replace(lookup, indices=_all_at(lookup.indices, places))

    return tuple(places[index] if index in places else map_lookups(index, inner) for index in indices)
