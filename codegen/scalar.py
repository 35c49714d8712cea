"""Statement bodies as C: expressions in the arrays' own types, with the meaning that Python and NumPy give them.

A number or an index takes the type of the other operand, as in NumPy: `2.0*x` is `2.0f*x` if `x` is f32. Numbers alone
are computed as in Python, whose integers are unbounded. Integers wrap around: `x + y` is `add_i32(x, y)`. Division is
true division, of integers too. `max(a, b)` is `a` unless `b > a`, so a NaN propagates as it does in Python's loops.

C only stores f16 and bf16: an operation on them is computed in f32, and rounded to the type, as NumPy does.

Each text carries its type in C: a conversion that may change a value is written out, `(float)i`, so that no compiler
warns of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np

from codegen.arithmetic import OPERATIONS, least, unsigned, update
from codegen.ir.expr import (
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
    accessed,
    loads,
    map_operands,
    number,
    walk,
)
from codegen.ir.integer import Int, Linear, Lookup, in_c, map_lookups, primary, product
from codegen.ir.program import Assign, Buffer
from codegen.ir.promotion import Quotient, Type, Weak, bound, fits, integer, join, limits, quotient, type_of
from codegen.ir.ranges import Interval, rejoined
from codegen.ir.value_ranges import ValueRanges
from codegen.names import c_name
from microkernels.dtypes import DType, f16, f32, f64, i32, i64

CHOICE, SUM, PRODUCT, SIGN, PRIMARY = 0, 1, 2, 3, 4
"""The precedence of a text."""
LARGEST_DIVISOR = 1 << 60
"""The largest divisor whose reciprocal `quotient` takes, and the least is 1: see `codegen.lanes.division`."""
LOGIC = {"and": " && ", "or": " || "}
EAGER = {"and": " & ", "or": " | "}
"""The operators of tests that are all made: compilers give lanes to no loop that loads an element in some of them."""


class Typed(NamedTuple):
    """A text, its precedence, and its type in C, which promotes small integers."""

    text: str
    level: int
    dtype: DType


@dataclass(frozen=True)
class Element:
    """An array's element in terms of C's variables; a scalar has no indices."""

    array: str
    indices: tuple[Int, ...]

    @property
    def names(self) -> frozenset[str]:
        return frozenset().union(*(index.names for index in self.indices))


@dataclass(frozen=True)
class StatementPrinter:
    """Prints statements, given the program's buffers, the values of sizes and iterators, and the variables that hold
    elements."""

    buffers: Mapping[str, Buffer]
    values: Mapping[str, Int]
    held: Mapping[Element, str] = field(default_factory=dict)
    near: frozenset[str] = frozenset()
    """The functions that take near numbers: see `codegen.lanes.near`."""
    over: Mapping[str, tuple[str, str]] | None = None
    """The variables that hold divisors and their reciprocals, by the divisors' texts, where vectors multiply by these:
    see `codegen.lanes.division`."""
    ranges: Mapping[str, Interval] = field(default_factory=dict)
    """The intervals of locals: see `codegen.ir.value_ranges`."""
    short: Mapping[str, DType] = field(default_factory=dict)
    """The smaller types in which C keeps some locals."""
    narrows: bool = False
    """Whether integers are computed in such types if they fit these, as in lanes; what is in no lanes is left as it is
    to compilers, which make their own choice where they find lanes."""

    def assign(self, statement: Assign) -> str:
        """`A[i] += …;`"""
        target = self.at(statement.target)
        return self.update(self.held.get(target) or self.element(target), statement)

    def update(self, target: str, statement: Assign) -> str:
        """`target += …;` with the statement's operator and right-hand side, into a variable of the target's type."""
        dtype = self.buffers[statement.target.array].dtype
        if dtype.is_stored:
            return self._rounded(target, statement, dtype)
        match statement.op, statement.expr:
            case "+", Unary("-", operand):
                return self._step(target, "-", operand, dtype)
            case ("+" | "*") as op, expr:
                return self._step(target, op, expr, dtype)
            case (("min" | "max"), _):
                return self.extreme(target, statement, dtype)
        expr = own_first(statement) if dtype.is_float else statement.expr
        kept = self.short.get(statement.target.array, dtype)
        return f"{target} = {_converted(self.print(expr, kept if isinstance(expr, Const) else dtype), kept).text};"

    def summed(self, target: str, statement: Assign, kind: DType) -> str:
        """`target = sum_i32(target, …);`, into an unsigned variable of the size of a type."""
        dtype = self.buffers[statement.target.array].dtype
        value = _tight(_converted(self.print(statement.expr, dtype), dtype), PRIMARY)
        return f"{target} = sum_{kind.name}({target}, ({unsigned(kind)}){value});"

    def extreme(self, target: str, statement: Assign, kind: DType) -> str:
        """`target = max_u8(target, …);`, into a variable of a type that has the value, which may be a smaller one."""
        typed = self.print(statement.expr, self.buffers[statement.target.array].dtype)
        return update(statement.op, kind, target, _converted(typed, kind).text)

    def kept_in(self, expr: Expr, dtype: DType) -> DType | None:
        """The smaller type in which an integer's value is computed; None if there is no such one."""
        kind = self._made_in(expr, dtype)
        return kind if kind is not None and kind.size < dtype.size else None

    def _made_in(self, expr: Expr, dtype: DType) -> DType | None:
        """The type of up to 16 bits in which an integer's value is computed."""
        if not self.narrows or dtype.is_float:
            return None
        return ValueRanges(self.dtype_of, self.ranges).short(expr, dtype, self.short)

    def _step(self, target: str, op: str, expr: Expr, dtype: DType) -> str:
        """`target op= expr;`, as an assignment if the result must be converted to the target's type."""
        if not join(dtype, self.type_of(expr)).is_float:
            return update(op, dtype, target, self.value(expr, dtype))
        typed = self.print(expr, dtype if dtype.is_float else f64)
        joined = _joined(dtype, typed.dtype)
        value = _converted(typed, joined)
        if not _may_change(joined, dtype):
            return update(op, dtype, target, _tight(value, PRODUCT) if op == "-" else value.text)
        before = _converted(Typed(target, PRIMARY, dtype), joined).text
        level = PRODUCT if op == "*" else SUM
        result = Typed(f"{before} {op} {_tight(value, SIGN if op == '*' else PRODUCT)}", level, joined)
        return f"{target} = {_cast(result, dtype).text};"

    def _rounded(self, target: str, statement: Assign, dtype: DType) -> str:
        """The same into a type that C only stores."""
        if statement.op == "=":
            return f"{target} = {self.value(statement.expr, dtype)};"
        before, value = _converted(Typed(target, PRIMARY, dtype), f32), self._in_f32(statement.expr, dtype)
        return f"{target} = {_cast(_combined(statement.op, before, value), dtype).text};"

    def _in_f32(self, expr: Expr, dtype: DType) -> Typed:
        """A value of a type that C only stores, or one that is not converted to it, in the type to compute with."""
        typed = self.print(expr, dtype)
        return typed if typed.dtype == f64 else _converted(typed, f32)

    def _stored(self, expr: Unary | Binary | FunctionCall | Ternary, dtype: DType) -> Typed:
        """An operation on values of a type that C only stores: computed in f32, and rounded."""
        match expr:
            case Unary(_, operand):
                return Typed("-" + _tight(self._in_f32(operand, dtype), PRIMARY), SIGN, f32)
            case Binary(op, left, right):
                return _cast(_combined(op, self._in_f32(left, dtype), self._in_f32(right, dtype)), dtype)
            case FunctionCall(function, args):
                texts = ", ".join(self._in_f32(arg, dtype).text for arg in args)
                return _cast(Typed(f"{self._function(function, f32)}({texts})", PRIMARY, f32), dtype)
            case Ternary(test, then, other):
                texts = ", ".join(self._in_f32(side, dtype).text for side in (then, other))
                return Typed(f"{function_name('choose', f32)}({self._condition(test)}, {texts})", PRIMARY, f32)

    def value(self, expr: Expr, dtype: DType) -> str:
        """The text of a value of this type."""
        return _converted(self.print(expr, dtype), dtype).text

    def operand(self, expr: Expr, dtype: DType) -> str:
        """The same as a side of a comparison."""
        return _tight(_converted(self.print(expr, dtype), dtype), SUM)

    def at(self, load: Load) -> Element:
        """The element that the statement accesses."""
        return Element(load.array, tuple(map_lookups(i.substitute(self.values), self._flat) for i in load.indices))

    def _flat(self, lookup: Lookup) -> Lookup:
        """The element that is looked up by its C name and its offset."""
        buffer = self.buffers[lookup.array]
        indices = (map_lookups(index, self._flat) for index in lookup.indices)
        steps = zip(indices, strides(buffer), strict=True)
        offset = reduce(add, (index * stride for index, stride in steps))
        return Lookup(c_name(buffer.name), (offset,), Linear())

    def element(self, element: Element) -> str:
        """`A[i*N + j]`, or a scalar's name."""
        buffer = self.buffers[element.array]
        if buffer.kind == "scalar" or (buffer.variable and not buffer.shape):
            return c_name(buffer.name)
        return f"{c_name(buffer.name)}[{self.offset(element)}]"

    def offset(self, element: Element) -> str:
        """The offset of an element in its array: `i*N + j`."""
        parts = [_scaled(index, stride) for index, stride in self._places(element)]
        return " + ".join(part for part in parts if part != "0").replace("+ -", "- ") or "0"

    def offset_names(self, element: Element) -> frozenset[str]:
        """The names in an element's offset."""
        return frozenset().union(*(_scaled_names(index, stride) for index, stride in self._places(element)))

    def _places(self, element: Element) -> list[tuple[Int, Int]]:
        """The indices and their strides; the quotient and the remainder of a flattened loop are one index."""
        found: list[tuple[Int, Int]] = []
        for index, stride in zip(element.indices, strides(self.buffers[element.array]), strict=True):
            found.append((index, stride))
            if len(found) > 1 and (one := _one_index(*found[-2:])) is not None:
                found[-2:] = [(one, stride)]
        return found

    def element_names(self, element: Element) -> frozenset[str]:
        """The names in an element's text."""
        if element in self.held:
            return frozenset({self.held[element]})
        return frozenset({c_name(self.buffers[element.array].name)}) | self.offset_names(element)

    def names(self, statement: Assign, stores: bool = True) -> frozenset[str]:
        """The names in a statement's text; without its target, unless it `stores` to that."""
        target = self.element_names(self.at(statement.target)) if stores else frozenset[str]()
        return self.names_of(statement.expr) | target

    def names_of(self, expr: Expr) -> frozenset[str]:
        """The names in an expression's text."""
        found = [self.element_names(self.at(load)) for load in accessed(expr)]
        indices = (node.value for node in walk(expr) if isinstance(node, Index))
        return frozenset().union(*found, *(index.substitute(self.values).names for index in indices))

    def type_of(self, expr: Expr) -> Type:
        """The type that NumPy would give."""
        return type_of(expr, self.dtype_of)

    def dtype_of(self, array: str) -> DType:
        """The type of an array's elements."""
        return self.buffers[array].dtype

    def print(self, expr: Expr, context: DType) -> Typed:
        """The text of `expr` in a context of type `context`."""
        own = self.type_of(expr)
        if isinstance(own, Weak) and not isinstance(expr, Const | Index | Ternary):
            return self._number(expr, own, context)
        return self._typed(expr, own if isinstance(own, DType) else context)

    def _number(self, expr: Expr, own: Weak, context: DType) -> Typed:
        """An expression of numbers and indices alone: computed as in Python, and then rounded to `context`.

        If it may exceed 64 bits, it is computed in f64 for a float, and wraps around for an integer.
        """
        with suppress(ZeroDivisionError, OverflowError):
            value = number(expr)
            if value is not None:
                return literal(value, context)
        beyond = not own.is_float and context.is_float and not fits(bound(expr), i64)
        typed = self._typed(expr, f64 if own.is_float or beyond else i64)
        return _cast(typed, context) if context == f32 else typed

    def _typed(self, expr: Expr, dtype: DType) -> Typed:
        typed = self._in_full(expr, dtype)
        plain = isinstance(expr, Const | Index | Load) or (isinstance(expr, Cast) and not self._quotient(expr))
        kind = None if plain else self.kept_in(expr, dtype)
        return typed if kind is None or typed.dtype.size <= kind.size else _cast(typed, kind)

    def _in_full(self, expr: Expr, dtype: DType) -> Typed:
        """The text of a value in a type, before one that fits fewer bits is computed in these."""
        match expr:
            case Const(value):
                return literal(value, dtype)
            case Index(index):
                place = index.substitute(self.values)
                return Typed(primary(place), PRIMARY, i64) if place.terms else literal(place.constant, dtype)
            case Load(array):
                element = self.at(expr)
                own = self.buffers[array].dtype
                if element in self.held:
                    return Typed(self.held[element], PRIMARY, own)
                return Typed(self.element(element), PRIMARY, self.short.get(array, own))
            case Unary() | Binary() | FunctionCall() | Ternary() if dtype.is_stored:
                return self._stored(expr, dtype)
            case Unary(_, operand) if self._wraps(expr, dtype):
                return Typed(f"neg_{dtype.name}({self.value(operand, dtype)})", PRIMARY, dtype)
            case Unary(_, operand):
                typed = self.print(operand, dtype)
                return Typed("-" + _tight(typed, PRIMARY), SIGN, _promoted(typed.dtype))
            case Binary(op, left, right) if self._wraps(expr, dtype):
                values = f"{self.value(left, dtype)}, {self.value(right, dtype)}"
                return Typed(f"{OPERATIONS[op]}_{dtype.name}({values})", PRIMARY, dtype)
            case Binary(op, left, right):
                return self._binary(op, left, right, dtype)
            case FunctionCall(function, args):
                texts = ", ".join(self.value(arg, dtype) for arg in args)
                plain = function == "abs" and not dtype.is_float and not self._wraps(expr, dtype)
                name = f"size_{dtype.name}" if plain else self._function(function, dtype)
                return Typed(f"{name}({texts})", PRIMARY, dtype)
            case Cast(wanted, operand):
                whole = self._quotient(expr)
                return self._cut(whole) if whole else self._cast_to(wanted, operand)
            case Ternary(test, then, other):
                sides = self._alike(then, other, dtype)
                if dtype.is_float or not self._is_extreme(test, then, other):
                    own = self._made_in(expr, dtype) or _promoted(dtype)
                    texts = ", ".join((self._condition(test), *(_converted(side, own).text for side in sides)))
                    return _converted(Typed(f"{function_name('choose', own)}({texts})", PRIMARY, own), dtype)
                texts = " : ".join(_tight(side, SUM) for side in sides)
                return _converted(Typed(f"{self.test(test)} ? {texts}", CHOICE, _promoted(dtype)), dtype)

    def _cast_to(self, wanted: DType, operand: Expr) -> Typed:
        """A value that is converted, as C does if it is a number that is surely inside the type."""
        typed = self.print(operand, wanted)
        cuts = typed.dtype in (f32, f64) and not wanted.is_float
        if cuts and ValueRanges(self.dtype_of, self.ranges).cut(operand, wanted) is not None:
            return Typed(f"({wanted.c_name}){_tight(typed, PRIMARY)}", SIGN, wanted)
        return _exactly(typed, wanted)

    def _quotient(self, expr: Cast) -> Quotient | None:
        return quotient(expr.operand, self.dtype_of) if expr.dtype == i32 else None

    def _is_extreme(self, test: Truth, then: Expr, other: Expr) -> bool:
        """Whether a choice may be a minimum or a maximum, which compilers see in C's operator alone."""
        compared = isinstance(test, Predicate) and not {test.left, test.right}.isdisjoint((then, other))
        return compared and {*loads(then), *loads(other)} <= set(loads(test))

    def _cut(self, whole: Quotient) -> Typed:
        """A quotient of doubles that is cut to an integer, as one of integers."""
        text = _tight(_converted(self.print(whole.value, whole.dtype), whole.dtype), PRIMARY)
        return Typed(f"({text} {whole.op} {whole.by})", PRIMARY, i32)

    def _function(self, function: str, dtype: DType) -> str:
        """The C function that a call stands for here."""
        return f"{'near_' * (function in self.near)}{function_name(function, dtype)}"

    def test(self, test: Truth) -> str:
        """The text of a test, in parentheses unless it is a call."""
        match test:
            case Predicate():
                return f"({self._condition(test)})"
            case Logic("not", (part,)):
                return f"!{self.test(part)}"
            case Logic(op, parts):
                signs = EAGER if all(map(_is_cheap, parts)) else LOGIC
                return f"({signs[op].join(map(self.test, parts))})"

    def _condition(self, test: Truth) -> str:
        """The text of a test, without parentheses around a comparison."""
        if not isinstance(test, Predicate):
            return self.test(test)
        first, second = self._compared(test.left, test.right)
        return f"{first} {test.op} {second}"

    def _compared(self, left: Expr, right: Expr) -> tuple[str, str]:
        """Two values in the type in which NumPy compares them; numbers and indices alone as Python does."""
        joined = join(self.type_of(left), self.type_of(right))
        if isinstance(joined, Weak):
            whole = not joined.is_float and fits(max(bound(left), bound(right)), i64)
            joined = i64 if whole else f64
        sides = (self._in_f32(left, joined), self._in_f32(right, joined)) if joined.is_stored else None
        first, second = sides or self._alike(left, right, joined)
        return _tight(first, SUM), _tight(second, SUM)

    def _alike(self, left: Expr, right: Expr, dtype: DType) -> tuple[Typed, Typed]:
        """Two values converted so that C takes them both in a type, to compare them or choose one."""
        first, second = (_converted(self.print(side, dtype), dtype) for side in (left, right))
        if _joined(first.dtype, second.dtype) != dtype:
            return _exactly(first, dtype), _exactly(second, dtype)
        return first, second

    def _wraps(self, expr: Unary | Binary | FunctionCall, dtype: DType) -> bool:
        """Whether the result may overflow an integer type, or is of one that C has no operations for."""
        if dtype.is_float:
            return False
        if isinstance(self.type_of(expr), Weak):
            return not fits(bound(expr), dtype)
        return dtype.size < i32.size or not ValueRanges(self.dtype_of, self.ranges).stays(expr, dtype)

    def _binary(self, op: str, left: Expr, right: Expr, dtype: DType) -> Typed:
        level = PRODUCT if op in "*/" else SUM
        known = self._reciprocal(right, dtype) if op == "/" and dtype in (f32, f64) else None
        if known:
            return Typed(f"quotient_{dtype.name}({', '.join((self.value(left, dtype), *known))})", PRIMARY, dtype)
        first, second = self.print(left, dtype), self.print(right, dtype)
        joined = _promoted(_joined(first.dtype, second.dtype))
        if dtype.is_float and not (joined.is_float and joined.size >= dtype.size):
            first, joined = _cast(first, dtype), dtype
        texts = _tight(_converted(first, joined), level), _tight(_converted(second, joined), level + 1)
        return Typed(f"{texts[0]} {op} {texts[1]}", level, joined)

    def _reciprocal(self, divisor: Expr, dtype: DType) -> tuple[str, str] | None:
        """The texts of a divisor and its reciprocal, where vectors multiply by it; powers of two compilers know."""
        if self.over is None:
            return None
        if not isinstance(divisor, Const):
            return self.over.get(self.value(divisor, dtype)) if self.type_of(divisor) == dtype else None
        value = float(literal(divisor.value, dtype).text.rstrip("f"))
        if not 1 <= abs(value) <= LARGEST_DIVISOR or math.frexp(abs(value))[0] == 0.5:
            return None
        over = float(np.float32(1) / np.float32(value)) if dtype == f32 else 1 / value
        return literal(value, dtype).text, literal(over, dtype).text


