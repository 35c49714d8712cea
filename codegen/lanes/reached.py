"""Conditions without which nothing in a loop runs, whatever the value of its variable.

for (i = 0; i < M; i += 1)            if (0 < N)
  for (j = 0; j < N; j += 1)   ->       for (i = 0; i < M; i += 1)
    S(i, j)                               for (j = 0; j < N; j += 1)
                                            S(i, j)

An array without elements may be arbitrarily long in its other dimensions, and a loop over these would take long.
"""

from __future__ import annotations

from codegen.ir.integer import Test, connected, parts_of
from codegen.ir.loop_ir import Block, Comment, Declare, For, If, Node, Once


def conditions(node: Node) -> tuple[Test, ...]:
    """Conditions that must all hold for anything at or below a node to run."""
    match node:
        case Comment() | Declare() | Once():
            return conditions(node.body)
        case For():
            return tuple(dict.fromkeys((node.entered, *independent_of(conditions(node.body), node.variable))))
        case If(test, then, None):
            return tuple(dict.fromkeys((*parts_of(test), *conditions(then))))
        case Block():
            return _of_all(node)
    return ()


def independent_of(found: tuple[Test, ...], variable: str) -> tuple[Test, ...]:
    """The conditions that do not depend on a variable, without constant ones."""
    return tuple(test for test in found if test.names and variable not in test.names)


def conjunction(tests: tuple[Test, ...]) -> Test:
    """The conjunction of some conditions."""
    return connected("&&", tests)


def _of_all(block: Block) -> tuple[Test, ...]:
    """The conditions that all nodes of a block share."""
    each = [conditions(node) for node in block.nodes]
    return tuple(test for test in each[0] if all(test in found for found in each)) if each else ()
