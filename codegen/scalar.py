"""Statement bodies as C: expressions in the arrays' own types, with the meaning that Python and NumPy give them.

A number or an index takes the type of what it meets, as in NumPy: `2.0*x` is `2.0f*x` where `x` is f32. Division is
true division also of integers. `max(a, b)` is `a` unless `b > a`, so a NaN goes through as it does in Python's loops.

Each text carries the type that C gives it: a conversion that may change a value is written out, `(float)i`, so that no
compiler has to warn of it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from codegen.affine import Affine
from codegen.expr import Binary, Call, Const, Expr, Index, Load, Unary
from codegen.integer import primary, product
from codegen.names import c_name
from codegen.program import Assign, Buffer
from microkernels.dtypes import DTYPES, DType, f16, f32, f64, i32, i64

SUM, PRODUCT, SIGN, PRIMARY = 1, 2, 3, 4
"""How tightly a text binds."""


class Typed(NamedTuple):
    """A text, how tightly it binds, and its type in C, which promotes small integers."""

    text: str
    level: int
    dtype: DType


def helpers() -> dict[str, str]:
    """C functions that the expressions may call, by name."""
    result = {}
    for dtype in DTYPES.values():
        c, name = dtype.c_name, dtype.name
        result[f"min_{name}"] = f"static inline {c} min_{name}({c} a, {c} b) {{ return b < a ? b : a; }}"
        result[f"max_{name}"] = f"static inline {c} max_{name}({c} a, {c} b) {{ return b > a ? b : a; }}"
        if not dtype.is_float:
            cast = f"({c})" if dtype.size < i32.size else ""
            result[f"abs_{name}"] = f"static inline {c} abs_{name}({c} a) {{ return a < 0 ? {cast}-a : a; }}"
    return result


@dataclass(frozen=True)
class Weak:
    """The type of a number that has none of its own: it takes the type that it meets."""

    is_float: bool


Type = DType | Weak


@dataclass(frozen=True)
class Body:
    """The surroundings of a statement: the program's buffers, what sizes and its iterators stand for, and the
    variables that hold elements which it may read."""

    buffers: Mapping[str, Buffer]
    values: Mapping[str, Affine]
    held: Mapping[str, str] = field(default_factory=dict)

    def assign(self, statement: Assign) -> str:
        """`A[i] += …;`"""
        return self.update(self.element(statement.target), statement)

    def update(self, target: str, statement: Assign) -> str:
        """`target += …;` with the statement's operator and right-hand side, into a variable of the target's type."""
        dtype = self.buffers[statement.target.array].dtype
        match statement.op, statement.expr:
            case "+", Unary("-", operand):
                return self._step(target, "-", operand, dtype)
            case ("+" | "*") as op, expr:
                return self._step(target, op, expr, dtype)
            case ("min" | "max") as op, expr:
                return f"{target} = {op}_{dtype.name}({target}, {self._value(expr, dtype)});"
        return f"{target} = {self._value(statement.expr, dtype)};"

    def _step(self, target: str, op: str, expr: Expr, dtype: DType) -> str:
        """`target op= expr;`, spelled out where the result must be converted to the target's type."""
        typed = self.print(expr, dtype)
        joined = _joined(dtype, typed.dtype)
        value = _converted(typed, joined)
        if not _may_change(joined, dtype):
            return f"{target} {op}= {_tight(value, PRODUCT) if op == '-' else value.text};"
        before = _converted(Typed(target, PRIMARY, dtype), joined).text
        return f"{target} = ({dtype.c_name})({before} {op} {_tight(value, SIGN if op == '*' else PRODUCT)});"

    def _value(self, expr: Expr, dtype: DType) -> str:
        """The text where C wants a value of this type."""
        return _converted(self.print(expr, dtype), dtype).text

    def element(self, load: Load) -> str:
        """`A[i*N + j]`, or a scalar's name."""
        buffer = self.buffers[load.array]
        if buffer.kind == "scalar":
            return c_name(buffer.name)
        return f"{c_name(buffer.name)}[{self.offset(load)}]"

    def offset(self, load: Load) -> str:
        """Where in its array an element lies: `i*N + j`."""
        steps = zip(load.indices, strides(self.buffers[load.array]), strict=True)
        parts = [_scaled(index.substitute(self.values), stride) for index, stride in steps]
        return " + ".join(part for part in parts if part != "0").replace("+ -", "- ") or "0"

    def type_of(self, expr: Expr) -> Type:
        """The type that NumPy would give."""
        match expr:
            case Const(value):
                return Weak(isinstance(value, float))
            case Index():
                return Weak(False)
            case Load(array):
                return self.buffers[array].dtype
            case Unary(_, operand):
                return self.type_of(operand)
            case Binary(op, left, right):
                joined = join(self.type_of(left), self.type_of(right))
                return _floating(joined) if op == "/" else joined
            case Call(function, args):
                joined = join(*(self.type_of(arg) for arg in args))
                return joined if function in ("abs", "min", "max") else _floating(joined)

    def print(self, expr: Expr, context: DType) -> Typed:
        """The text of `expr` where a value of type `context` is wanted."""
        own = self.type_of(expr)
        if isinstance(own, Weak) and not isinstance(expr, Const | Index):
            return self._number(expr, f64 if own.is_float else i64, context)
        return self._typed(expr, own if isinstance(own, DType) else context)

    def _number(self, expr: Expr, python: DType, context: DType) -> Typed:
        """An expression of numbers alone: reckoned as Python does, and then rounded to `context`."""
        typed = self._typed(expr, python)
        return _cast(typed, context) if context == f32 else typed

    def _typed(self, expr: Expr, dtype: DType) -> Typed:
        match expr:
            case Const(value):
                return literal(value, dtype)
            case Index(affine):
                place = affine.substitute(self.values)
                return Typed(primary(place), PRIMARY, i64) if place.terms else literal(place.constant, dtype)
            case Load(array):
                element = self.element(expr)
                return Typed(self.held.get(element, element), PRIMARY, self.buffers[array].dtype)
            case Unary(_, operand):
                typed = self.print(operand, dtype)
                return Typed("-" + _tight(typed, PRIMARY), SIGN, _joined(typed.dtype, i32))
            case Binary(op, left, right):
                return self._binary(op, left, right, dtype)
            case Call(function, args):
                texts = ", ".join(self._value(arg, dtype) for arg in args)
                return Typed(f"{function_name(function, dtype)}({texts})", PRIMARY, dtype)

    def _binary(self, op: str, left: Expr, right: Expr, dtype: DType) -> Typed:
        level = PRODUCT if op in "*/" else SUM
        first, second = self.print(left, dtype), self.print(right, dtype)
        if op == "/" and not join(self.type_of(left), self.type_of(right)).is_float and first.dtype != dtype:
            first = _cast(first, dtype)
        joined = _joined(first.dtype, second.dtype)
        texts = _tight(_converted(first, joined), level), _tight(_converted(second, joined), level + 1)
        return Typed(f"{texts[0]} {op} {texts[1]}", level, joined)