def _is_cheap(test: Truth) -> bool:
    """Whether a test takes no longer than a branch."""
    return not any(
        isinstance(node, FunctionCall) or (isinstance(node, Binary) and node.op == "/") for node in walk(test)
    )


def own_first(statement: Assign) -> Expr:
    """The right-hand side with products of the target's array in front of those that they are added to.

    Compilers fuse the first of two products with their sum. The next iteration then waits for one operation, not two.
    """

    def is_own(expr: Expr) -> bool:
        return any(load.array == statement.target.array for load in loads(expr))

    def ordered(expr: Expr) -> Expr:
        match expr:
            case Binary("+", Binary("*") as left, Binary("*") as right) if is_own(right) and not is_own(left):
                return replace(expr, left=right, right=left)
            case Binary() | Unary():
                return map_operands(expr, ordered)
        return expr

    return ordered(statement.expr)


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


def function_name(function: str, dtype: DType) -> str:
    """The C function for one of `codegen.ir.expr.FUNCTIONS` in a type."""
    if function == "abs" and dtype.is_float:
        return "fabsf" if dtype == f32 else "fabs"
    return f"{function}_{dtype.name}"


def strides(buffer: Buffer) -> tuple[Int, ...]:
    """The stride of each dimension in elements, in terms of C's variables."""
    if buffer.layout is not None:
        return buffer.layout
    if buffer.strides is not None:
        return tuple(Linear.of(int(s)) if s.isdigit() else Linear.name(c_name(s)) for s in buffer.strides)
    shape = tuple(map(in_c, buffer.shape))
    return tuple(product(shape[dimension + 1 :]) for dimension in range(len(shape)))


