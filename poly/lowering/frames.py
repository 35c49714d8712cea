"""Loops that stay whole: what an iteration keeps in memory of its own is there for all of the iteration.

for j: S0(j)                                 for j: S0(j); if j == 2: S1(j)
S1(2)          # of the same iteration   <-

isl makes loops of their own for statements that may run before or after all the others, such as S1, which only the last
iteration has. A variable of an iteration, and a thread's memory, would be others there. Statements that do nothing, one
at the start and one at the end of each iteration, leave no such choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

import islpy as isl

from poly.ir.instances import coordinate, loop_values
from poly.ir.tree import Band, Leaf, Node, Sequence, mapped, statements


def with_frames(domains: Mapping[str, isl.Set], tree: Node, private: bool) -> tuple[dict[str, isl.Set], Node]:
    """The domains and the tree with such statements, where iterations of one loop differ in what they run.

    `private` says whether threads have memory of their own.
    """
    framed = _Framed(domains, private)
    made = framed.node(tree, ())
    return {**domains, **framed.added}, made


@dataclass
class _Framed:
    domains: Mapping[str, isl.Set]
    private: bool
    added: dict[str, isl.Set] = field(default_factory=dict)

    def node(self, node: Node, around: tuple[Band, ...]) -> Node:
        if not isinstance(node, Band):
            return mapped(node, lambda child: self.node(child, around))
        body = self.node(node.body, (*around, node))
        if node.variables or (node.parallel and self.private):
            body = self._between(node, body, around)
        own = [name for name in statements(body) if name in self.added]
        functions = tuple((name, coordinate(self.added[name], len(around))) for name in own)
        return replace(node, functions=(*node.functions, *functions), body=body)

    def _between(self, band: Band, body: Node, around: tuple[Band, ...]) -> Node:
        """The body between statements that run in each iteration, unless each of its own does."""
        each = [self._values(name, (*around, band)) for name in statements(band.body) if name in self.domains]
        every = reduce(isl.Set.union, each).coalesce()
        if all(every.is_subset(one) for one in each):
            return body
        names = [f"{band.name}'{at}" for at in ("starts", "ends")]
        self.added |= {name: every.set_tuple_name(name) for name in names}
        return Sequence((Leaf(names[0]), *(body.children if isinstance(body, Sequence) else (body,)), Leaf(names[1])))

    def _values(self, name: str, loops: tuple[Band, ...]) -> isl.Set:
        """The values of loops at which a statement runs."""
        return loop_values(self.domains[name], (band.function(name) for band in loops)).range()
