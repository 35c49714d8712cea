"""The types of expressions, as in NumPy: a number has no type of its own, and takes that of the other operand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from codegen.ir.expr import (
    CHOOSING,
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
from codegen.ir.integer import largest
from microkernels.dtypes import DType, f64, i32

LARGEST_INDEX = 1 << 48
"""The largest magnitude of a loop index or size."""


@dataclass(frozen=True)
class Weak:
    """The weak type of a number, which gives way to that of the other operand."""

    is_float: bool


Type = DType | Weak


def type_of(expr: Expr, dtype_of: Callable[[str], DType]) -> Type:
    """The type that NumPy would give; `dtype_of` maps an array's name to the type of its elements."""
    match expr:
        case Const(value):
            return Weak(isinstance(value, float))
        case Index():
            return Weak(False)
        case Load(array):
            return dtype_of(array)
        case Unary(_, operand):
            return type_of(operand, dtype_of)
        case Binary(op, left, right):
            joined = join(type_of(left, dtype_of), type_of(right, dtype_of))
            return _floating(joined) if op == "/" else joined
        case FunctionCall(function, args):
            joined = join(*(type_of(arg, dtype_of) for arg in args))
            return joined if function in CHOOSING else _floating(joined)
        case Cast(dtype):
            return dtype
        case Ternary(_, then, other):
            return join(type_of(then, dtype_of), type_of(other, dtype_of))


def join(*types: Type) -> Type:
    """NumPy's promotion: a number takes the array's type; an array's integers become f64 in combination with floats."""
    strong = [t for t in types if isinstance(t, DType)]
    is_float = any(t.is_float for t in types)
    if not strong:
        return Weak(is_float)
    floats = [t for t in strong if t.is_float]
    if is_float and not floats:
        return f64
    if floats and len(floats) < len(strong):
        return f64
    return max(floats or strong, key=lambda t: t.size)


def _floating(kind: Type) -> Type:
    """The type of true division, and of functions such as exp, for an operand's type."""
    if kind.is_float:
        return kind
    return f64 if isinstance(kind, DType) else Weak(True)


def limits(dtype: DType) -> tuple[int, int]:
    """The minimum and the maximum of an integer type."""
    whole = 1 << 8 * dtype.size
    return (0, whole - 1) if dtype.is_unsigned else (-whole // 2, whole // 2 - 1)


def fits(value: int, dtype: DType) -> bool:
    """Whether a number is in the range of an integer type."""
    low, high = limits(dtype)
    return low <= value <= high


def integer(value: float | int, dtype: DType) -> int:
    """A number converted to an integer type: an integer wraps around.

    A float is truncated; if the type cannot represent the result, it is the type's minimum.
    """
    low, high = limits(dtype)
    if isinstance(value, int):
        return (value - low) % (high - low + 1) + low
    return int(value) if math.isfinite(value) and fits(int(value), dtype) else low


def misfits(expr: Expr, context: DType, dtype_of: Callable[[str], DType]) -> Iterator[tuple[int, DType]]:
    """The integers in an expression that do not fit the type that they take, with it, in a context of type `context`.

    Subexpressions of indices and numbers alone are not examined, as they are first computed as in Python.
    """
    own = type_of(expr, dtype_of)
    dtype = own if isinstance(own, DType) else context
    match expr:
        case Const(int(value)):
            if not (_is_float(value) if dtype.is_float else fits(value, dtype)):
                yield value, dtype
        case Unary(_, operand) if dtype is own:
            yield from misfits(operand, dtype, dtype_of)
        case Binary(_, left, right) if dtype is own:
            yield from misfits(left, dtype, dtype_of)
            yield from misfits(right, dtype, dtype_of)
        case FunctionCall(_, args) if dtype is own:
            for arg in args:
                yield from misfits(arg, dtype, dtype_of)
        case Cast(_, operand):
            yield from misfits(operand, dtype, dtype_of)
        case Ternary(test, then, other):
            yield from _compared(test, dtype_of)
            yield from misfits(then, dtype, dtype_of)
            yield from misfits(other, dtype, dtype_of)


def _compared(test: Truth, dtype_of: Callable[[str], DType]) -> Iterator[tuple[int, DType]]:
    """The integers that do not fit the type in which a test compares them."""
    match test:
        case Predicate(_, left, right):
            joined = join(type_of(left, dtype_of), type_of(right, dtype_of))
            if isinstance(joined, DType):
                yield from misfits(left, joined, dtype_of)
                yield from misfits(right, joined, dtype_of)
        case Logic(_, parts):
            for part in parts:
                yield from _compared(part, dtype_of)


def _is_float(value: int) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def bound(expr: Expr) -> int:
    """A bound on the magnitude of an expression of indices and integers, and of all its parts."""
    match expr:
        case Const(value):
            return abs(int(value))
        case Index(index):
            return largest(index, LARGEST_INDEX)
        case Unary(_, operand):
            return bound(operand)
        case Binary("*", left, right):
            first, second = bound(left), bound(right)
            return max(first * second, first, second)
        case Binary(_, left, right):
            return bound(left) + bound(right)
        case FunctionCall(_, args):
            return max(bound(arg) for arg in args)
        case Ternary(_, then, other):
            return max(bound(then), bound(other))
    raise AssertionError(f"{expr} is no expression of indices and integers")


@dataclass(frozen=True)
class Quotient:
    """`value op by`, with `op` one of C's `/` and `>>`."""

    value: Expr
    dtype: DType
    """The type of the value."""
    op: Literal["/", ">>"]
    by: int

    def of(self, value: int) -> int:
        """What it is for a value."""
        if self.op == ">>":
            return value >> self.by
        return abs(value) // self.by * (1 if value >= 0 else -1)


def quotient(expr: Expr, dtype_of: Callable[[str], DType]) -> Quotient | None:
    """What is cut to an integer, a quotient of doubles, as one of integers, which is the same up to 32 bits."""
    match expr:
        case FunctionCall("floor", (Binary("*", value, Const(float(factor))),)) if 0 < factor <= 1:
            mantissa, exponent = math.frexp(factor)
            op: Literal["/", ">>"] = ">>"
            by, most, exact = 1 - exponent, 8 * i32.size - 1, mantissa == 0.5
        case Binary("/", value, Const(divisor)) if divisor >= 1 and divisor == divisor // 1:
            op, by, most, exact = "/", int(divisor), limits(i32)[1], True
        case _:
            return None
    inner = value.operand if isinstance(value, Cast) and value.dtype == f64 else value
    own = type_of(inner, dtype_of)
    if not exact or by > most or not isinstance(own, DType) or own.is_float or own.size > i32.size:
        return None
    return Quotient(inner, own, op, by)
