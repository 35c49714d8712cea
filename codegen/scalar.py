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

import numpy as np

from codegen.arithmetic import OPERATIONS, WHOLE, unsigned, update
from codegen.elements import ElementPrinter
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
from codegen.ir.integer import primary
from codegen.ir.program import Assign
from codegen.ir.promotion import Quotient, Type, Weak, bound, fits, join, quotient, type_of
from codegen.ir.ranges import Interval
from codegen.ir.value_ranges import ValueRanges
from codegen.typed_text import (
    CHOICE,
    PRIMARY,
    PRODUCT,
    SIGN,
    SUM,
    Typed,
    cast,
    combined,
    common_type,
    converted,
    exactly,
    literal,
    may_change,
    promoted,
    tight,
)
from microkernels.dtypes import DType, f32, f64, i32, i64

LARGEST_DIVISOR = 1 << 60
"""The largest divisor whose reciprocal `quotient` takes, and the least is 1: see `codegen.lanes.division`."""
LOGIC = {"and": " && ", "or": " || "}
EAGER = {"and": " & ", "or": " | "}
"""The operators of tests that are all made: compilers give lanes to no loop that loads an element in some of them."""


@dataclass(frozen=True)
class StatementPrinter(ElementPrinter):
    """Prints statements, their elements as `ElementPrinter` says."""

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
        held = self.held.get(target)
        kept = None if held else self.short.get(statement.target.array)
        return self.update(held or self.element(target), statement, kept)

    def update(self, target: str, statement: Assign, kept: DType | None = None) -> str:
        """`target += …;` with the statement's operator and right-hand side, into a variable of the target's type.

        If it is `kept` in a smaller type, its values are made in that.
        """
        dtype = self.buffers[statement.target.array].dtype
        if dtype.is_stored:
            return self._rounded(target, statement, dtype)
        match statement.op, statement.expr:
            case "+", Unary("-", operand):
                return self._step(target, "-", operand, kept or dtype)
            case ("+" | "*") as op, expr:
                return self._step(target, op, expr, kept or dtype)
            case (("min" | "max"), _):
                return self.extreme(target, statement, dtype)
        expr = own_first(statement) if dtype.is_float else statement.expr
        made = self.print(expr, kept if kept and isinstance(expr, Const) else dtype)
        return f"{target} = {converted(made, kept or dtype).text};"

    def summed(self, target: str, statement: Assign, kind: DType) -> str:
        """`target = sum_i32(target, …);`, into an unsigned variable of the size of a type."""
        dtype = self.buffers[statement.target.array].dtype
        value = tight(converted(self.print(statement.expr, dtype), dtype), PRIMARY)
        return f"{target} = sum_{kind.name}({target}, ({unsigned(kind)}){value});"

    def extreme(self, target: str, statement: Assign, kind: DType) -> str:
        """`target = max_u8(target, …);`, into a variable of a type that has the value, which may be a smaller one."""
        typed = self.print(statement.expr, self.buffers[statement.target.array].dtype)
        return update(statement.op, kind, target, converted(typed, kind).text)

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
        joined = common_type(dtype, typed.dtype)
        value = converted(typed, joined)
        if not may_change(joined, dtype):
            return update(op, dtype, target, tight(value, PRODUCT) if op == "-" else value.text)
        before = converted(Typed(target, PRIMARY, dtype), joined).text
        level = PRODUCT if op == "*" else SUM
        result = Typed(f"{before} {op} {tight(value, SIGN if op == '*' else PRODUCT)}", level, joined)
        return f"{target} = {cast(result, dtype).text};"

    def _rounded(self, target: str, statement: Assign, dtype: DType) -> str:
        """The same into a type that C only stores."""
        if statement.op == "=":
            return f"{target} = {self.value(statement.expr, dtype)};"
        before, value = converted(Typed(target, PRIMARY, dtype), f32), self._in_f32(statement.expr, dtype)
        return f"{target} = {cast(combined(statement.op, before, value), dtype).text};"

    def _in_f32(self, expr: Expr, dtype: DType) -> Typed:
        """A value of a type that C only stores, or one that is not converted to it, in the type to compute with."""
        typed = self.print(expr, dtype)
        return typed if typed.dtype == f64 else converted(typed, f32)

    def _stored(self, expr: Unary | Binary | FunctionCall | Ternary, dtype: DType) -> Typed:
        """An operation on values of a type that C only stores: computed in f32, and rounded."""
        match expr:
            case Unary(_, operand):
                return Typed("-" + tight(self._in_f32(operand, dtype), PRIMARY), SIGN, f32)
            case Binary(op, left, right):
                return cast(combined(op, self._in_f32(left, dtype), self._in_f32(right, dtype)), dtype)
            case FunctionCall(function, args):
                texts = ", ".join(self._in_f32(arg, dtype).text for arg in args)
                return cast(Typed(f"{self._function(function, f32)}({texts})", PRIMARY, f32), dtype)
            case Ternary(test, then, other):
                texts = ", ".join(self._in_f32(side, dtype).text for side in (then, other))
                return Typed(f"{function_name('choose', f32)}({self._condition(test)}, {texts})", PRIMARY, f32)

    def value(self, expr: Expr, dtype: DType) -> str:
        """The text of a value of this type."""
        return converted(self.print(expr, dtype), dtype).text

    def operand(self, expr: Expr, dtype: DType) -> str:
        """The same as a side of a comparison."""
        return tight(converted(self.print(expr, dtype), dtype), SUM)

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
        return cast(typed, context) if context == f32 else typed

    def _typed(self, expr: Expr, dtype: DType) -> Typed:
        typed = self._in_full(expr, dtype)
        plain = isinstance(expr, Const | Index | Load) or (isinstance(expr, Cast) and not self._quotient(expr))
        kind = None if plain else self.kept_in(expr, dtype)
        return typed if kind is None or typed.dtype.size <= kind.size else cast(typed, kind)

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
                return Typed("-" + tight(typed, PRIMARY), SIGN, promoted(typed.dtype))
            case Binary(op, left, right) if self._wraps(expr, dtype):
                values = f"{self.value(left, dtype)}, {self.value(right, dtype)}"
                return Typed(f"{(OPERATIONS | WHOLE)[op]}_{dtype.name}({values})", PRIMARY, dtype)
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
                    own = self._made_in(expr, dtype) or promoted(dtype)
                    texts = ", ".join((self._condition(test), *(converted(side, own).text for side in sides)))
                    return converted(Typed(f"{function_name('choose', own)}({texts})", PRIMARY, own), dtype)
                texts = " : ".join(tight(side, SUM) for side in sides)
                return converted(Typed(f"{self.test(test)} ? {texts}", CHOICE, promoted(dtype)), dtype)

    def _cast_to(self, wanted: DType, operand: Expr) -> Typed:
        """A value that is converted, as C does if it is a number that is surely inside the type."""
        typed = self.print(operand, wanted)
        cuts = typed.dtype in (f32, f64) and not wanted.is_float
        if cuts and ValueRanges(self.dtype_of, self.ranges).cut(operand, wanted) is not None:
            return Typed(f"({wanted.c_name}){tight(typed, PRIMARY)}", SIGN, wanted)
        return exactly(typed, wanted)

    def _quotient(self, expr: Cast) -> Quotient | None:
        return quotient(expr.operand, self.dtype_of) if expr.dtype == i32 else None

    def _is_extreme(self, test: Truth, then: Expr, other: Expr) -> bool:
        """Whether a choice may be a minimum or a maximum, which compilers see in C's operator alone."""
        compared = isinstance(test, Predicate) and not {test.left, test.right}.isdisjoint((then, other))
        return compared and {*loads(then), *loads(other)} <= set(loads(test))

    def _cut(self, whole: Quotient) -> Typed:
        """A quotient of doubles that is cut to an integer, as one of integers."""
        text = tight(converted(self.print(whole.value, whole.dtype), whole.dtype), PRIMARY)
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
        return tight(first, SUM), tight(second, SUM)

    def _alike(self, left: Expr, right: Expr, dtype: DType) -> tuple[Typed, Typed]:
        """Two values converted so that C takes them both in a type, to compare them or choose one."""
        first, second = (converted(self.print(side, dtype), dtype) for side in (left, right))
        if common_type(first.dtype, second.dtype) != dtype:
            return exactly(first, dtype), exactly(second, dtype)
        return first, second

    def _wraps(self, expr: Unary | Binary | FunctionCall, dtype: DType) -> bool:
        """Whether the result may overflow an integer type, or C has no such operation, or none for the type."""
        if dtype.is_float:
            return False
        if isinstance(expr, Binary) and expr.op in WHOLE:
            return True
        if isinstance(self.type_of(expr), Weak):
            return not fits(bound(expr), dtype)
        return dtype.size < i32.size or not ValueRanges(self.dtype_of, self.ranges).stays(expr, dtype)

    def _binary(self, op: str, left: Expr, right: Expr, dtype: DType) -> Typed:
        level = PRODUCT if op in "*/" else SUM
        known = self._reciprocal(right, dtype) if op == "/" and dtype in (f32, f64) else None
        if known:
            return Typed(f"quotient_{dtype.name}({', '.join((self.value(left, dtype), *known))})", PRIMARY, dtype)
        first, second = self.print(left, dtype), self.print(right, dtype)
        joined = promoted(common_type(first.dtype, second.dtype))
        if dtype.is_float and not (joined.is_float and joined.size >= dtype.size):
            first, joined = cast(first, dtype), dtype
        texts = tight(converted(first, joined), level), tight(converted(second, joined), level + 1)
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
        isinstance(node, FunctionCall) or (isinstance(node, Binary) and node.op in ("/", "//", "%"))
        for node in walk(test)
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


def function_name(function: str, dtype: DType) -> str:
    """The C function for one of `codegen.ir.expr.FUNCTIONS` in a type."""
    if function == "abs" and dtype.is_float:
        return "fabsf" if dtype == f32 else "fabs"
    return f"{function}_{dtype.name}"
