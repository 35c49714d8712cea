"""The loops that become a kernel's work-groups.

for i in range(0, M, 6):  # parallel      ->      const int64_t i = 6*(int64_t)get_group_id(1);
  for j in range(N):      # parallel              const int64_t j = (int64_t)get_group_id(0);
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import islpy as isl

from codegen.integer import Int, Linear, quotient
from codegen.isl_ast import children, end, integer, kind, operation
from codegen.loops import MARK, NO_MARK, Scope
from codegen.names import fresh
from codegen.program import LoopMark, Program, Text

MOST_DIMENSIONS = 3
"""Along so many dimensions work-groups are counted."""


@dataclass(frozen=True)
class GroupLoop:
    """A loop whose iterations are work-groups: its variable starts at `start` and goes up by `step`, `trips` times."""

    variable: str
    start: Int
    step: int
    trips: Int

    def at(self, number: str) -> str:
        """The variable's value in the iteration of that number (C texts)."""
        scaled = number if self.step == 1 else f"{self.step}*{number}"
        return scaled if self.start == Linear() else f"{self.start} + {scaled}"


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
    while len(loops) < most:
        top = head(program, node, mark)
        if not top.is_loop:
            break
        isl_name = top.below.for_get_iterator().get_id().get_name()
        start = integer(top.below.for_get_init(), scope.values)
        if top.below.for_is_degenerate():
            scope = replace(scope, values={**scope.values, isl_name: start})
        else:
            found = _loop(top.mark, top.below, scope)
            if frozenset(loop.variable for loop in loops) & (found.start.names | found.trips.names):
                break
            loops = (*loops, found)
            scope = replace(
                scope,
                values={**scope.values, isl_name: Linear.name(found.variable)},
                taken=scope.taken | {found.variable},
                variables=(*scope.variables, found.variable),
            )
        node, mark = top.below.for_get_body(), NO_MARK
    return Grouped(loops, node, replace(scope, mark=NO_MARK))


@dataclass(frozen=True)
class Head:
    """What stands below the marks at a node, and what the last of them says of loops.

    isl leaves the mark of a loop that runs once where the loop was (`is_gone`), and puts the pieces of a loop that it
    has cut below the one mark, each perhaps under a condition: the mark is then handed down to them.
    """

    mark: LoopMark
    below: isl.AstNode
    is_gone: bool

    @property
    def is_loop(self) -> bool:
        """Whether this is a loop that becomes groups: one that is shared, and that counts up to something."""
        if kind(self.below) != "for_" or not is_shared(self.mark):
            return False
        return self.below.for_is_degenerate() or operation(self.below.for_get_cond()) in ("le", "lt")

    @property
    def handed_down(self) -> LoopMark:
        """The mark that holds for the nodes inside."""
        return self.mark if kind(self.below) in ("block", "if_") and not self.is_gone else NO_MARK


def head(program: Program, node: isl.AstNode, mark: LoopMark = NO_MARK) -> Head:
    """The head of a node below a mark that was handed down."""
    gone = False
    while kind(node) == "mark":
        gone = gone or is_shared(mark)
        name = node.mark_get_id().get_name()
        mark = program.marks.get(name, NO_MARK) if name.startswith(MARK) else mark
        node = node.mark_get_node()
    return Head(mark, node, gone or (is_shared(mark) and not _has_pieces(node)))


def is_shared(mark: LoopMark) -> bool:
    """Whether work-groups share the loop."""
    return mark.parallel or mark.group


def has_groups(program: Program, node: isl.AstNode, mark: LoopMark = NO_MARK) -> bool:
    """Whether there is a loop at or below a node that becomes groups; `mark` was handed down to it."""
    top = head(program, node, mark)
    if kind(top.below) == "for_":
        return top.is_gone or top.is_loop or has_groups(program, top.below.for_get_body())
    return top.is_gone or any(has_groups(program, child, top.handed_down) for child in _inside(top.below))


def work_items(program: Program, node: isl.AstNode) -> int:
    """How many work-items a group has that runs what is at and below a node, by the marks of all loops, made or not."""
    match kind(node):
        case "mark":
            mark = program.marks.get(node.mark_get_id().get_name(), NO_MARK)
            return max(1, mark.items) * work_items(program, node.mark_get_node())
        case "for_":
            return work_items(program, node.for_get_body())
        case "user":
            name = node.user_get_expr().get_op_arg(0).get_id().get_name()
            body = program.statements[name].body
            return max(1, (body.items or 1) if isinstance(body, Text) else 1)
    return max((work_items(program, child) for child in _inside(node)), default=1)


def _has_pieces(node: isl.AstNode) -> bool:
    """Whether a node is a loop, or pieces of one, whose mark stands above them all."""
    return kind(node) == "for_" or any(_has_pieces(child) for child in _inside(node))


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
    trips = quotient(end(node.for_get_cond(), scope.values) - start + (step - 1), step)
    return GroupLoop(fresh(mark.name, scope.taken), start, step, trips)
