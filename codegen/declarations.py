"""Declarations of locals that are variables: in the body of the innermost loop that has its own in each iteration.

for i:                               for i:
  S0(i)    # s = A[i]                  declare s
  S1(i)    # B[i] = s * s      ->        S0(i)
                                         S1(i)

A loop that runs once is no loop in C, and isl may have divided its body. The variable then belongs to the loop around.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from codegen.ir.expr import loads
from codegen.ir.loop_ir import Block, Declare, For, Node, Once, Run, inside, mapped, walk
from codegen.ir.program import Assign, PrintedStatement


def declared(loops: Node, statements: Mapping[str, PrintedStatement], variables: frozenset[str]) -> Node:
    """The loops with the variables declared."""
    return _Declaring({name: touched(s) & variables for name, s in statements.items()}).whole(loops)


def touched(statement: PrintedStatement) -> frozenset[str]:
    """The buffers that a statement accesses, if it is an assignment."""
    body = statement.body
    return (
        frozenset(load.array for load in (body.target, *loads(body.expr))) if isinstance(body, Assign) else frozenset()
    )


def around_shared(node: Node) -> bool:
    """Whether a variable is declared around a loop that threads or work-groups share."""
    return any(
        isinstance(part, For | Once) and (part.mark.parallel or part.mark.group)
        for place in walk(node)
        if isinstance(place, Declare)
        for part in walk(place)
    )


def shadows(node: Node, outer: frozenset[str] = frozenset()) -> bool:
    """Whether a variable is declared inside the body of another of its name, of which strict compilers warn."""
    own = frozenset(node.buffers) if isinstance(node, Declare) else frozenset()
    return bool(own & outer) or any(shadows(child, outer | own) for child in inside(node))


class _Declaring:
    """Declares the variables that each statement accesses."""

    def __init__(self, accessed: Mapping[str, frozenset[str]]) -> None:
        self._accessed = accessed

    def whole(self, node: Node) -> Node:
        """The node with declarations of all variables."""
        return self._with(self._inside(node), self._open(node))

    def _inside(self, node: Node) -> Node:
        """The node with the variables declared of which the loops in it have their own."""
        if not isinstance(node, For):
            return mapped(node, self._inside)
        own = self._open(node.body) & frozenset(node.mark.variables)
        return replace(node, body=self._with(self._inside(node.body), own))

    def _open(self, node: Node) -> frozenset[str]:
        """The variables accessed in a node that no loop in it has its own of."""
        if isinstance(node, Run):
            return self._accessed[node.statement]
        found = frozenset[str]().union(*map(self._open, inside(node)))
        return found - frozenset(node.mark.variables) if isinstance(node, For) else found

    def _with(self, body: Node, own: frozenset[str]) -> Node:
        """A body with variables declared around the part that accesses them."""
        if not own:
            return body
        names = tuple(sorted(own))
        if not isinstance(body, Block):
            return Declare(names, body)
        places = [at for at, node in enumerate(body.nodes) if self._open(node) & own]
        first, last = places[0], places[-1] + 1
        part = body.nodes[first:last]
        made = Declare(names, part[0] if len(part) == 1 else Block(part))
        return made if len(part) == len(body.nodes) else Block((*body.nodes[:first], made, *body.nodes[last:]))
