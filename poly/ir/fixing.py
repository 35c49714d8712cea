"""Replace sizes by values in sets, functions, expressions and loop trees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import islpy as isl

from codegen.ir.expr import Const, Index, Load, NodeT, map_operands
from poly.ir.tree import Band, Micro, Node, map_absorbed, mapped

Values = Mapping[str, int]


def fix_set(domain: isl.Set, values: Values) -> isl.Set:
    """The set for given values of some parameters, which are removed from its space."""
    for name, value in values.items():
        position = domain.find_dim_by_name(isl.dim_type.param, name)
        if position >= 0:
            domain = domain.fix_val(isl.dim_type.param, position, value).project_out(isl.dim_type.param, position, 1)
    return domain


def fix_function(function: isl.PwAff, values: Values) -> isl.PwAff:
    """The function for given values of some parameters, which are removed from its space."""
    graph = isl.Map.from_pw_aff(function)
    for name, value in values.items():
        position = graph.find_dim_by_name(isl.dim_type.param, name)
        if position >= 0:
            graph = graph.fix_val(isl.dim_type.param, position, value).project_out(isl.dim_type.param, position, 1)
    return isl.PwMultiAff.from_map(graph).get_pw_aff(0)


def fix_load(load: Load, values: Values) -> Load:
    return Load(load.array, tuple(index.substitute(values) for index in load.indices))


def fix_expr(node: NodeT, values: Values) -> NodeT:
    """The expression with values in place of sizes; an index expression that becomes a number is a `Const`."""
    match node:
        case Index(value):
            fixed = value.substitute(values)
            return Index(fixed) if fixed.terms else Const(fixed.constant)  # type: ignore[return-value]  # a number too
        case Load():
            return fix_load(node, values)  # type: ignore[return-value]  # the same element
    return map_operands(node, lambda operand: fix_expr(operand, values))


def fix_tree(node: Node, values: Values) -> Node:
    match node:
        case Band():
            node = _fix_band(node, values)
        case Micro():
            return map_absorbed(node, lambda band: _fix_band(band, values))
    return mapped(node, lambda child: fix_tree(child, values))


def _fix_band(band: Band, values: Values) -> Band:
    return replace(band, functions=tuple((name, fix_function(f, values)) for name, f in band.functions))
