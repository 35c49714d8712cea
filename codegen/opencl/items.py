"""Distribute loops to the work-items of a group; the other statements are run by item 0.

for i:  # 8 items                 for (int64_t i = 8*i_tile + item/32; i < …; i += 8)
  for j:  # 32 items       ->       for (int64_t j = item % 32; j < N; j += 32)
    S0                                S0
S1                                if (item == 0)
                                    S1

An item runs the iterations that are congruent to its own number, wherever the loop starts: i mod 8 = item/32.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import cgen

from codegen import style
from codegen.instruction_text import line
from codegen.ir.instructions import ITEM, MEMORIES, Barrier
from codegen.ir.integer import Int, Linear, primary
from codegen.ir.loop_ir import For, Node, Once, Run, walk
from codegen.ir.program import Assign, Instructions, Program
from codegen.style import Line, around, block

WAIT = line(Barrier(MEMORIES))
"""The barrier of all items of a group, for both memories."""


@dataclass(frozen=True)
class SharedLoop:
    """A loop with `count` shares, each of `inner` items that share the loops inside; the group has `whole` items."""

    count: int
    inner: int
    whole: int

    @property
    def own(self) -> str:
        """The number of the item's share."""
        outer = self.count * self.inner < self.whole
        number = ITEM if self.inner == 1 else f"{ITEM}/{self.inner}"
        return f"{number} % {self.count}" if outer else number

    def first(self, start: Int) -> str:
        """The item's first iteration from `start` on."""
        ahead = _remainder(start, self.count)
        if ahead == 0:
            return f"{start} + {self.own}" if start.terms or start.constant else self.own
        if ahead is not None:
            return f"{start} + ({self.own} + {self.count - ahead}) % {self.count}"
        return f"{start} + {self._modulo(f'{self.own} - {primary(start)}')}"

    def owns(self, value: Int) -> str:
        """The condition that an iteration belongs to the item."""
        known = _remainder(value, self.count)
        return f"{self.own} == {self._modulo(primary(value)) if known is None else known}"

    def _modulo(self, number: str) -> str:
        """The non-negative remainder of a number that may be negative."""
        if self.count & (self.count - 1) == 0:
            return f"(({number}) & {self.count - 1})"
        return f"((({number}) % {self.count} + {self.count}) % {self.count})"


def _remainder(value: Int, count: int) -> int | None:
    """The remainder, if it is the same for all values of the names; otherwise None."""
    common = gcd(count, *(coefficient for _, coefficient in value.terms))
    return value.constant % count if common == count else None


def shared(loop: For, share: SharedLoop, body: list[cgen.Generable]) -> cgen.Generable:
    """The C loop over the item's iterations; if its step is not 1, it tests each iteration instead."""
    if loop.step != 1:
        return around(loop, [owned(share, Linear.name(loop.variable), body)])
    start = Line(f"int64_t {loop.variable} = {share.first(loop.start)}", loop.start.names)
    update = Line(f"{loop.variable} += {share.count}")
    return style.ForStatement(start, Line(str(loop.test), loop.test.names), update, block(body))


def owned(share: SharedLoop, value: Int, body: list[cgen.Generable]) -> cgen.Generable:
    """The statements under the condition that the iteration belongs to the item."""
    return style.IfStatement(Line(share.owns(value), value.names), block(body))


def alone(body: list[cgen.Generable]) -> cgen.Generable:
    """The statements under the condition that the item is item 0."""
    return style.IfStatement(Line(f"{ITEM} == 0"), block(body))


def is_for_all(program: Program, node: Node) -> bool:
    """Whether all items of a group run the node: it has a shared loop, a barrier, or a write to private memory."""
    return any(_concerns_all(program, part) for part in walk(node))


def _concerns_all(program: Program, node: Node) -> bool:
    if isinstance(node, For | Once):
        return node.mark.items > 1
    if not isinstance(node, Run):
        return False
    body = program.statements[node.statement].body
    if isinstance(body, Assign):
        return any(w.name == body.target.array and w.space == "private" for w in program.workspaces)
    return body.items is not None


def has_barriers(program: Program, node: Node) -> bool:
    """Whether a node that all items run has barriers: in a statement, or behind the iterations of a parallel loop."""
    return any(_waits(program, part) for part in walk(node))


def _waits(program: Program, node: Node) -> bool:
    if isinstance(node, For):
        return node.mark.parallel
    if not isinstance(node, Run):
        return False
    body = program.statements[node.statement].body
    return isinstance(body, Instructions) and body.items is not None
