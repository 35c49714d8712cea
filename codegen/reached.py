"""When a loop has nothing to do: conditions without which nothing in it runs, whatever its variable is.

for (i = 0; i < M; i += 1)            if (0 < N)
  for (j = 0; j < N; j += 1)   ->       for (i = 0; i < M; i += 1)
    S(i, j)                               for (j = 0; j < N; j += 1)
                                            S(i, j)

Arrays without elements may be as long as one likes in their other dimensions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import islpy as isl

from codegen.affine import Affine
from codegen.integer import CONNECTIVES, HELPERS, arguments, children, condition, integer, kind, operation

NAME = re.compile(r"[A-Za-z_]\w*")


def conditions(node: isl.AstNode, values: Mapping[str, Affine]) -> tuple[str, ...]:
    """Conditions in C, each of which must hold where anything at or below a node of isl's AST runs.

    `values` says what its names stand for; variables of loops below the node are told by none of them.
    """
    match kind(node):
        case "mark":
            return conditions(node.mark_get_node(), values)
        case "for_":
            return _of_loop(node, values)
        case "if_" if not node.if_has_else_node():
            inner = conditions(node.if_get_then_node(), values)
            return tuple(dict.fromkeys((*_parts(node.if_get_cond(), values), *inner)))
        case "block":
            return _of_all(node, values)
    return ()


def outside(found: tuple[str, ...], variable: str) -> tuple[str, ...]:
    """Those of some conditions that don't depend on a variable, or on nothing at all."""
    names = {text: frozenset(NAME.findall(text)) - HELPERS.keys() for text in found}
    return tuple(text for text in found if names[text] and variable not in names[text])


def _of_loop(node: isl.AstNode, values: Mapping[str, Affine]) -> tuple[str, ...]:
    name = node.for_get_iterator().get_id().get_name()
    start = integer(node.for_get_init(), values)
    if node.for_is_degenerate():
        return conditions(node.for_get_body(), {**values, name: start})
    entered = condition(node.for_get_cond(), {**values, name: start})
    variable = f"{name}_"
    inner = conditions(node.for_get_body(), {**values, name: Affine.name(variable)})
    return tuple(dict.fromkeys((entered, *outside(inner, variable))))


def _of_all(block: isl.AstNode, values: Mapping[str, Affine]) -> tuple[str, ...]:
    """Those that all nodes of a block have."""
    first, *rest = children(block)
    found = conditions(first, values)
    for node in rest:
        if not found:
            break
        found = tuple(text for text in found if text in conditions(node, values))
    return found


def _parts(test: isl.AstExpr, values: Mapping[str, Affine]) -> tuple[str, ...]:
    """The terms of a conjunction; a disjunction in parentheses."""
    symbol = CONNECTIVES.get(operation(test), "")
    if symbol == "&&":
        return tuple(text for term in arguments(test) for text in _parts(term, values))
    text = condition(test, values)
    return (f"({text})" if symbol else text,)
