"""Recognition of reductions: updates that may run in any order, as opposed to plain assignments."""

from __future__ import annotations

import math
from collections.abc import Callable

from codegen.ir.expr import Binary, Cast, Const, Expr, FunctionCall, Load, Predicate, Ternary, Truth, Unary, loads
from codegen.ir.promotion import fits, limits, type_of
from microkernels.dtypes import DType
from poly.ir.nest import Op

TypeOf = Callable[[str], DType]
"""The type of an array's elements."""


def as_reduction(place: Load, expr: Expr, dtype_of: TypeOf) -> tuple[Op, Expr]:
    """The operator and operand of `place = expr`.

        x = x + e        ->    x += e      (and x = e + x; likewise for *)
        x = x - e        ->    x += -e
        x = max(x, e)    ->    x max= e    (and min; of floats not max(e, x), which differs in Python if x is NaN)
        x = e if e > x else x    ->    x max= e    (and e if x < e else x; of integers any choice of the greater one)

    Anything else stays `=`, as does an update whose operand reads the updated element.
    """
    op: Op
    update: Expr
    operand: Expr
    dtype = dtype_of(place.array)
    match _unconverted(expr, dtype_of):
        case Binary("+", left, right) if right == place:
            op, update, operand = "+", right, left
        case Binary("*", left, right) if right == place:
            op, update, operand = "*", right, left
        case Binary("+", update, operand):
            op = "+"
        case Binary("*", update, operand):
            op = "*"
        case Binary("-", update, right):
            op, operand = "+", Unary("-", right)
        case FunctionCall("max" | "min" as op, (operand, update)) if update == place and not dtype.is_float:
            pass
        case FunctionCall("max" | "min" as op, (update, operand)):
            pass
        case Ternary(Predicate(relation, left, right), then, other) if (left, right) in ((then, other), (other, then)):
            op = "max" if (relation in (">", ">=")) == (left == then) else "min"
            update, operand = (then, other) if then == place and not dtype.is_float else (other, then)
            if relation not in ("<", ">") and (dtype.is_float or relation in ("==", "!=")):
                return "=", expr
        case _:
            return "=", expr
    return (op, operand) if update == place and place not in loads(operand) else ("=", expr)


def _unconverted(expr: Expr, dtype_of: TypeOf) -> Expr:
    """A choice by a comparison, without conversions of both sides to a larger type: C promotes small integers so.

    i16(i32(x) if i32(x) < i32(y) else i32(y))    ->    x if x < y else y
    """

    def own(wide: DType, *values: Expr) -> DType | None:
        kinds = {type_of(value, dtype_of) for value in values}
        kind = kinds.pop()
        return kind if isinstance(kind, DType) and not kinds and _holds(wide, kind) else None

    match expr:
        case Cast(dtype, Ternary(test, Cast(wide, then), Cast(as_wide, other))):
            if wide == as_wide and own(wide, then, other) == dtype:
                expr = Ternary(test, then, other)
    match expr:
        case Ternary(Predicate(relation, Cast(wide, left), Cast(as_wide, right)), then, other):
            if wide == as_wide and own(wide, left, right) is not None:
                return Ternary(Predicate(relation, left, right), then, other)
    return expr


def _holds(wide: DType, dtype: DType) -> bool:
    """Whether a type of integers has all numbers of another one."""
    return not wide.is_float and not dtype.is_float and all(fits(value, wide) for value in limits(dtype))


def guarded_update(test: Truth, place: Load, expr: Expr, dtype_of: TypeOf) -> tuple[Op, Expr]:
    """The operator and operand of `if test: place = expr`.

    A reduction stays one: where the test is false it takes a neutral element, such as the -0.0 that leaves all sums as
    they are.
    """
    op, operand = as_reduction(place, expr, dtype_of)
    if op == "=":
        return as_reduction(place, Ternary(test, operand, place), dtype_of)
    return op, Ternary(test, operand, Const(neutral(op, dtype_of(place.array))))


def neutral(op: Op, dtype: DType) -> float | int:
    """The number that an update by `op` leaves every value of the type as it is with."""
    if op in "+*":
        return int(op == "*") if not dtype.is_float else float(op == "*") or -0.0
    if dtype.is_float:
        return math.inf if op == "min" else -math.inf
    return limits(dtype)[op == "min"]
