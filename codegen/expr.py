"""The expressions of statement bodies: a small tree of frozen nodes, shared by the model and the printers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from codegen.integer import Affine

FUNCTIONS = {"exp": 1, "sqrt": 1, "tanh": 1, "abs": 1, "min": 2, "max": 2}
"""The functions that a body may call, with their number of arguments (`min`, `max`: nested for more)."""


@dataclass(frozen=True)
class Const:
    """A number."""

    value: float | int


@dataclass(frozen=True)
class Index:
    """A loop index or size used as a value."""

    affine: Affine


@dataclass(frozen=True)
class Load:
    """An array's element, or a scalar (no indices)."""

    array: str
    indices: tuple[Affine, ...]

    def __str__(self) -> str:
        """`A[i, k]`; a scalar has empty brackets, as an element of a set in isl's notation."""
        return f"{self.array}[{', '.join(map(str, self.indices))}]"


@dataclass(frozen=True)
class Unary:
    """`-x`."""

    op: str
    operand: Expr


@dataclass(frozen=True)
class Binary:
    """`left op right`, with `op` one of `+ - * /`."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class FunctionCall:
    """One of FUNCTIONS."""

    function: str
    args: tuple[Expr, ...]


Expr = Const | Index | Load | Unary | Binary | FunctionCall

OPERATORS: dict[str, Callable[..., float | int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip
CHOICES: dict[str, Callable[..., float | int]] = {"abs": abs, "min": min, "max": max}
"""Functions that Python computes exactly as the generated code does."""


def number(expr: Expr) -> float | int | None:
    """The value of an expression of numbers with + - * /, min, max and abs, as in Python; None for any other.

    Raises:
        ZeroDivisionError, OverflowError: as Python does.
    """
    match expr:
        case Const(value):
            return value
        case Index(affine):
            return None if affine.terms else affine.constant
        case Unary(_, operand):
            inner = number(operand)
            return None if inner is None else -inner
        case Binary(op, left, right):
            return _applied(OPERATORS[op], (left, right))
        case FunctionCall(("abs" | "min" | "max") as function, args):
            return _applied(CHOICES[function], args)
    return None


def _applied(function: Callable[..., float | int], args: tuple[Expr, ...]) -> float | int | None:
    values = [value for arg in args if (value := number(arg)) is not None]
    return function(*values) if len(values) == len(args) else None


def walk(expr: Expr) -> Iterator[Expr]:
    """The node and all below it, parents first, left to right."""
    yield expr
    match expr:
        case Unary(_, operand):
            yield from walk(operand)
        case Binary(_, left, right):
            yield from walk(left)
            yield from walk(right)
        case FunctionCall(_, args):
            for arg in args:
                yield from walk(arg)


def loads(expr: Expr) -> tuple[Load, ...]:
    """Every element that the expression reads, in order, repeats kept."""
    return tuple(node for node in walk(expr) if isinstance(node, Load))


def map_loads(expr: Expr, change: Callable[[Load], Expr]) -> Expr:
    """The expression with `change(load)` in place of every element that it reads."""
    match expr:
        case Load():
            return change(expr)
        case Unary(op, operand):
            return Unary(op, map_loads(operand, change))
        case Binary(op, left, right):
            return Binary(op, map_loads(left, change), map_loads(right, change))
        case FunctionCall(function, args):
            return FunctionCall(function, tuple(map_loads(arg, change) for arg in args))
    return expr
