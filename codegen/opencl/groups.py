"""The loops that become a kernel's work-groups.

for i in range(0, M, 6):  # parallel      ->      const int64_t i = 6*(int64_t)get_group_id(1);
  for j in range(N):      # parallel              const int64_t j = (int64_t)get_group_id(0);
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import islpy as isl

from codegen.affine import Affine
from codegen.integer import children, end, integer, kind, operation, primary
from codegen.loops import MARK, NO_MARK, Scope
from codegen.names import fresh
from codegen.program import LoopMark, Program, Text

MOST_DIMENSIONS = 3
"""Along so many dimensions work-groups are counted."""


@dataclass(frozen=True)
class GroupLoop:
    """A loop whose iterations are work-groups: its variable starts at `start` and goes up by `step`, `trips` times."""

    variable: str
    start: Affine
    step: int
    trips: str

    def at(self, number: str) -> str:
        """The variable's value in the iteration of that number (C texts)."""
        scaled = number if self.step == 1 else f"{self.step}*{number}"
        return scaled if self.start == Affine() else f"{self.start} + {scaled}"


@dataclass(frozen=True)
class Grouped:
    """The loops that become groups, outermost first, and what they hold."""

    loops: tuple[GroupLoop, ...]
    body: isl.AstNode
    scope: Scope


def grouped(program: Program, node: isl.AstNode, scope: Scope, most: int = MOST_DIMENSIONS) -> Grouped:
    """The loops at a node that become groups, at most so many.

    A loop whose bounds depend on an outer one's variable stays in the body, since groups fill a box. One that runs once
    has no variable.
    """
    loops: tuple[GroupLoop, ...] = ()
    mark = scope.mark
    while len(loops) < most and starts_groups(program, node, mark):
        mark, below = unmarked(program, node, mark)
        isl_name = below.for_get_iterator().get_id().get_name()
        start = integer(below.for_get_init(), scope.values)
        if below.for_is_degenerate():
            scope = replace(scope, values={**scope.values, isl_name: start})
        else:
            found = _loop(mark, below, scope)
            if frozenset(loop.variable for loop in loops) & _words(f"{found.start} {found.trips}"):
                break
            loops = (*loops, found)
            scope = replace(
                scope,
                values={**scope.values, isl_name: Affine.name(found.variable)},
                taken=scope.taken | {found.variable},
                variables=(*scope.variables, found.variable),
            )
        node, mark = below.for_get_body(), NO_MARK
    return Grouped(loops, node, replace(scope, mark=NO_MARK))


def unmarked(program: Program, node: isl.AstNode, mark: LoopMark = NO_MARK) -> tuple[LoopMark, isl.AstNode]:
    """What stands below the marks at a node, and what the last of those says of loops, or else the `mark` above.

    isl puts several loops, or conditions around one, below the mark of a loop that it has cut in pieces.
    """
    while kind(node) == "mark":
        name = node.mark_get_id().get_name()
        if name.startswith(MARK):
            mark = program.marks.get(name, NO_MARK)
        node = node.mark_get_node()
    return mark, node


def is_shared(mark: LoopMark) -> bool:
    """Whether work-groups share the loop."""
    return mark.parallel or mark.group


def has_groups(program: Program, node: isl.AstNode, mark: LoopMark = NO_MARK) -> bool:
    """Whether there is a loop at or below a node that becomes groups; `mark` stands above the node."""
    mark, below = unmarked(program, node, mark)
    if kind(below) == "for_":
        return starts_groups(program, below, mark) or has_groups(program, below.for_get_body())
    return any(has_groups(program, child, mark) for child in _inside(below))


def starts_groups(program: Program, node: isl.AstNode, mark: LoopMark = NO_MARK) -> bool:
    """Whether the node is a loop that becomes groups: one that is shared, and that counts up to something."""
    mark, below = unmarked(program, node, mark)
    if kind(below) != "for_" or not is_shared(mark):
        return False
    return below.for_is_degenerate() or operation(below.for_get_cond()) in ("le", "lt")


def work_items(program: Program, node: isl.AstNode, mark: LoopMark = NO_MARK) -> int:
    """How many work-items a group has that runs what is at and below a node; `mark` stands above it."""
    mark, below = unmarked(program, node, mark)
    match kind(below):
        case "for_":
            return max(1, mark.items) * work_items(program, below.for_get_body())
        case "user":
            name = below.user_get_expr().get_op_arg(0).get_id().get_name()
            body = program.statements[name].body
            return max(1, (body.items or 1) if isinstance(body, Text) else 1)
    return max((work_items(program, child, mark) for child in _inside(below)), default=1)


def _inside(node: isl.AstNode) -> list[isl.AstNode]:
    """The nodes right below one that is no loop."""
    match kind(node):
        case "block":
            return children(node)
        case "if_":
            other = [node.if_get_else_node()] if node.if_has_else_node() else []
            return [node.if_get_then_node(), *other]
    return []


def _loop(mark: LoopMark, node: isl.AstNode, scope: Scope) -> GroupLoop:
    start = integer(node.for_get_init(), scope.values)
    step = integer(node.for_get_inc(), scope.values).constant
    count = end(node.for_get_cond(), scope.values) - start + (step - 1)
    trips = primary(count) if step > 1 else str(count)
    return GroupLoop(fresh(mark.name, scope.taken), start, step, trips if step == 1 else f"{trips}/{step}")


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text))
