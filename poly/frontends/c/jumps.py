"""`continue` as the condition that it stands for.

for (…) {                               for (…) {
  if (x[i] < 0) { n++; continue; }        if (x[i] < 0) n++;
  s += sqrt(x[i]);                ->      else s += sqrt(x[i]);
}                                       }
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

from pycparser import c_ast


def without_continue(node: c_ast.Node) -> c_ast.Node:
    """The statement with the rest of a loop's body below the condition that leaves it out.

    That of an `if` inside another one stays, as the loop's body then goes on in several places.
    """
    made = copy.copy(node)
    match node:
        case c_ast.For(stmt=body):
            items = (body.block_items or []) if isinstance(body, c_ast.Compound) else [body]
            made.stmt = c_ast.Compound(_rest(items), coord=body.coord)
        case c_ast.Compound(block_items=items):
            made.block_items = [without_continue(item) for item in items or []]
        case c_ast.If(iftrue=then, iffalse=other):
            made.iftrue, made.iffalse = without_continue(then), None if other is None else without_continue(other)
        case _:
            return node
    return made


def _rest(items: Sequence[c_ast.Node]) -> list[c_ast.Node]:
    """What is left of a loop's body."""
    if not items:
        return []
    first, rest = items[0], items[1:]
    match first:
        case c_ast.Continue():
            return []
        case c_ast.If(cond=cond, iftrue=then, iffalse=other) if (kept := _before_continue(then)) is not None:
            after = c_ast.Compound(_rest([*([] if other is None else [other]), *rest]), coord=then.coord)
            if kept:
                return [c_ast.If(cond, c_ast.Compound(kept, coord=then.coord), after, coord=first.coord)]
            return [c_ast.If(c_ast.UnaryOp("!", cond, coord=cond.coord), after, None, coord=first.coord)]
    return [without_continue(first), *_rest(rest)]


def _before_continue(node: c_ast.Node) -> list[c_ast.Node] | None:
    """The statements before a `continue` that ends a side of an `if`; None if it does not end so."""
    match node:
        case c_ast.Continue():
            return []
        case c_ast.Compound(block_items=[*before, c_ast.Continue()]):
            return [without_continue(item) for item in before]
    return None
