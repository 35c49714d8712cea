"""The expressions of statement bodies: a small tree of frozen nodes, shared by the model and the printers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from codegen.ir.integer import PYTHON, Int, lookups
from microkernels.dtypes import DType

FUNCTIONS = {
    "exp": 1, "exp2": 1, "expm1": 1, "log": 1, "log2": 1, "log10": 1, "log1p": 1, "sqrt": 1, "sinh": 1, "cosh": 1,
    "tanh": 1, "erf": 1, "sin": 1, "cos": 1, "tan": 1, "atan": 1, "floor": 1, "ceil": 1, "abs": 1, "pow": 2,
    "atan2": 2, "min": 2, "max": 2,
}  # fmt: skip
"""The functions that a body may call, with their number of arguments."""
OF_MORE = frozenset({"min", "max"})
"""Those that take two arguments or more in a nest."""
CHOOSING = frozenset({"abs", *OF_MORE})
"""The functions whose result has the type of their arguments also for integers."""

PERIODIC = frozenset({"sin", "cos", "tan"})
"""The functions whose argument is first reduced to a part of a period, which takes much longer for large numbers."""


@dataclass(frozen=True)
class Const:
    """A number."""

    value: float | int


@dataclass(frozen=True)
class Index:
    """An integer of loop indices and sizes used as a value."""

    value: Int


@dataclass(frozen=True)
class Load:
    """An array's element, or a scalar (no indices)."""

    array: str
    indices: tuple[Int, ...]

    def __str__(self) -> str:
        """`A[i, k]`; a scalar has empty brackets, as an element of a set in isl's notation."""
        return f"{self.array}[{', '.join(map(PYTHON.integer, self.indices))}]"


@dataclass(frozen=True)
class Unary:
    """`-x`."""

    op: str
    operand: Expr


@dataclass(frozen=True)
class Binary:
    """`left op right`, with `op` one of `+ - * /`, or of WHOLE."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class FunctionCall:
    """One of FUNCTIONS."""

    function: str
    args: tuple[Expr, ...]


@dataclass(frozen=True)
class Cast:
    """The operand converted to a type."""

    dtype: DType
    operand: Expr


@dataclass(frozen=True)
class Predicate:
    """`left op right`, which is true or false, with `op` one of `< <= > >= == !=`."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Logic:
    """`and` or `or` of two or more parts, or `not` of one."""

    op: str
    parts: tuple[Truth, ...]


@dataclass(frozen=True)
class Ternary:
    """`then if test else other`; all three are evaluated."""

    test: Truth
    then: Expr
    other: Expr


Expr = Const | Index | Load | Unary | Binary | FunctionCall | Cast | Ternary
Truth = Predicate | Logic
Node = Expr | Truth
NodeT = TypeVar("NodeT", bound=Node)

OPERATORS: dict[str, Callable[..., float | int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip
WHOLE: dict[str, Callable[..., int]] = {
    "//": operator.floordiv, "%": operator.mod, "<<": operator.lshift, ">>": operator.rshift, "&": operator.and_,
    "|": operator.or_, "^": operator.xor,
}  # fmt: skip
"""The operators of integers. By 0 they give 0; a shift by a count outside the type, all bits of the sign, or 0."""
CHOICES: dict[str, Callable[..., float | int]] = {"abs": abs, "min": min, "max": max}
"""Functions that Python computes exactly as the generated code does."""


def number(expr: Expr) -> float | int | None:
    """The value of an expression of numbers with operators, min, max and abs, as in Python; None for any other.

    Raises:
        ZeroDivisionError, OverflowError, ValueError, TypeError: as Python does.
    """
    match expr:
        case Const(value):
            return value
        case Index(value):
            return value.number
        case Unary(_, operand):
            inner = number(operand)
            return None if inner is None else -inner
        case Binary(op, left, right):
            return _applied((OPERATORS | WHOLE)[op], (left, right))
        case FunctionCall(("abs" | "min" | "max") as function, args):
            return _applied(CHOICES[function], args)
    return None


def _applied(function: Callable[..., float | int], args: tuple[Expr, ...]) -> float | int | None:
    values = [value for arg in args if (value := number(arg)) is not None]
    return function(*values) if len(values) == len(args) else None


def operands(node: Node) -> tuple[Node, ...]:
    """The nodes directly below, left to right."""
    match node:
        case Unary(_, operand) | Cast(_, operand):
            return (operand,)
        case Binary(_, left, right) | Predicate(_, left, right):
            return left, right
        case FunctionCall(_, args):
            return args
        case Logic(_, parts):
            return parts
        case Ternary(test, then, other):
            return test, then, other
    return ()


def map_operands(node: NodeT, change: Callable[[Any], Any]) -> NodeT:
    """The node with the nodes directly below it changed."""
    match node:
        case Unary(_, operand) | Cast(_, operand):
            return replace(node, operand=change(operand))
        case Binary(_, left, right) | Predicate(_, left, right):
            return replace(node, left=change(left), right=change(right))
        case FunctionCall(_, args):
            return replace(node, args=tuple(map(change, args)))
        case Logic(_, parts):
            return replace(node, parts=tuple(map(change, parts)))
        case Ternary(test, then, other):
            return replace(node, test=change(test), then=change(then), other=change(other))
    return node


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, parents first, left to right."""
    yield node
    for operand in operands(node):
        yield from walk(operand)


def loads(node: Node) -> tuple[Load, ...]:
    """Every element that the expression reads, in order, repeats kept."""
    return tuple(found for found in walk(node) if isinstance(found, Load))


def accessed(node: Node) -> tuple[Load, ...]:
    """The same with the elements that their subscripts look up."""
    return tuple(access for load in loads(node) for access in (load, *looked_up(load)))


def looked_up(load: Load) -> tuple[Load, ...]:
    """The elements that an access looks up in arrays of indices."""
    return tuple(Load(found.array, found.indices) for index in load.indices for found in lookups(index))


def integers(node: Node) -> tuple[Int, ...]:
    """The expressions of indices directly in a node, and those of the elements that they look up."""
    match node:
        case Load(indices=indices):
            return (*indices, *(value for found in looked_up(node) for value in found.indices))
        case Index(value):
            return (value,)
    return ()


def map_loads(node: NodeT, change: Callable[[Load], Expr]) -> NodeT:
    """The expression with `change(load)` in place of every element that it reads."""
    if isinstance(node, Load):
        return change(node)  # type: ignore[return-value]  # an expression for an expression
    return map_operands(node, lambda operand: map_loads(operand, change))


def placed(node: NodeT, values: Mapping[str, Int]) -> NodeT:
    """The expression with values in place of names (iterators, sizes) in subscripts and indices."""
    match node:
        case Index(value):
            return Index(value.substitute(values))  # type: ignore[return-value]  # an expression for an expression
        case Load(array, indices):
            return Load(array, tuple(index.substitute(values) for index in indices))  # type: ignore[return-value]
    return map_operands(node, lambda operand: placed(operand, values))
