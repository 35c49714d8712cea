"""Statement bodies as C: expressions in the arrays' own types, with the meaning that Python and NumPy give them.

A number or an index takes the type of what it meets, as in NumPy: `2.0*x` is `2.0f*x` where `x` is f32. Division is
true division also of integers. `max(a, b)` is `a` unless `b > a`, so a NaN goes through as it does in Python's loops.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from codegen.affine import Affine
from codegen.expr import Binary, Call, Const, Expr, Index, Load, Unary
from codegen.integer import primary, product
from codegen.names import c_name
from codegen.program import Assign, Buffer
from microkernels.dtypes import DTYPES, DType, f32, f64, i64

SUM, PRODUCT, SIGN, PRIMARY = 1, 2, 3, 4
"""How tightly a text binds."""

Typed = tuple[str, int]
"""A text, and how tightly it binds."""


def helpers() -> dict[str, str]:
    """C functions that the expressions may call, by name."""
    result = {}
    for dtype in DTYPES.values():
        c, name = dtype.c_name, dtype.name
        result[f"min_{name}"] = f"static inline {c} min_{name}({c} a, {c} b) {{ return b < a ? b : a; }}"
        result[f"max_{name}"] = f"static inline {c} max_{name}({c} a, {c} b) {{ return b > a ? b : a; }}"
        if not dtype.is_float:
            result[f"abs_{name}"] = f"static inline {c} abs_{name}({c} a) {{ return a < 0 ? -a : a; }}"
    return result


@dataclass(frozen=True)
class Weak:
    """The type of a number that has none of its own: it takes the type that it meets."""

    is_float: bool


Type = DType | Weak


@dataclass(frozen=True)
class Body:
    """The surroundings of a statement: the program's buffers, and what sizes and its iterators stand for."""

    buffers: Mapping[str, Buffer]
    values: Mapping[str, Affine]

    def assign(self, statement: Assign) -> str:
        """`A[i] += …;`"""
        return self.update(self.element(statement.target), statement)

    def update(self, target: str, statement: Assign) -> str:
        """`target += …;` with the statement's operator and right-hand side, into a variable of the target's type."""
        dtype = self.buffers[statement.target.array].dtype
        match statement.op, statement.expr:
            case "+", Unary("-", operand):
                return f"{target} -= {_tight(self.print(operand, dtype), PRODUCT)};"
            case ("min" | "max") as op, expr:
                return f"{target} = {op}_{dtype.name}({target}, {self.print(expr, dtype)[0]});"
            case op, expr:
                return f"{target} {op.strip('=')}= {self.print(expr, dtype)[0]};"

    def element(self, load: Load) -> str:
        """`A[i*N + j]`, or a scalar's name."""
        buffer = self.buffers[load.array]
        if buffer.kind == "scalar":
            return c_name(buffer.name)
        parts = [_scaled(i.substitute(self.values), s) for i, s in zip(load.indices, strides(buffer), strict=True)]
        text = " + ".join(part for part in parts if part != "0").replace("+ -", "- ")
        return f"{c_name(buffer.name)}[{text or '0'}]"

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
        text, level = self._typed(expr, python)
        return (text, level) if context == f64 or not context.is_float else (f"({context.c_name})({text})", SIGN)

    def _typed(self, expr: Expr, dtype: DType) -> Typed:
        match expr:
            case Const(value):
                return literal(value, dtype)
            case Index(affine):
                return primary(affine.substitute(self.values)), PRIMARY
            case Load():
                return self.element(expr), PRIMARY
            case Unary(_, operand):
                return "-" + _tight(self.print(operand, dtype), PRIMARY), SIGN
            case Binary(op, left, right):
                return self._binary(op, left, right, dtype)
            case Call(function, args):
                texts = ", ".join(self.print(arg, dtype)[0] for arg in args)
                return f"{function_name(function, dtype)}({texts})", PRIMARY

    def _binary(self, op: str, left: Expr, right: Expr, dtype: DType) -> Typed:
        level = PRODUCT if op in "*/" else SUM
        first, second = self.print(left, dtype), self.print(right, dtype)
        if op == "/" and not join(self.type_of(left), self.type_of(right)).is_float:
            first = f"({dtype.c_name}){_tight(first, PRIMARY)}", SIGN
        return f"{_tight(first, level)} {op} {_tight(second, level + 1)}", level


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
    elif math.isfinite(value):
        text = repr(float(value)) + ("f" if dtype == f32 else "")
    else:
        text = "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
    return text, SIGN if text.startswith("-") else PRIMARY


def function_name(function: str, dtype: DType) -> str:
    """The C function for one of `codegen.expr.FUNCTIONS` in a type."""
    if function in ("min", "max") or (function == "abs" and not dtype.is_float):
        return f"{function}_{dtype.name}"
    name = "fabs" if function == "abs" else function
    return name + ("f" if dtype == f32 else "")


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


def _tight(typed: Typed, level: int) -> str:
    """The text, in parentheses where it binds less tightly than `level`."""
    text, own = typed
    return text if own >= level else f"({text})"
