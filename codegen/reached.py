"""When a loop has nothing to do: conditions without which nothing in it runs, whatever its variable is.

for (i = 0; i < M; i += 1)            if (0 < N)
  for (j = 0; j < N; j += 1)   ->       for (i = 0; i < M; i += 1)
    S(i, j)                               for (j = 0; j < N; j += 1)
                                            S(i, j)

Arrays without elements may be as long as one likes in their other dimensions.
"""

from __future__ import annotations

import islpy as isl

from codegen.integer import Linear, Test, connected, parts_of
from codegen.isl_ast import Values, children, condition, integer, kind


def conditions(node: isl.AstNode, values: Values) -> tuple[Test, ...]:
    """Conditions, each of which must hold where anything at or below a node of isl's AST runs.

    `values` says what its names stand for; variables of loops below the node are told by none of them.
    """
    match kind(node):
        case "mark":
            return conditions(node.mark_get_node(), values)
        case "for_":
            return _of_loop(node, values)
        case "if_" if not node.if_has_else_node():
            inner = conditions(node.if_get_then_node(), values)
            return tuple(dict.fromkeys((*parts_of(condition(node.if_get_cond(), values)), *inner)))
        case "block":
            return _of_all(node, values)
    return ()


def outside(found: tuple[Test, ...], variable: str) -> tuple[Test, ...]:
    """Those of some conditions that don't depend on a variable, or on nothing at all."""
    return tuple(test for test in found if test.names and variable not in test.names)


def every(tests: tuple[Test, ...]) -> Test:
    """All of some conditions as one."""
    return connected("&&", tests)


def _of_loop(node: isl.AstNode, values: Values) -> tuple[Test, ...]:
    name = node.for_get_iterator().get_id().get_name()
    start = integer(node.for_get_init(), values)
    if node.for_is_degenerate():
        return conditions(node.for_get_body(), {**values, name: start})
    entered = condition(node.for_get_cond(), {**values, name: start})
    variable = f"{name}_"
    inner = conditions(node.for_get_body(), {**values, name: Linear.name(variable)})
    return tuple(dict.fromkeys((entered, *outside(inner, variable))))


def _of_all(block: isl.AstNode, values: Values) -> tuple[Test, ...]:
    """Those that all nodes of a block have."""
    first, *rest = children(block)
    found = conditions(first, values)
    for node in rest:
        if not found:
            break
        found = tuple(test for test in found if test in conditions(node, values))
    return found
