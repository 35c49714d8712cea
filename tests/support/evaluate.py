"""Run a nest in floating point from its sets alone: the points of the domains in the order of its tree."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from interpreter import run_order

from codegen.ir.expr import Binary, Const, Expr, FunctionCall, Index, Load, Unary
from poly.ir.nest import Nest

Cells = dict[tuple[str, tuple[int, ...]], float]
"""The value of each element."""

FUNCTIONS: dict[str, Any] = {"exp": math.exp, "sqrt": math.sqrt, "tanh": math.tanh, "abs": abs, "min": min, "max": max}
OPERATORS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


def interpret(nest: Nest, cells: Cells) -> None:
    """Run a nest of fixed sizes; `cells` holds the arguments' elements, and is updated."""
    for instance in run_order(nest, nest.tree):
        statement = nest.statement(instance.statement)
        values = dict(zip(statement.iterators, instance.point, strict=True))
        place = (statement.target.array, tuple(index.evaluate(values) for index in statement.target.indices))
        operand = evaluate(statement.expr, values, cells)
        if statement.op == "=":
            cells[place] = operand
        elif statement.op in OPERATORS:
            cells[place] = OPERATORS[statement.op](cells[place], operand)
        else:
            cells[place] = FUNCTIONS[statement.op](cells[place], operand)


def evaluate(expr: Expr, values: dict[str, int], cells: Cells) -> float:
    """The value of an expression for given iterators."""
    match expr:
        case Const(value):
            return value
        case Index(affine):
            return affine.evaluate(values)
        case Load(array, indices):
            return cells[array, tuple(index.evaluate(values) for index in indices)]
        case Unary(_, operand):
            return -evaluate(operand, values, cells)
        case FunctionCall(function, args):
            result: float = FUNCTIONS[function](*(evaluate(arg, values, cells) for arg in args))
            return result
        case Binary(op, left, right):
            return OPERATORS[op](evaluate(left, values, cells), evaluate(right, values, cells))