def join(*types: Type) -> Type:
    """NumPy's promotion: a number takes the array's type; an array's integers become f64 where they meet a fraction."""
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
    """What true division, exp, sqrt and tanh make of a type."""
    if kind.is_float:
        return kind
    return f64 if isinstance(kind, DType) else Weak(True)


def literal(value: float | int, dtype: DType) -> Typed:
    """A number in a type: `0.5f`."""
    if not dtype.is_float:
        text = str(int(value))
        dtype = dtype if -(1 << 8 * dtype.size - 1) <= value < 1 << 8 * dtype.size - 1 else i64
    elif math.isfinite(value):
        dtype = f32 if dtype == f16 else dtype
        text = repr(float(value)) + ("f" if dtype == f32 else "")
    else:
        text = "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
    return Typed(text, SIGN if text.startswith("-") else PRIMARY, dtype)


def function_name(function: str, dtype: DType) -> str:
    """The C function for one of `codegen.expr.FUNCTIONS` in a type."""
    if function == "abs" and dtype.is_float:
        return "fabsf" if dtype == f32 else "fabs"
    return f"{function}_{dtype.name}"


def strides(buffer: Buffer) -> tuple[str, ...]:
    """The distance between neighbours along each dimension in elements, as C texts that bind like a name."""
    if buffer.strides is not None:
        return tuple(s if re.fullmatch(r"\w+", s) else f"({s})" for s in buffer.strides)
    return tuple(product(buffer.shape[dimension + 1 :]) for dimension in range(len(buffer.shape)))


def _scaled(index: Affine, stride: str) -> str:
    """`index*stride`, folded where both are known."""
    if stride.lstrip("-").isdigit():
        return str(index * int(stride))
    if not index.terms and index.constant in (0, 1):
        return stride if index.constant else "0"
    return f"{primary(index)}*{stride}"


def _joined(first: DType, second: DType) -> DType:
    """The type in which C reckons with both."""
    floats = [dtype for dtype in (first, second) if dtype.is_float]
    return max(floats or [first, second, i32], key=lambda dtype: dtype.size)


def _may_change(source: DType, target: DType) -> bool:
    """Whether a conversion may change a value, of which a compiler warns unless it is written out."""
    if target.is_float and not source.is_float:
        return source.size * 2 > target.size
    return source.is_float > target.is_float or source.size > target.size


def _converted(typed: Typed, dtype: DType) -> Typed:
    """The text where C wants a value of a type, with a cast where it needs one."""
    return _cast(typed, dtype) if _may_change(typed.dtype, dtype) else typed


def _cast(typed: Typed, dtype: DType) -> Typed:
    return Typed(f"({dtype.c_name}){_tight(typed, PRIMARY)}", SIGN, dtype)


def _tight(typed: Typed, level: int) -> str:
    """The text, in parentheses where it binds less tightly than `level`."""
    return typed.text if typed.level >= level else f"({typed.text})"
