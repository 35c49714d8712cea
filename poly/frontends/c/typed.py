"""Values of C's types as Python expressions: numbers, conversions, and operations that round as C does.

C computes in the common type of both operands, where a literal such as `0.1` is a double; in a nest a number takes the
type of the other operand. Conversions therefore become explicit: `f64(x[i]) * 0.1` for a float x.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from codegen.ir.promotion import integer
from microkernels.dtypes import DTYPES

FLOATS = ("f32", "f64")
NARROW = ("i8", "u8", "i16", "u16")
"""Types that C converts to int before it computes with them."""
PARTS = {"c64": "f32", "c128": "f64"}
"""The types of complex numbers, and those of their parts."""
COMPLEX_H = {"creal": "real", "cimag": "imag", "cabs": "abs", "conj": "conj", "cexp": "exp"}
"""The functions of complex.h that poly knows, by their names in a nest; each may end in `f`."""
CMPLX = "__builtin_complex"
OF_COMPLEX = {**{f"{name}{end}": 1 for name in COMPLEX_H for end in ("", "f")}, CMPLX: 2}
"""Their names in a text, with the number of arguments; that behind the macros CMPLX and CMPLXF is among them."""
UNIT = "_Complex_I"
INDICES = (*NARROW, "i32", "i64")
INTEGERS = ("int", "uint", "long", "ulong")
"""The types of counters, sizes and integers, of two the later one is the type in which C computes with both."""
UNSIGNED = ("uint", "ulong")
ARITHMETIC: Mapping[str, type[ast.operator]] = {"+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div}


@dataclass(frozen=True)
class Value:
    """A Python expression, and its type in C: that of data, or one of INTEGERS for counters, sizes and integers.

    `weak`: it has neither elements nor scalars in it, so that in a nest it takes the type of what it meets. `number` is
    the value of a literal. `single` is the same value computed in f32, where rounding it to f32 gives the same.
    """

    node: ast.expr
    kind: str
    weak: bool = False
    number: float | int | None = None
    single: ast.expr | None = None


def common(one: str, two: str) -> str:
    """The type in which C computes with two types; where that is unsigned, and one is data, it is the signed one."""
    kinds = {one, two}
    if kinds & PARTS.keys():
        return "c128" if kinds & {"c128", "f64"} else "c64"
    for kind in ("f64", "f32"):
        if kind in kinds:
            return kind
    if kinds & {*INDICES}:
        return "i64" if kinds & {"i64", "long", "ulong"} else "i32"
    return max(kinds, key=INTEGERS.index)


def wraps(*kinds: str) -> bool:
    """Whether C computes with these types in one that wraps around below 0."""
    if any(kind in (*FLOATS, *PARTS) for kind in kinds):
        return False
    return "ulong" in kinds or ("uint" in kinds and not {"long", "i64"} & {*kinds})


def converted(value: Value, kind: str) -> ast.expr:
    """The value's Python expression in a type; weak values take it from what they meet."""
    if value.kind == kind or kind in INTEGERS:
        return value.node
    if kind in PARTS and value.kind in PARTS:
        return value.node if value.weak else call(kind, value.node)
    if value.kind in PARTS:
        return converted(real_part(value), kind)
    if kind in PARTS:
        return converted(value, PARTS[kind])
    if value.number is not None and (kind in FLOATS or math.isfinite(value.number)):
        return numeral(value.number if kind in FLOATS else integer(int(value.number), DTYPES[kind]))
    if value.weak and (kind in FLOATS or value.kind in INTEGERS):
        return value.node
    if kind == "f32" and value.single is not None:
        return value.single
    return call(kind, value.node)


def real_part(value: Value) -> Value:
    """The real part of a complex number."""
    return Value(ast.Attribute(value.node, "real", ast.Load()), PARTS[value.kind], value.weak)


def in_single(op: str, left: Value, right: Value, kind: str) -> ast.expr | None:
    """An operation on a float and a literal that f32 has: its double result, rounded to f32, is that of f32 alone.

    A double has more than twice the bits of a float, so that rounding twice is rounding once.
    """
    sides = (left, right)
    fits = [
        (v.kind == "f32" and not v.weak) or (v.number is not None and float(np.float32(v.number)) == v.number)
        for v in sides
    ]
    if kind != "f64" or not all(fits) or all(v.number is not None for v in sides):
        return None
    return operation(op, *(numeral(v.number) if v.number is not None else v.node for v in sides))


def of_complex(name: str, args: Sequence[Value]) -> Value:
    """The value of one of OF_COMPLEX."""
    if name == CMPLX:
        kind = common(args[0].kind, args[1].kind)
        return Value(call("complex", *(converted(arg, kind) for arg in args)), common("c64", kind))
    plain, kind = (name, "c128") if name in COMPLEX_H else (name[:-1], "c64")
    made = call(COMPLEX_H[plain], converted(args[0], kind))
    return Value(made, kind if plain in ("conj", "cexp") else PARTS[kind])


def wide(value: Value) -> ast.expr:
    """An integer as a double."""
    return numeral(float(value.number)) if value.number is not None else call("f64", value.node)


def operation(op: str, left: ast.expr, right: ast.expr) -> ast.expr:
    return ast.BinOp(left, ARITHMETIC[op](), right)


def towards_zero(op: str, left: ast.expr, right: ast.expr, natural: bool) -> ast.expr:
    """C's quotient or remainder of integers by Python's, which round down; `natural`: the dividend is not negative."""
    kind = ast.FloorDiv() if op == "/" else ast.Mod()
    down: ast.expr = ast.BinOp(left, kind, right)
    if natural:
        return down
    up = ast.UnaryOp(ast.USub(), ast.BinOp(ast.UnaryOp(ast.USub(), left), kind, right))
    return ast.IfExp(ast.Compare(left, [ast.GtE()], [numeral(0)]), down, up)


def extreme(name: str, left: ast.expr, right: ast.expr) -> ast.expr:
    """fmin or fmax, which take the other value in place of a NaN."""
    order = ast.Compare(right, [ast.Lt() if name == "fmin" else ast.Gt()], [left])
    is_nan = ast.Compare(left, [ast.NotEq()], [left])
    return ast.IfExp(ast.BoolOp(ast.Or(), [order, is_nan]), right, left)


IMAGINARY = Value(ast.Constant(1j), "c64", weak=True)
"""The imaginary unit."""


def literal(number: float | int, kind: str) -> Value:
    return Value(numeral(number), kind, weak=True, number=number)


def numeral(value: float | int) -> ast.expr:
    """A number; a negative one is written with its sign, as Python reads it, and NaN as a difference."""
    if value != value:
        return ast.BinOp(numeral(math.inf), ast.Sub(), numeral(math.inf))
    if math.copysign(1, value) < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    return ast.Constant(value)


def call(name: str, *args: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])
