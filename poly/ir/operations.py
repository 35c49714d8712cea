"""The operations of nests on NumPy's scalars: the types that results take, integers that wrap around, IEEE 754."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from codegen.calls.numpy_types import numpy_type
from codegen.ir.expr import CHOOSING, FUNCTIONS
from codegen.ir.promotion import integer
from microkernels.dtypes import DTYPES, DType, bf16

TYPES = {numpy_type(dtype).type: dtype for dtype in DTYPES.values() if not dtype.is_float}
"""The integer types by NumPy's type."""
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
}  # fmt: skip
"""The functions that replace comparisons."""


def cast(dtype: DType) -> type[np.generic]:
    """The NumPy type, which makes a scalar of a value when it is called."""
    return numpy_type(dtype).type


def maker(dtype: DType) -> Callable[[Any], Any]:
    """The function that converts a value to a scalar of this type."""
    if dtype == bf16:
        return lambda value: cast(dtype)(value)  # NumPy may lack it
    kind = cast(dtype)
    return kind if dtype.is_float else lambda value: _number(value, kind)


def functions() -> dict[str, Callable[..., Any]]:
    """The functions that a nest's calls and operators stand for, and `local`, which makes a local array."""
    return {
        **{name: _real(getattr(np, name)) for name in set(FUNCTIONS) - CHOOSING if hasattr(np, name)},
        "atan": _real(np.arctan), "erf": _real(lambda value: type(value)(math.erf(value))),
        "pow": _powered, "atan2": _of_two(np.arctan2), "square": lambda a: _joined(operator.mul)(a, a),
        "select": _selected, "divide": _divided,
        "local": local, "index": int, "all": all, "any": any,
        "abs": abs, "min": _chosen(min), "max": _chosen(max),
        **{name: _compared(getattr(operator, name)) for name in COMPARISONS.values()},
        "add": _joined(operator.add), "sub": _joined(operator.sub), "mul": _joined(operator.mul),
        "floordiv": _joined(operator.floordiv), "mod": _joined(operator.mod), "lshift": _joined(operator.lshift),
        "rshift": _joined(operator.rshift), "and": _joined(operator.and_), "or": _joined(operator.or_),
        "xor": _joined(operator.xor),
    }  # fmt: skip


def _real(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function on a NumPy float in its own type, on a NumPy integer in float64, on a Python number as a float."""

    def apply(value: Any) -> Any:
        if isinstance(value, np.integer):
            return function(np.float64(value))
        return function(value) if isinstance(value, np.generic) else float(function(float(value)))

    return apply


def _joined(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The function of two values, which converts a Python number to the other's type if that would not do so."""

    def apply(a: Any, b: Any) -> Any:
        a, b = _alike(a, b)
        if isinstance(a, np.integer) and isinstance(b, int):
            return function(a, _number(b, type(a)))
        return function(_number(a, type(b)), b) if isinstance(b, np.integer) and isinstance(a, int) else function(a, b)

    return apply


def _alike(a: Any, b: Any) -> tuple[Any, Any]:
    """Two values, of which a number becomes bf16 if the other one is: to NumPy, bf16 is no float."""
    if _is_bf16(a) != _is_bf16(b):
        return (a, type(a)(b)) if _is_bf16(a) else (type(b)(a), b)
    return a, b


def _compared(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: function(*_alike(a, b))


def _is_bf16(value: Any) -> bool:
    return type(value).__name__ == bf16.numpy_name  # NumPy may lack the type, and to name its dtype takes long


def _chosen(function: Callable[..., Any]) -> Callable[..., Any]:
    """`min` or `max`, with a result of the common type of all values."""

    def apply(first: Any, *others: Any) -> Any:
        for other in others:
            kind = None
            first, other = _alike(first, other)
            if isinstance(first, np.generic) or isinstance(other, np.generic):
                kind = np.result_type(first, other).type
                first, other = _number(first, kind), _number(other, kind)
            first = function(first, other)
        return first

    return apply


def _selected(test: Any, then: Any, other: Any) -> Any:
    """`then if test else other`, with a result of the common type of both."""
    then, other = _alike(then, other)
    chosen = then if test else other
    if isinstance(then, np.generic) or isinstance(other, np.generic):
        return _number(chosen, np.result_type(then, other).type)
    return float(chosen) if isinstance(then, float) or isinstance(other, float) else chosen


def _powered(a: Any, b: Any) -> Any:
    """`a ** b` in floating point."""
    if isinstance(a, int) and isinstance(b, int) and b >= 0:
        return a**b
    return _of_two(np.power)(a, b)


def _of_two(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The function of two values in floating point, of NumPy integers in float64, of two numbers as a float."""

    def apply(a: Any, b: Any) -> Any:
        a, b = _alike(a, b)
        a, b = (np.float64(x) if isinstance(x, np.integer) else x for x in (a, b))
        if isinstance(a, np.generic) or isinstance(b, np.generic):
            return function(a, b)
        return float(function(np.float64(a), np.float64(b)))

    return apply


def _divided(a: Any, b: Any) -> Any:
    """True division; a division of Python's numbers by 0 follows IEEE 754."""
    a, b = _alike(a, b)
    if isinstance(a, np.generic) or isinstance(b, np.generic) or b != 0:
        return a / b
    return float(np.float64(a) / np.float64(b))


def _number(value: Any, kind: type[np.generic]) -> Any:
    """A value converted to a NumPy type as the generated code converts it."""
    if not issubclass(kind, np.integer):
        return kind(value)
    plain = int(value) if isinstance(value, int | np.integer) else float(value)
    return kind(integer(plain, TYPES[kind]))


def local(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """A local array; floats start as NaN, so that tests notice elements that are read before they are written."""
    extents = [max(extent, 0) for extent in shape]
    kind = DTYPES[dtype]
    return np.full(extents, np.nan if kind.is_float else 0, numpy_type(kind))
