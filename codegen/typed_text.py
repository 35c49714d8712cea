"""Texts of C with their types and precedences: literals, and conversions, written out where compilers would warn."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from codegen.arithmetic import least
from codegen.ir.promotion import integer, limits
from microkernels.dtypes import DType, f16, f32, f64, i32

CHOICE, SUM, PRODUCT, SIGN, PRIMARY = 0, 1, 2, 3, 4
"""The precedence of a text."""


class Typed(NamedTuple):
    """A text, its precedence, and its type in C, which promotes small integers."""

    text: str
    level: int
    dtype: DType


def literal(value: float | int, dtype: DType) -> Typed:
    """A number in a type: `0.5f`."""
    if not dtype.is_float:
        whole = integer(value, dtype)
        text = least(dtype) if whole == limits(dtype)[0] else str(whole)
        return Typed(text, SIGN if text.startswith("-") else PRIMARY, dtype)
    if dtype.is_stored:
        value, dtype = _nearest(_float(value), dtype), f32
    dtype = f32 if dtype == f16 else dtype
    number = _float(value) if dtype == f64 else _single(_float(value))
    if math.isfinite(number):
        text = repr(number) + ("f" if dtype == f32 else "")
    else:
        text = "NAN" if math.isnan(number) else "INFINITY" if number > 0 else "-INFINITY"
    return Typed(text, SIGN if text.startswith("-") else PRIMARY, dtype)


def _float(value: float | int) -> float:
    """The f64 nearest to a number."""
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _nearest(value: float, dtype: DType) -> float:
    """The number of a type that C only stores that is nearest to an f64."""
    with np.errstate(over="ignore"):
        if dtype.name == f16.name:
            return float(np.float16(value))
        single = np.float32(value)
    if not np.isfinite(single):
        return float(single)
    bits = int(single.view(np.uint32))
    if float(single) != value and not bits & 1:  # rounded to an odd number, so that it is not rounded twice
        bits += 1 if abs(float(single)) < abs(value) else -1
    rounded = bits + 0x7FFF + (bits >> 16 & 1) & 0xFFFF0000
    return float(np.uint32(rounded).view(np.float32))


def _single(value: float) -> float:
    """The number whose digits C reads as the f32 that NumPy rounds an f64 to.

    That is the f64 itself, unless it lies halfway between two f32 or beyond all of them.
    """
    with np.errstate(over="ignore"):
        near = np.float32(value)
        other = np.nextafter(near, np.float32(math.copysign(math.inf, value - float(near))))
    halfway = value != float(near) and float(near) + float(other) == 2 * value
    return float(near) if halfway or math.isinf(near) else value


def common_type(first: DType, second: DType) -> DType:
    """The type in which C computes with both."""
    floats = [dtype for dtype in (first, second) if dtype.is_float]
    return max(floats or [first, second], key=lambda dtype: dtype.size)


def may_change(source: DType, target: DType) -> bool:
    """Whether a conversion may change a value, of which compilers warn unless it is explicit."""
    if source.is_stored or target.is_stored:
        return source != target
    if target.is_float and not source.is_float:
        return source.size * 2 > target.size
    loses_sign = target.is_unsigned and not source.is_unsigned
    gains_sign = source.is_unsigned and not target.is_unsigned and source.size == target.size
    return source.is_float > target.is_float or source.size > target.size or loses_sign or gains_sign


def converted(typed: Typed, dtype: DType) -> Typed:
    """The text as a value of a type, with a cast if it needs one."""
    return cast(typed, dtype) if may_change(typed.dtype, dtype) else typed


def combined(op: str, first: Typed, second: Typed) -> Typed:
    """`first op second` for an operator, `min` or `max`, in the wider of the two types."""
    joined = common_type(first.dtype, second.dtype)
    if op in ("min", "max"):
        return Typed(f"{op}_{joined.name}({first.text}, {second.text})", PRIMARY, joined)
    level = PRODUCT if op in "*/" else SUM
    return Typed(f"{tight(first, level)} {op} {tight(second, level + 1)}", level, joined)


def cast(typed: Typed, dtype: DType) -> Typed:
    """The text converted to another type, as C or a helper function does."""
    if typed.dtype.is_stored:
        single = Typed(f"f32_of_{typed.dtype.name}({typed.text})", PRIMARY, f32)
        return single if dtype == f32 else cast(single, dtype)
    if dtype.is_stored:
        exact = typed.dtype == f32
        value = typed.text if exact else f"odd_f32({converted(typed, f64).text})"
        return Typed(f"{dtype.name}_of_f32({value})", PRIMARY, dtype)
    if typed.dtype.is_float and not dtype.is_float:
        return Typed(f"to_{dtype.name}{'_of_f32' * (typed.dtype == f32)}({typed.text})", PRIMARY, dtype)
    if typed.level == CHOICE and not dtype.is_float and dtype.size < i32.size:
        return Typed(f"narrow_{dtype.name}({typed.text})", PRIMARY, dtype)
    return Typed(f"({dtype.c_name}){tight(typed, PRIMARY)}", SIGN, dtype)


def exactly(typed: Typed, dtype: DType) -> Typed:
    """The text as a value of exactly this type, for operations that would take a smaller type otherwise."""
    return typed if typed.dtype == dtype and typed.level > CHOICE else cast(typed, dtype)


def promoted(dtype: DType) -> DType:
    """The type that C gives to a choice between values of this type: small integers become `int`."""
    return i32 if not dtype.is_float and dtype.size < i32.size else dtype


def tight(typed: Typed, level: int) -> str:
    """The text, in parentheses if its precedence is below `level`."""
    return typed.text if typed.level >= level else f"({typed.text})"
