"""Reads isl's syntax trees, as no other module does: into `codegen.ir.loop_ir`, integer expressions and conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import islpy as isl

from codegen.ir.integer import (
    Compare,
    Int,
    Linear,
    Op,
    Test,
    choice,
    compare,
    connected,
    floor_quotient,
    maximum,
    minimum,
    quotient,
    remainder,
)
from codegen.ir.loop_ir import NO_MARK, Block, Comment, For, If, LoopMark, Node, Once, Run
from codegen.names import another

Values = Mapping[str, Int]
"""The values of isl's iterators: loop variables or, for a loop that runs once, its value."""

LOOP, PACK = "loop:", "pack:"
"""The prefixes of marks for a loop of the schedule, and for a packed copy."""

COMPARISONS: dict[str, Literal["==", "<=", "<", ">=", ">"]] = {"eq": "==", "le": "<=", "lt": "<", "ge": ">=", "gt": ">"}
PAST = ("min", "max", "fdiv_q", "pdiv_q")
"""Operations for which `past` adds the one to their operands."""
CONNECTIVES: dict[str, Literal["&&", "||"]] = {"and_": "&&", "and_then": "&&", "or_": "||", "or_else": "||"}


def operation(expr: isl.AstExpr) -> str:
    """isl's name for an operation, such as `fdiv_q`; empty for a number or a name."""
    if isl.ast_expr_type(expr.get_type()) != isl.ast_expr_type.op:
        return ""
    return str(isl.ast_expr_op_type(expr.get_op_type()).name)


def arguments(expr: isl.AstExpr) -> list[isl.AstExpr]:
    """The operands of an operation."""
    return [expr.get_op_arg(n) for n in range(expr.get_op_n_arg())]


def integer(expr: isl.AstExpr, values: Values) -> Int:
    """The value of an integer expression; `values` replaces isl's names, others are sizes."""
    kind = isl.ast_expr_type(expr.get_type())
    if kind == isl.ast_expr_type.int:
        return Linear.of(expr.get_val().to_python())
    if kind == isl.ast_expr_type.id:
        name = expr.get_id().get_name()
        return values.get(name, Linear.name(name))
    return _operation(expr, values)


def _operation(expr: isl.AstExpr, values: Values) -> Int:
    op = operation(expr)
    if op in COMPARISONS or op in CONNECTIVES:
        return choice(condition(expr, values), 1, 0)
    if op in ("cond", "select"):
        test, then, other = arguments(expr)
        return choice(condition(test, values), integer(then, values), integer(other, values))
    args = [integer(arg, values) for arg in arguments(expr)]
    match op, args:
        case "min", _:
            return minimum(*args)
        case "max", _:
            return maximum(*args)
        case "minus", [operand]:
            return -operand
        case "add", [left, right]:
            return _folded(left, right) or _folded(right, left) or left + right
        case "sub", [left, right]:
            return left - right
        case "mul", [left, right]:
            return left * right
        case "fdiv_q", [left, right]:
            return floor_quotient(left, right.constant)
        case (("pdiv_q" | "div"), [left, right]):
            return quotient(left, right)
        case (("pdiv_r" | "zdiv_r"), [left, right]):
            return remainder(left, right)
    raise AssertionError(f"isl made an operation that no printer knows: {expr.to_C_str()}")


def _folded(divided: Int, ahead: Int) -> Int | None:
    """A quotient plus a constant as one quotient: `(M - 1)/6 + 1` is `(M + 5)/6`. None for anything else."""
    atom, number = divided.atom, ahead.number
    if not isinstance(atom, Op) or atom.name not in ("/", "floordiv") or number is None or number < 0:
        return None
    dividend, divisor = atom.args
    made = floor_quotient if atom.name == "floordiv" else quotient
    return made(dividend + divisor * number, divisor.constant) if divisor.number else None


def condition(expr: isl.AstExpr, values: Values) -> Test:
    """An expression as a condition."""
    op = operation(expr)
    if op in COMPARISONS:
        left, right = arguments(expr)
        if op == "le" and operation(right) in PAST:
            return Compare(integer(left, values), "<", past(right, values))
        return compare(integer(left, values), COMPARISONS[op], integer(right, values))
    if op in CONNECTIVES:
        return connected(CONNECTIVES[op], [condition(arg, values) for arg in arguments(expr)])
    return Compare(integer(expr, values), "!=", Linear())


