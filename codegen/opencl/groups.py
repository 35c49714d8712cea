"""The loops that become a kernel's work-groups.

for i in range(0, M, 6):  # parallel      ->      const int64_t i = 6*(int64_t)get_group_id(1);
  for j in range(N):      # parallel              const int64_t j = (int64_t)get_group_id(0);
"""

from __future__ import annotations

from dataclasses import dataclass

from codegen.ir.integer import Int, Linear, quotient
from codegen.ir.loop_ir import NO_MARK, For, LoopMark, Node, Once, Run, inside, walk
from codegen.ir.program import Instructions, Program
from codegen.scope import LoopScope

MOST_DIMENSIONS = 3
"""The most dimensions of work-groups."""


@dataclass(frozen=True)
class GroupLoop:
    """A loop whose iterations are work-groups: `trips` iterations from `start` in steps of `step`."""

    variable: str
    start: Int
    step: int
    trips: Int

    def at(self, number: str) -> str:
        """C text of the variable's value in the iteration with that number."""
        scaled = number if self.step == 1 else f"{self.step}*{number}"
        return scaled if self.start == Linear() else f"{self.start} + {scaled}"


@dataclass(frozen=True)
class Grouped:
    """The loops that become groups, outermost first, and their body."""

    loops: tuple[GroupLoop, ...]
    body: Node
    scope: LoopScope


def grouped(node: Node, scope: LoopScope, most: int = MOST_DIMENSIONS) -> Grouped:
    """The loops at a node that become groups, at most `most`.

    A loop whose bounds depend on an outer one's variable stays in the body, since groups form a box. A loop that runs
    once has no variable.
    """
    loops: tuple[GroupLoop, ...] = ()
    while len(loops) < most and is_grouped(node):
        assert isinstance(node, For | Once)
        if isinstance(node, For):
            found = _group_loop(node)
            if frozenset(loop.variable for loop in loops) & (found.start.names | found.trips.names):
                break
            loops = (*loops, found)
        scope = scope.inside(node)
        node = node.body
    return Grouped(loops, node, scope)


def is_grouped(node: Node) -> bool:
    """Whether a node is a loop that becomes groups: one that is shared, and has an upper bound."""
    if not isinstance(node, For | Once) or not is_shared(node.mark):
        return False
    return isinstance(node, Once) or node.end is not None


def is_shared(mark: LoopMark) -> bool:
    """Whether work-groups share the loop."""
    return mark.parallel or mark.group


def has_groups(node: Node) -> bool:
    """Whether there is a loop at or below a node that becomes groups."""
    return any(map(is_grouped, walk(node)))


def work_items(program: Program, node: Node) -> int:
    """The work-items of a group that runs a node, by the marks of all its loops, whether or not they become loops."""
    if isinstance(node, Run):
        body = program.statements[node.statement].body
        return max(1, (body.items or 1) if isinstance(body, Instructions) else 1)
    mark = node.mark if isinstance(node, For | Once) else NO_MARK
    return max(1, mark.items) * max((work_items(program, child) for child in inside(node)), default=1)


def _group_loop(loop: For) -> GroupLoop:
    assert loop.end is not None
    trips = quotient(loop.end - loop.start + (loop.step - 1), loop.step)
    return GroupLoop(loop.variable, loop.start, loop.step, trips)