def _one_index(outer: tuple[Int, Int], inner: tuple[Int, Int]) -> Int | None:
    """The index that counts the elements of two dimensions: `i` for `[i/7, i % 7]` of rows of seven elements.

    None if it has all that the two have: `i/14` for `[i/196, i/14 - 14*(i/196)]` has less.
    """
    (first, apart), (second, stride) = outer, inner
    if not apart.number or not stride.number or apart.number % stride.number:
        return None
    both = first * (apart.number // stride.number) + second
    joined = rejoined(both)
    cancels = len(both.terms) < len({atom for index in (first, second) for atom, _ in index.terms})
    return joined if cancels or joined != both else None


def _scaled(index: Int, stride: Int) -> str:
    """`index*stride`, multiplied out if one of them is constant."""
    if stride.number is not None or index.number is not None:
        return str(index * stride)
    return f"{primary(index)}*{primary(stride)}"


def _scaled_names(index: Int, stride: Int) -> frozenset[str]:
    known = stride.number is not None or index.number is not None
    return (index * stride).names if known else index.names | stride.names


def _joined(first: DType, second: DType) -> DType:
    """The type in which C computes with both."""
    floats = [dtype for dtype in (first, second) if dtype.is_float]
    return max(floats or [first, second], key=lambda dtype: dtype.size)


def _may_change(source: DType, target: DType) -> bool:
    """Whether a conversion may change a value, of which compilers warn unless it is explicit."""
    if source.is_stored or target.is_stored:
        return source != target
    if target.is_float and not source.is_float:
        return source.size * 2 > target.size
    wider = source.size > target.size or (source.size == target.size and source.is_unsigned != target.is_unsigned)
    return source.is_float > target.is_float or wider


def _converted(typed: Typed, dtype: DType) -> Typed:
    """The text as a value of a type, with a cast if it needs one."""
    return _cast(typed, dtype) if _may_change(typed.dtype, dtype) else typed


def _combined(op: str, first: Typed, second: Typed) -> Typed:
    """`first op second` for an operator, `min` or `max`, in the wider of the two types."""
    joined = _joined(first.dtype, second.dtype)
    if op in ("min", "max"):
        return Typed(f"{op}_{joined.name}({first.text}, {second.text})", PRIMARY, joined)
    level = PRODUCT if op in "*/" else SUM
    return Typed(f"{_tight(first, level)} {op} {_tight(second, level + 1)}", level, joined)


def _cast(typed: Typed, dtype: DType) -> Typed:
    if typed.dtype.is_stored:
        single = Typed(f"f32_of_{typed.dtype.name}({typed.text})", PRIMARY, f32)
        return single if dtype == f32 else _cast(single, dtype)
    if dtype.is_stored:
        exact = typed.dtype == f32
        value = typed.text if exact else f"odd_f32({_converted(typed, f64).text})"
        return Typed(f"{dtype.name}_of_f32({value})", PRIMARY, dtype)
    if typed.dtype.is_float and not dtype.is_float:
        return Typed(f"to_{dtype.name}{'_of_f32' * (typed.dtype == f32)}({typed.text})", PRIMARY, dtype)
    if typed.level == CHOICE and not dtype.is_float and dtype.size < i32.size:
        return Typed(f"narrow_{dtype.name}({typed.text})", PRIMARY, dtype)
    return Typed(f"({dtype.c_name}){_tight(typed, PRIMARY)}", SIGN, dtype)


def _exactly(typed: Typed, dtype: DType) -> Typed:
    """The text as a value of exactly this type, for operations that would take a smaller type otherwise."""
    return typed if typed.dtype == dtype and typed.level > CHOICE else _cast(typed, dtype)


def _promoted(dtype: DType) -> DType:
    """The type that C gives to a choice between values of this type: small integers become `int`."""
    return i32 if not dtype.is_float and dtype.size < i32.size else dtype


def _tight(typed: Typed, level: int) -> str:
    """The text, in parentheses if its precedence is below `level`."""
    return typed.text if typed.level >= level else f"({typed.text})"