def past(expr: isl.AstExpr, values: Values) -> Int:
    """One more than an expression: `min(M - 1, 7)` gives `min(M, 8)`, and `(M - 1)/6` gives `(M + 5)/6`."""
    match operation(expr), arguments(expr):
        case "min", args:
            return minimum(*(past(arg, values) for arg in args))
        case "max", args:
            return maximum(*(past(arg, values) for arg in args))
        case ("fdiv_q" | "pdiv_q") as op, [left, right]:
            dividend, divisor = integer(left, values), integer(right, values)
            return (floor_quotient if op == "fdiv_q" else quotient)(dividend + divisor, divisor.constant)
    return integer(expr, values) + 1


def loops(node: isl.AstNode, marks: Mapping[str, LoopMark] | None = None, sizes: Iterable[str] = ()) -> Node:
    """The loops of a syntax tree; `marks` are their marks by name.

    A loop is named after the mark above it, or else after isl's iterator, but never like a size or an enclosing loop.
    """
    return _Reader(marks or {}, frozenset(sizes)).node(node)


@dataclass(frozen=True)
class _Reader:
    """A position in a syntax tree: the marks of loops, the names in use, the values of isl's iterators.

    `above` is the mark of a loop whose `for` node is further down. If isl has split a loop, the pieces are all below
    its one mark, possibly under conditions; if a loop's only iteration is 0, isl keeps its mark without a `for` node.
    """

    marks: Mapping[str, LoopMark]
    taken: frozenset[str]
    values: Values = field(default_factory=dict)
    above: LoopMark | None = None

    def node(self, node: isl.AstNode) -> Node:
        """A node as loops."""
        if self.above is not None and not _has_pieces(node):
            return Once(Linear(), replace(self, above=None).node(node), self.above)
        match _kind(node):
            case "mark":
                return self._mark(node)
            case "for_":
                return self._for(node)
            case "if_":
                other = self.node(node.if_get_else_node()) if node.if_has_else_node() else None
                return If(condition(node.if_get_cond(), self.values), self.node(node.if_get_then_node()), other)
            case "block":
                return Block(_joined(map(self.node, _children(node))))
        called, *values = arguments(node.user_get_expr())
        return Run(called.get_id().get_name(), tuple(integer(value, self.values) for value in values))

    def _mark(self, node: isl.AstNode) -> Node:
        text, below = node.mark_get_id().get_name(), node.mark_get_node()
        if text.startswith(PACK):
            return Comment(text.removeprefix(PACK), self.node(below))
        if not text.startswith(LOOP):
            return self.node(below)
        name = text.removeprefix(LOOP)
        return replace(self, above=self.marks.get(name, LoopMark(name))).node(below)

    def _for(self, node: isl.AstNode) -> Node:
        iterator = node.for_get_iterator().get_id().get_name()
        mark, start = self.above or NO_MARK, integer(node.for_get_init(), self.values)
        inner = replace(self, above=None)
        if node.for_is_degenerate():
            return Once(start, inner._with(iterator, start).node(node.for_get_body()), mark)
        variable = another(mark.name or iterator, self.taken)
        inner = replace(inner._with(iterator, Linear.name(variable)), taken=self.taken | {variable})
        test, step = condition(node.for_get_cond(), inner.values), integer(node.for_get_inc(), self.values)
        return For(variable, start, test, step.constant, inner.node(node.for_get_body()), mark)

    def _with(self, iterator: str, value: Int) -> _Reader:
        return replace(self, values={**self.values, iterator: value})


def _joined(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """The nodes, with neighbours joined that are the only iteration of one shared loop, which isl has divided.

    What is private to an iteration, such as a packed panel, has to be that of one thread or group.
    """
    found: list[Node] = []
    for node in nodes:
        last = found[-1] if found else None
        if isinstance(node, Once) and isinstance(last, Once) and _one_iteration(last, node):
            found[-1] = replace(last, body=Block(_joined((last.body, node.body))))
        else:
            found.append(node)
    return tuple(found)


def _one_iteration(one: Once, other: Once) -> bool:
    return (one.mark.parallel or one.mark.group) and (one.mark, one.value) == (other.mark, other.value)


def _has_pieces(node: isl.AstNode) -> bool:
    """Whether a node is a loop, or the pieces of one."""
    match _kind(node):
        case "for_":
            return True
        case "block":
            return any(map(_has_pieces, _children(node)))
        case "if_":
            other = node.if_has_else_node() and _has_pieces(node.if_get_else_node())
            return other or _has_pieces(node.if_get_then_node())
    return False


def _kind(node: isl.AstNode) -> str:
    """isl's name for a node: `for_`, `if_`, `block`, `mark` or `user`."""
    return str(isl.ast_node_type(node.get_type()).name)


def _children(block: isl.AstNode) -> list[isl.AstNode]:
    """The nodes of a block, in order."""
    nodes = block.block_get_children()
    return [nodes.get_at(position) for position in range(nodes.n_ast_node())]
