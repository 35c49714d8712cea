"""Intervals of the integers in statements: an operation whose result stays in its type is C's operator.

With a and b of u8:

add_i32(mul_i32(2, (int32_t)a), (int32_t)b)    ->    2*(int32_t)a + (int32_t)b, at most 765

Compilers bound such a result too, and compute in 16 bits; of unsigned operations that may wrap around they cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce

from codegen.ir.expr import OPERATORS, Binary, Cast, Const, Expr, FunctionCall, Load, Ternary, Unary
from codegen.ir.program import Assign, Program
from codegen.ir.promotion import Weak, fits, integer, limits, quotient, type_of
from codegen.ir.ranges import Interval
from microkernels.dtypes import DType


@dataclass(frozen=True)
class ValueRanges:
    """The intervals of expressions, given the types of arrays, and the intervals of some variables."""

    dtype_of: Callable[[str], DType]
    known: Mapping[str, Interval] = field(default_factory=dict)

    def stays(self, expr: Unary | Binary | FunctionCall, dtype: DType) -> bool:
        """Whether the result of an operation, computed in an integer type, is inside it without wrapping around."""
        low, high = self._exact(expr, dtype)
        return fits(low, dtype) and fits(high, dtype)

    def of(self, expr: Expr, dtype: DType) -> Interval:
        """The least and the greatest value of an expression that is converted to an integer type."""
        own = type_of(expr, self.dtype_of)
        if own.is_float or (isinstance(own, Weak) and not isinstance(expr, Const | Ternary)):
            return limits(dtype)
        kind = dtype if isinstance(own, Weak) else own
        return _inside(_inside(self._exact(expr, kind), kind), dtype)

    def after(self, statement: Assign) -> Interval:
        """The interval of what an assignment sets its target to."""
        dtype = self.dtype_of(statement.target.array)
        if statement.op in "+*":
            return limits(dtype)
        return self.of(statement.expr, dtype)

    def _exact(self, expr: Expr, dtype: DType) -> Interval:
        """The same of an expression in its own type, before its result wraps around."""
        match expr:
            case Const(value):
                return (integer(value, dtype),) * 2
            case Load(array):
                return self.known.get(array) or limits(self.dtype_of(array))
            case Unary(_, operand):
                low, high = self.of(operand, dtype)
                return -high, -low
            case Binary("+" | "-" | "*" as op, left, right):
                return _combined(op, self.of(left, dtype), self.of(right, dtype))
            case FunctionCall("abs", (operand,)):
                low, high = self.of(operand, dtype)
                return max(low, -high, 0), max(-low, high)
            case FunctionCall("min" | "max" as function, args):
                choose: Callable[..., int] = min if function == "min" else max
                lows, highs = zip(*(self.of(arg, dtype) for arg in args), strict=True)
                return choose(lows), choose(highs)
            case Ternary(_, then, other):
                return _hull(self.of(then, dtype), self.of(other, dtype))
            case Cast(wanted, operand):
                found = quotient(operand, self.dtype_of)
                if found is None:
                    return self.of(operand, wanted)
                low, high = self.of(found.value, found.dtype)
                return found.of(low), found.of(high)
        return limits(dtype)


def ranged(program: Program) -> dict[str, Interval]:
    """The intervals of the integers in a program's variables, by the statements that assign them.

    Each round bounds them by those of the last one, at first by their types.
    """
    dtypes = {buffer.name: buffer.dtype for buffer in program.buffers}
    variables = [buffer.name for buffer in program.buffers if buffer.variable and not buffer.dtype.is_float]
    written: dict[str, list[Assign]] = {name: [] for name in variables}
    for statement in program.statements.values():
        body = statement.body
        if isinstance(body, Assign) and body.target.array in written:
            written[body.target.array].append(body)
    found: dict[str, Interval] = {}
    for _ in variables:
        ranges = ValueRanges(dtypes.__getitem__, found)
        new = {name: reduce(_hull, [ranges.after(one) for one in made], (0, 0)) for name, made in written.items()}
        if new == found:
            break
        found = new
    return found


def _inside(found: Interval, dtype: DType) -> Interval:
    """The interval of values that are converted to an integer type."""
    return found if all(fits(value, dtype) for value in found) else limits(dtype)


def _combined(op: str, one: Interval, other: Interval) -> Interval:
    """The interval of sums, differences or products."""
    combine = OPERATORS[op]
    every = [int(combine(a, b)) for a in one for b in other]
    return min(every), max(every)


def _hull(one: Interval, other: Interval) -> Interval:
    return min(one[0], other[0]), max(one[1], other[1])
