"""Intervals of the integers in statements: an operation whose result stays in its type is C's operator.

With a and b of u8:

add_i32(mul_i32(2, (int32_t)a), (int32_t)b)    ->    2*(int32_t)a + (int32_t)b, at most 765

Compilers bound such a result too; of unsigned operations that may wrap around they cannot. Where a result and all that
it is made of fit 16 bits, they are computed in these, twice as many in a vector:

(uint16_t)((uint16_t)(2*(int32_t)a) + (int32_t)b)

Compilers find this out themselves for some operations only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count, product
from math import ceil, inf, prod

from codegen.ir.expr import (
    CHOOSING,
    OPERATORS,
    Binary,
    Cast,
    Const,
    Expr,
    FunctionCall,
    Load,
    Logic,
    Node,
    Predicate,
    Ternary,
    Unary,
    loads,
    operands,
)
from codegen.ir.loop_ir import Declare, For, Run, inside, walk
from codegen.ir.loop_ir import Node as LoopNode
from codegen.ir.program import Assign, Program
from codegen.ir.promotion import Weak, fits, integer, join, limits, quotient, type_of
from codegen.ir.ranges import Interval
from microkernels.dtypes import DType, i8, i16, i32, u8, u16

SHORT = (u8, i8, i16, u16)
MOST_VARIABLES = 4
"""The most variables of a polynomial that is bounded by its corners, of which there are 2 to this power."""

MOST_REAL = 1e30
"""Numbers below are finite in f32, as are their products by the integers of a small type."""
ROUNDING = 2.0**-20
"""More than the largest relative error of an operation in f32, also of a quotient on an OpenCL device."""

ROUNDS = 4
"""The rounds in which the intervals of variables may grow."""


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
        if own.is_float:
            return self.cut(expr, dtype) or limits(dtype)
        if isinstance(own, Weak) and not isinstance(expr, Const | Ternary):
            return limits(dtype)
        kind = dtype if isinstance(own, Weak) else own
        return _inside(_inside(self._exact(expr, kind), kind), dtype)

    def cut(self, expr: Expr, dtype: DType) -> Interval | None:
        """The least and the greatest value of a number that is cut to an integer type; None if it may be outside."""
        found = self.real(expr)
        whole = None if found is None else (int(found[0]), int(found[1]))
        return whole if whole is not None and all(fits(value, dtype) for value in whole) else None

    def real(self, expr: Expr) -> tuple[float, float] | None:
        """An interval that a number made of integers, as a float, lies in, with its roundings; None if it may be NaN,
        infinite or anything."""
        own = type_of(expr, self.dtype_of)
        if isinstance(own, DType) and not own.is_float:
            low, high = self.of(expr, own)
            return _rounded(low, high)
        if isinstance(own, DType) and own.is_stored:
            return None
        match expr:
            case Const(value):
                return _rounded(value, value)
            case Cast(_, operand):
                return (inner := self.real(operand)) and _rounded(*inner)
            case Unary(_, operand):
                return (inner := self.real(operand)) and (-inner[1], -inner[0])
            case Binary(op, left, right):
                return _real_combined(op, self.real(left), self.real(right))
            case FunctionCall("min" | "max" as function, args):
                every = [self.real(arg) for arg in args]
                known = [one for one in every if one is not None]
                choose: Callable[..., float] = min if function == "min" else max
                lows, highs = zip(*known, strict=True) if known else ((), ())
                return (choose(lows), choose(highs)) if len(known) == len(every) else None
            case Ternary(_, then, other):
                one, two = self.real(then), self.real(other)
                return one and two and (min(one[0], two[0]), max(one[1], two[1]))
        return None

    def after(self, statements: Mapping[Assign, float], dtype: DType) -> Interval:
        """The interval of a variable after assignments to it, each of which runs so many times at most."""
        least = most = 0
        for statement in statements:
            if statement.op not in "+*":
                low, high = self.of(statement.expr, dtype)
                least, most = min(least, low), max(most, high)
        for statement, times in statements.items():
            if statement.op == "+" and times < inf:
                low, high = self._added(statement.expr, dtype)
                least, most = least + int(times) * min(low, 0), most + int(times) * max(high, 0)
            elif statement.op in "+*":
                return limits(dtype)
        return _inside((least, most), dtype)

    def _added(self, expr: Expr, dtype: DType) -> Interval:
        """The interval of what a sum of integers grows by; floats are added to it before the result is cut."""
        joined = join(type_of(expr, self.dtype_of), dtype)
        if joined.is_float:
            return limits(dtype)
        if isinstance(expr, Unary):
            low, high = self._added(expr.operand, dtype)
            return -high, -low
        return self.of(expr, dtype)

    def short(self, node: Node, dtype: DType, kept: Mapping[str, DType]) -> DType | None:
        """The smallest type, of up to 16 bits, that has a node's value, as one of a type, and those of all its parts.

        A test's value is a mask for its operands. None if there is none; `kept` are variables in a smaller type.
        """
        if isinstance(node, Predicate):
            joined = join(type_of(node.left, self.dtype_of), type_of(node.right, self.dtype_of))
            dtype = joined if isinstance(joined, DType) else dtype
        if dtype.is_float:
            return None
        whole = quotient(node.operand, self.dtype_of) if isinstance(node, Cast) else None
        match node:
            case Load(array):
                own = kept.get(array, self.dtype_of(array))
                return None if own.is_float or own.size > i16.size else own
            case Const():
                return smallest(self.of(node, dtype))
            case Cast(wanted, operand):
                own_type = type_of(operand, self.dtype_of)
                kind = own_type if isinstance(own_type, DType) else wanted
                parts = [self.short(whole.value, whole.dtype, kept) if whole else self.short(operand, kind, kept)]
            case Unary() | Binary("+" | "-" | "*") | Ternary() | Predicate() | Logic():
                parts = [self.short(part, dtype, kept) for part in operands(node)]
            case FunctionCall(function, args) if function in CHOOSING:
                parts = [self.short(arg, dtype, kept) for arg in args]
            case _:
                return None
        sizes = [part.size for part in parts if part is not None]
        if len(sizes) < len(parts):
            return None
        wide = whole is not None or (isinstance(node, Binary) and node.op == "*")
        found = (0, 0) if isinstance(node, Predicate | Logic) else self.of(node, dtype)
        return smallest(found, max(i16.size * wide, *sizes))

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
            case Binary("+" | "-" | "*") if (corners := self._at_corners(expr, dtype)) is not None:
                return corners
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

    def _at_corners(self, expr: Binary, dtype: DType) -> Interval | None:
        """The interval of a polynomial of the first degree in each variable, which has its extremes at corners.

        None if it is none, or no variable occurs twice in it.
        """
        every = loads(expr)
        different = tuple(dict.fromkeys(every))
        if len(every) == len(different) or len(different) > MOST_VARIABLES:
            return None
        found = self._polynomial(expr, dtype)
        if found is None or found[1] > limits(dtype)[1]:
            return None
        corners = [dict(zip(different, at, strict=True)) for at in product(*(self._exact(x, dtype) for x in different))]
        values = [sum(by * prod(at[x] for x in term) for term, by in found[0].items()) for at in corners]
        return min(values), max(values)

    def _polynomial(self, expr: Expr, dtype: DType) -> tuple[dict[frozenset[Load], int], int] | None:
        """The products of variables in an integer expression of a type, with their factors, and a bound on the
        magnitude of all its parts; None if it is no polynomial of the first degree in each variable."""
        match expr:
            case Const(int(value)):
                return {frozenset(): value}, abs(value)
            case Load(array) as load if self.dtype_of(array) == dtype:
                return {frozenset([load]): 1}, max(map(abs, self._exact(load, dtype)))
            case Cast(wanted, Load() as load) if wanted == dtype and self.of(load, dtype) == self._exact(load, dtype):
                return {frozenset([load]): 1}, max(map(abs, self._exact(load, dtype)))
            case Unary(_, operand):
                return self._polynomial(Binary("*", Const(-1), operand), dtype)
            case Binary("+" | "-" | "*" as op, left, right):
                one, other = self._polynomial(left, dtype), self._polynomial(right, dtype)
                return _joined(op, one, other) if one and other else None
        return None


def _joined(
    op: str, one: tuple[dict[frozenset[Load], int], int], other: tuple[dict[frozenset[Load], int], int]
) -> tuple[dict[frozenset[Load], int], int] | None:
    """The sum, difference or product of two polynomials; None if a variable has another degree in it than the first."""
    (terms, most), (others, beside) = one, other
    if op != "*":
        by = -1 if op == "-" else 1
        return {x: terms.get(x, 0) + by * others.get(x, 0) for x in (*terms, *others)}, most + beside
    if any(x & y for x in terms for y in others):
        return None
    found: dict[frozenset[Load], int] = {}
    for x, y in product(terms, others):
        found[x | y] = found.get(x | y, 0) + terms[x] * others[y]
    return found, max(most * beside, most, beside)


def ranged(program: Program) -> dict[str, Interval]:
    """The intervals of the integers in a program's variables, by the statements that assign them.

    They grow from 0 until no assignment leaves them; those that go on growing become their types'.
    """
    dtypes = {buffer.name: buffer.dtype for buffer in program.buffers}
    variables = [buffer.name for buffer in program.buffers if buffer.variable and not buffer.dtype.is_float]
    written: dict[str, dict[Assign, float]] = {name: {} for name in variables}
    times = _times(program.loops)
    for name, statement in program.statements.items():
        body = statement.body
        if isinstance(body, Assign) and body.target.array in written:
            every = written[body.target.array]
            every[body] = every.get(body, 0) + times.get((body.target.array, name), inf)
    found = dict.fromkeys(variables, (0, 0))
    for number in count():
        ranges = ValueRanges(dtypes.__getitem__, found)
        new = {name: _hull(found[name], ranges.after(made, dtypes[name])) for name, made in written.items()}
        growing = [name for name in variables if new[name] != found[name]]
        if not growing:
            break
        found = new | ({name: limits(dtypes[name]) for name in growing} if number >= ROUNDS else {})
    return found


def _times(node: LoopNode) -> dict[tuple[str, str], float]:
    """How often a statement runs at most while a variable lives, by the names of both; infinity if that is not known.

    A variable that is declared several times lives longest where the statement runs most often.
    """
    found: dict[tuple[str, str], float] = {}
    for declare in (one for one in walk(node) if isinstance(one, Declare)):
        for statement, runs in _runs(declare.body).items():
            for name in declare.buffers:
                found[name, statement] = max(runs, found.get((name, statement), 0))
    return found


def _runs(node: LoopNode) -> Counter[str]:
    """How often each statement below a node runs at most."""
    if isinstance(node, Run):
        return Counter({node.statement: 1})
    found: Counter[str] = Counter()
    for child in inside(node):
        found.update(_runs(child))
    if isinstance(node, For):
        span = node.most_span
        iterations = inf if span is None else ceil(max(span, 0) / node.step)
        return Counter({name: runs and runs * iterations for name, runs in found.items()})
    return found


def kept_short(program: Program, known: Mapping[str, Interval]) -> dict[str, DType]:
    """The variables of larger integers that are only set to values computed in 16 bits, and the type that has these.

    Sums are among them that begin and end in an iteration of a vector loop.
    """
    buffers = {buffer.name: buffer for buffer in program.buffers}
    ranges = ValueRanges(lambda name: buffers[name].dtype, known)
    single = (name for name in known if buffers[name].dtype.size >= i32.size and not buffers[name].shape)
    kept = {name: kind for name in single if (kind := smallest(known[name])) is not None}
    bodies = [statement.body for statement in program.statements.values()]
    written = [body for body in bodies if isinstance(body, Assign) and body.target.array in kept]
    lanes = (one.body for one in walk(program.loops) if isinstance(one, For) and one.mark.vectorize)
    within = {name for body in lanes for one in walk(body) if isinstance(one, Declare) for name in one.buffers}
    summed = {one.target.array for one in written if one.op == "+"}
    for name in {one.target.array for one in written if one.op not in "=+"} | (summed - within):
        kept.pop(name)
    while True:
        needed = dict(kept)
        for one in (one for one in written if one.target.array in kept):
            name = one.target.array
            made = ranges.short(one.expr, buffers[name].dtype, kept)
            wider = None if made is None or name not in needed else smallest(known[name], made.size)
            if wider is None:
                needed.pop(name, None)
            elif wider.size > needed[name].size:
                needed[name] = wider
        if needed == kept:
            return kept
        kept = needed


def smallest(found: Interval, least: int = 1) -> DType | None:
    """The smallest type of at least so many bytes, and at most two, that has an interval's values."""
    return next((kind for kind in SHORT if kind.size >= least and all(fits(value, kind) for value in found)), None)


def _inside(found: Interval, dtype: DType) -> Interval:
    """The interval of values that are converted to an integer type."""
    return found if all(fits(value, dtype) for value in found) else limits(dtype)


def _combined(op: str, one: Interval, other: Interval) -> Interval:
    """The interval of sums, differences or products."""
    combine = OPERATORS[op]
    every = [int(combine(a, b)) for a in one for b in other]
    return min(every), max(every)


def _real_combined(
    op: str, one: tuple[float, float] | None, other: tuple[float, float] | None
) -> tuple[float, float] | None:
    """The interval of floats that an operator makes."""
    if one is None or other is None or op not in OPERATORS or (op == "/" and other[0] <= 0 <= other[1]):
        return None
    every = [OPERATORS[op](a, b) for a in one for b in other]
    return _rounded(min(every), max(every))


def _rounded(low: float, high: float) -> tuple[float, float] | None:
    """An interval with the errors of rounding to f32; None if it is too large for numbers that are surely finite."""
    if not -MOST_REAL < low <= high < MOST_REAL:
        return None
    return low - abs(low) * ROUNDING, high + abs(high) * ROUNDING


def _hull(one: Interval, other: Interval) -> Interval:
    return min(one[0], other[0]), max(one[1], other[1])
