"""isl's syntax trees, read: their nodes, and their expressions as integer expressions and conditions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import islpy as isl

from codegen.integer import (
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
from codegen.names import c_name

Values = Mapping[str, Int]
"""What isl's names stand for: loop variables and, where a loop runs once, its value."""

COMPARISONS: dict[str, Literal["==", "<=", "<", ">=", ">"]] = {"eq": "==", "le": "<=", "lt": "<", "ge": ">=", "gt": ">"}
PAST = ("min", "max", "fdiv_q", "pdiv_q")
"""Operations of which one more is said by what they are made of."""
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
        return values[name] if name in values else Linear.name(c_name(name))
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
    """A quotient and a number as one quotient: `(M - 1)/6 + 1` is `(M + 5)/6`. None for anything else."""
    atom, number = divided.atom, ahead.number
    if not isinstance(atom, Op) or atom.name not in ("/", "floordiv") or number is None or number < 0:
        return None
    dividend, divisor = atom.args
    made = floor_quotient if atom.name == "floordiv" else quotient
    return made(dividend + divisor * number, divisor.constant) if divisor.number else None


def condition(expr: isl.AstExpr, values: Values) -> Test:
    """A truth value."""
    op = operation(expr)
    if op in COMPARISONS:
        left, right = arguments(expr)
        if op == "le" and operation(right) in PAST:
            return Compare(integer(left, values), "<", past(right, values))
        return compare(integer(left, values), COMPARISONS[op], integer(right, values))
    if op in CONNECTIVES:
        return connected(CONNECTIVES[op], [condition(arg, values) for arg in arguments(expr)])
    return Compare(integer(expr, values), "!=", Linear())


def end(expr: isl.AstExpr, values: Values) -> Int:
    """The first value that a loop's condition `i <= …` or `i < …` keeps out."""
    _, bound = arguments(expr)
    return past(bound, values) if operation(expr) == "le" else integer(bound, values)


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


def kind(node: isl.AstNode) -> str:
    """isl's name for a node: `for_`, `if_`, `block`, `mark` or `user`."""
    return str(isl.ast_node_type(node.get_type()).name)


def children(block: isl.AstNode) -> list[isl.AstNode]:
    """The nodes of a block, in order."""
    nodes = block.block_get_children()
    return [nodes.get_at(position) for position in range(nodes.n_ast_node())]


def called(node: isl.AstNode, values: Values) -> tuple[str, tuple[Int, ...]]:
    """The statement and the iterators' values that a user node `S0(e0, e1)` stands for."""
    name, *args = arguments(node.user_get_expr())
    return name.get_id().get_name(), tuple(integer(arg, values) for arg in args)
