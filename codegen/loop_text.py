"""Loops and statements as Python, for readers: in `poly show`, and in the comment above a kernel.

for i_tile in range((M + 5) // 6):  # parallel
    for i in range(6*i_tile, min(M, 6*i_tile + 6)):
        C[i] += A[i]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from codegen.ir.expr import (
    Binary,
    Cast,
    Const,
    Expr,
    FunctionCall,
    Index,
    Load,
    Logic,
    Predicate,
    Ternary,
    Truth,
    Unary,
)
from codegen.ir.integer import PYTHON, Int, Linear
from codegen.ir.loop_ir import Block, Comment, Declare, For, If, LoopMark, Node, Once, Run

INDENT = "    "


def loop_lines(
    node: Node, statement: Callable[[Run], Sequence[str]], remark: Callable[[For | Once], Sequence[str]]
) -> list[str]:
    """The lines of a node: `statement` gives those of an instance, `remark` the remarks on a loop."""
    match node:
        case For():
            behind = f"  # {', '.join(remark(node))}" if remark(node) else ""
            head = f"for {node.variable} in range({', '.join(map(PYTHON.integer, _range(node)))}):{behind}"
            return [head, *_indented(loop_lines(node.body, statement, remark))]
        case Once():
            return [*(f"# {text}" for text in remark(node)), *loop_lines(node.body, statement, remark)]
        case If():
            lines = [f"if {PYTHON.test(node.test)}:", *_indented(loop_lines(node.then, statement, remark))]
            if node.other is not None:
                lines += ["else:", *_indented(loop_lines(node.other, statement, remark))]
            return lines
        case Block():
            return [line for child in node.nodes for line in loop_lines(child, statement, remark)]
        case Comment(text, body):
            return [f"# {text}", *loop_lines(body, statement, remark)]
        case Declare():
            return loop_lines(node.body, statement, remark)
        case Run():
            return list(statement(node))
    raise TypeError(f"{type(node).__name__} is for C alone")


def _indented(lines: Sequence[str]) -> list[str]:
    return [INDENT + line for line in lines]


def _range(loop: For) -> tuple[Int, ...]:
    """The arguments of `range`, without defaults."""
    assert loop.end is not None, "isl bounds a loop's variable by itself"
    if loop.step != 1:
        return loop.start, loop.end, Linear.of(loop.step)
    return (loop.end,) if loop.start == Linear() else (loop.start, loop.end)


def flags(mark: LoopMark) -> list[str]:
    """How a loop runs, in words."""
    shared = ["groups" if mark.group else "parallel"] * mark.parallel
    lanes = ["vectorize"] * mark.vectorize
    return shared + [f"{mark.items} items"] * (mark.items > 0) + lanes + [f"unroll {mark.unroll}"] * (mark.unroll > 1)


def assignment(target: Load, op: str, expr: Expr, values: Mapping[str, Int]) -> str:
    """A statement as Python, with `values` in place of its iterators."""
    left, right = expression(target, values), expression(expr, values)
    match op:
        case "=":
            return f"{left} = {right}"
        case "+" | "*":
            return f"{left} {op}= {right}"
    return f"{left} = {op}({left}, {right})"


BITWISE = ("<<", ">>", "&", "|", "^")
"""The operators that are always in parentheses, as are their operands if they are operations."""


def expression(expr: Expr, values: Mapping[str, Int], binds: int = 0) -> str:
    """A statement's expression as Python, with `values` in place of its iterators.

    It is in parentheses if its precedence is below `binds` (1 for sums, 2 for products, 3 for signs).
    """
    match expr:
        case Const(value):
            return repr(value)
        case Index(value):
            return f"({PYTHON.integer(value.substitute(values))})"
        case Load(array, indices):
            inner = ", ".join(PYTHON.integer(index.substitute(values)) for index in indices)
            return f"{array}[{inner}]" if indices else array
        case Unary(op, operand):
            return f"{op}{expression(operand, values, 3)}"
        case FunctionCall(function, args):
            return f"{function}({', '.join(expression(arg, values) for arg in args)})"
        case Binary(op, left, right):
            level = 0 if op in BITWISE else 1 if op in "+-" else 2
            sides = (3, 3) if op in BITWISE else (level, level + 1)
            text = f"{expression(left, values, sides[0])} {op} {expression(right, values, sides[1])}"
            return f"({text})" if level < binds else text
        case Cast(dtype, operand):
            return f"{dtype.name}({expression(operand, values)})"
        case Ternary(chosen, then, other):
            return f"({expression(then, values)} if {test(chosen, values)} else {expression(other, values)})"
    raise TypeError(type(expr).__name__)


def test(truth: Truth, values: Mapping[str, Int]) -> str:
    """A test as Python; its parts are in parentheses if they are tests themselves."""
    match truth:
        case Predicate(op, left, right):
            return f"{expression(left, values)} {op} {expression(right, values)}"
        case Logic("not", (part,)):
            return f"not ({test(part, values)})"
        case Logic(op, parts):
            return f" {op} ".join(f"({test(part, values)})" for part in parts)
