"""When a loop has nothing to do: conditions without which nothing in it runs, whatever its variable is.

for (i = 0; i < M; i += 1)            if (0 < N)
  for (j = 0; j < N; j += 1)   ->       for (i = 0; i < M; i += 1)
    S(i, j)                               for (j = 0; j < N; j += 1)
                                            S(i, j)

Arrays without elements may be as long as one likes in their other dimensions.
"""

from __future__ import annotations

from codegen.integer import Test, connected, parts_of
from codegen.loop_ir import Block, Comment, For, If, Node, Once


def conditions(node: Node) -> tuple[Test, ...]:
    """Conditions, each of which must hold where anything at or below a node runs."""
    match node:
        case Comment() | Once():
            return conditions(node.body)
        case For():
            return tuple(dict.fromkeys((node.entered, *outside(conditions(node.body), node.variable))))
        case If(test, then, None):
            return tuple(dict.fromkeys((*parts_of(test), *conditions(then))))
        case Block():
            return _of_all(node)
    return ()


def outside(found: tuple[Test, ...], variable: str) -> tuple[Test, ...]:
    """Those of some conditions that don't depend on a variable, or on nothing at all."""
    return tuple(test for test in found if test.names and variable not in test.names)


def every(tests: tuple[Test, ...]) -> Test:
    """All of some conditions as one."""
    return connected("&&", tests)


def _of_all(block: Block) -> tuple[Test, ...]:
    """Those that all nodes of a block have."""
    every = [conditions(node) for node in block.nodes]
    return tuple(test for test in every[0] if all(test in found for found in every)) if every else ()
