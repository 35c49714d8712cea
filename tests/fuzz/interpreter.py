"""An interpreter of nests that is independent of poly, with bounds on rounding errors.

Integers wrap as NumPy's do. A float is a pair: its value, computed in double precision, and a bound on the effects of
rounding, of fused multiply-add, and of reordering a reduction's terms. If all values are multiples of GRID and small
enough to be exact, the bound is 0, so that a single wrong term shows. In a nest that may not be reassociated, each
operation is rounded separately in the order written, following IEEE 754: all bounds are 0 except those of library
functions.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fuzz.syntax import (
    COMPARISONS,
    Assign,
    Binary,
    Call,
    Cast,
    Condition,
    DataTest,
    Expr,
    For,
    If,
    Joined,
    Local,
    Looked,
    Name,
    Negative,
    Not,
    Number,
    Program,
    Read,
    Stmt,
    Test,
    reads,
)

INTEGERS = {"u8": 8, "u16": 16, "i8": 8, "i16": 16, "i32": 32, "i64": 64}
EPSILON = {"f16": 2.0**-10, "f32": 2.0**-23, "f64": 2.0**-52}
SMALLEST = {"f16": 1e-4, "f32": 1e-37, "f64": 1e-300}
LARGEST = {"f16": 6e4, "f32": 1e37, "f64": 1e300}
EXACT = {"f16": 2.0**11, "f32": 2.0**24, "f64": 2.0**52}
NUMPY_FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
GRID = 64.0
"""Values that are multiples of 1/GRID are treated as exact while they are small."""
LIBRARY = 8.0
"""The number of roundings by which a function such as exp may be off."""

BITWISE: dict[str, Callable[[int, int], int]] = {
    "<<": operator.lshift, ">>": operator.rshift, "&": operator.and_, "|": operator.or_, "^": operator.xor,
}  # fmt: skip

Pair = tuple[float, float]
Closure = Callable[[dict[str, Any]], Any]


class Rejected(Exception):
    """The nest is meaningless at these sizes (it reads a local before it is written), or takes too long."""


@dataclass(frozen=True)
class Outcome:
    """The final contents of each array, the bound on their error, and the elements that are accessed or needed.

    Needed are those that are read before they are written.
    """

    values: dict[str, np.ndarray]
    bounds: dict[str, np.ndarray]
    touched: dict[str, np.ndarray]
    needed: dict[str, np.ndarray]
    instances: int


class Cells:
    """The elements of an array or local. A cell is (value, bound, magnitude, terms, off the grid)."""

    def __init__(self, dtype: str, shape: tuple[int, ...], values: list[Any] | None, ordered: bool) -> None:
        self.dtype, self.shape, self.ordered = dtype, shape, ordered
        count = math.prod(shape)
        self.first = bytearray(count)
        """1 where an element was written first, 2 where it was read first."""
        floats = dtype in EPSILON
        self.cells: list[Any] = [None] * count
        if values is not None:
            self.cells = [(v, 0.0, 0.0, 0, False) for v in values] if floats else list(values)

    def place(self, indices: list[int]) -> int:
        at = 0
        for index, extent in zip(indices, self.shape, strict=True):
            if not 0 <= index < extent:
                raise Rejected(f"index {indices} outside of {self.shape}")
            at = at * extent + index
        return at

    def read(self, at: int) -> Any:
        cell = self.cells[at]
        if cell is None:
            raise Rejected("a local is read before it is written")
        if not self.first[at]:
            self.first[at] = 2
        return settled(cell, self.dtype) if self.dtype in EPSILON else cell

    def write(self, at: int, value: Any) -> None:
        if not self.first[at]:
            self.first[at] = 1
        self.cells[at] = (*value, 0.0, 0, False) if self.dtype in EPSILON else value

    def add(self, at: int, term: Any) -> None:
        """`+=`, which may be one of many updates of the element in any order."""
        if self.dtype not in EPSILON:
            self.write(at, wrap(self.read(at) + term, self.dtype))
            return
        if self.ordered:
            self.write(at, floating("+", self.read(at), term, self.dtype, True))
            return
        self.read(at)
        value, bound, magnitude, terms, off = self.cells[at]
        if not terms:
            magnitude, off = abs(value), not on_grid(value)
        off = off or not on_grid(term[0])
        self.cells[at] = (value + term[0], bound + term[1], magnitude + abs(term[0]), terms + 1, off)


def settled(cell: tuple[float, float, float, int, bool], dtype: str) -> Pair:
    """A cell's value and bound."""
    value, bound, magnitude, terms, off = cell
    if not terms or (not off and not bound and magnitude * GRID < EXACT[dtype]):
        return value, bound
    if not magnitude < LARGEST[dtype]:
        return value, math.inf
    return value, bound + (terms + 2) * EPSILON[dtype] * magnitude + SMALLEST[dtype]


def on_grid(value: float) -> bool:
    return (value * GRID).is_integer() if math.isfinite(value) else False


def rounded(value: float, bound: float, dtype: str, roundings: float = 1.0, ordered: bool = False) -> Pair:
    """The value of one operation, with its rounding error added to the bounds of its operands.

    `ordered`: the operation is rounded separately. In double precision it is exact enough for the narrower types.
    """
    if not bound and on_grid(value) and abs(value) * GRID < EXACT[dtype]:
        return value, 0.0
    if not abs(value) + bound < LARGEST[dtype]:
        return 0.0, math.inf
    if ordered and not bound and (not value or abs(value) > SMALLEST[dtype]):
        return float(NUMPY_FLOATS[dtype](value)), 0.0
    return value, bound + roundings * EPSILON[dtype] * (abs(value) + bound) + SMALLEST[dtype]


def wrap(value: int, dtype: str) -> int:
    low, whole = least(dtype), 1 << INTEGERS[dtype]
    return (value - low) % whole + low


def least(dtype: str) -> int:
    """The least value of a type of integers."""
    return 0 if dtype[0] == "u" else -(1 << INTEGERS[dtype] - 1)


def interpret(program: Program, data: Mapping[str, Any], sizes: Mapping[str, int], most: int = 4000) -> Outcome:
    """Run a nest on arrays and scalars by name, which are not changed, for at most `most` instances.

    Raises:
        Rejected: it is meaningless, or has more instances.
    """
    _count(program.body, {**dict(program.constants), **sizes}, most)
    return Run(program, data, sizes, most).outcome()


def _count(body: tuple[Stmt, ...], names: dict[str, Any], left: int) -> int:
    """The number of instances left of a limit; counting them first is much cheaper than running too many.

    Raises:
        Rejected: there are more.
    """
    for statement in body:
        match statement:
            case For():
                plain = all(isinstance(inner, Assign) for inner in statement.body)
                if plain:
                    left -= len(statement.body) * len(statement.range(names))
                else:
                    for value in statement.range(names):
                        names[statement.index] = value
                        left = _count(statement.body, names, left - 1)
            case If(test, then, orelse):
                holds = outcome(test, names)
                if holds is not False:
                    left = _count(then, names, left)
                if holds is not True:
                    left = _count(orelse, names, left)
            case _:
                left -= 1
        if left < 0:
            raise Rejected("too many instances")
    return left


def outcome(test: Condition, names: Mapping[str, Any]) -> bool | None:
    """Whether a condition holds; None if data decide."""
    match test:
        case Test():
            return test.holds(names)
        case Not(inner):
            holds = outcome(inner, names)
            return None if holds is None else not holds
        case Joined(word, left, right):
            sides, decides = (outcome(left, names), outcome(right, names)), word == "or"
            return decides if decides in sides else None if None in sides else not decides
    return None


class Run:
    """One run of a nest: memory, the values of names, and a count of the instances."""

    def __init__(self, program: Program, data: Mapping[str, Any], sizes: Mapping[str, int], most: int) -> None:
        self.program = program
        self.ordered = not program.reassociate
        self.names: dict[str, Any] = {**dict(program.constants), **sizes}
        self.memory: dict[str, Cells] = {}
        self.types: dict[str, str] = {}
        self.left = most
        self.most = most
        for arg in program.args:
            self.types[arg.name] = arg.dtype
            values = np.asarray(data[arg.name])
            self.memory[arg.name] = Cells(arg.dtype, values.shape, values.ravel().tolist(), self.ordered)

    def outcome(self) -> Outcome:
        for step in [self.statement(s) for s in self.program.body]:
            step(self.names)
        values, bounds, touched, needed = {}, {}, {}, {}
        for arg in self.program.args:
            cells = self.memory[arg.name]
            floats = arg.dtype in EPSILON
            pairs = [settled(c, arg.dtype) if floats else (c, 0.0) for c in cells.cells]
            shape = cells.shape
            kind = np.float64 if floats else np.int64
            values[arg.name] = np.array([p[0] for p in pairs], kind).reshape(shape)
            bounds[arg.name] = np.array([p[1] for p in pairs], np.float64).reshape(shape)
            first = np.frombuffer(bytes(cells.first), np.uint8).reshape(shape)
            touched[arg.name], needed[arg.name] = first > 0, first == 2
        return Outcome(values, bounds, touched, needed, self.most - self.left)

    # --- statements ---

    def statement(self, statement: Stmt) -> Callable[[dict[str, Any]], None]:
        match statement:
            case For():
                return self._for(statement)
            case If(test, body, orelse):
                then, other = [self.statement(s) for s in body], [self.statement(s) for s in orelse]

                holds = self.condition(test)

                def choose(names: dict[str, Any]) -> None:
                    for step in then if holds(names) else other:
                        step(names)

                return choose
            case Assign():
                return self._assign(statement)
            case Local():
                return self._local(statement)
        raise TypeError(statement)

    def _for(self, loop: For) -> Callable[[dict[str, Any]], None]:
        steps = [self.statement(s) for s in loop.body]

        def run(names: dict[str, Any]) -> None:
            for value in loop.range(names):
                names[loop.index] = value
                for step in steps:
                    step(names)

        return run

    def _local(self, local: Local) -> Callable[[dict[str, Any]], None]:
        self.types[local.name] = local.dtype
        store = None
        if local.value is not None:
            store = self._assign(Assign(Read(local.name, (), True), "=", local.value))

        def make(names: dict[str, Any]) -> None:
            shape = tuple(max(0, extent.value(names)) for extent in local.shape or ())
            if local.shape is not None or local.name not in self.memory:
                self.memory[local.name] = Cells(local.dtype, shape, None, self.ordered)
            if store:
                store(names)

        return make

    def _assign(self, assign: Assign) -> Callable[[dict[str, Any]], None]:
        target, dtype = assign.target, self.types[assign.target.array]
        op, value = as_update(assign)
        find = self._place(target)
        kind, evaluate = self._strong(value, dtype)
        if op == "+" and kind != dtype:
            op = "="
            kind, evaluate = self._strong(Binary("+", target, value), dtype)
        memory = self.memory
        into = converter(kind, dtype, self.ordered)
        if op == "*":
            over = kind
            multiply, lifted = arithmetic(op, over, self.ordered), converter(dtype, over, self.ordered)

        def run(names: dict[str, Any]) -> None:
            self.left -= 1
            if self.left < 0:
                raise Rejected("too many instances")
            operand = evaluate(names)
            cells, at = memory[target.array], find(names)
            if op == "=":
                cells.write(at, into(operand))
            elif op == "+":
                cells.add(at, operand)
            else:
                cells.write(at, into(multiply(lifted(cells.read(at)), operand)))

        return run

    def _place(self, read: Read) -> Callable[[dict[str, Any]], int]:
        memory, name = self.memory, read.array
        indices = [self._looked(index) if isinstance(index, Looked) else index.value for index in read.indices]
        return lambda names: memory[name].place([index(names) for index in indices])

    def _looked(self, looked: Looked) -> Callable[[dict[str, Any]], int]:
        find, memory = self._place(Read(looked.array, (looked.index,))), self.memory
        return lambda names: memory[looked.array].read(find(names)) + looked.plus.value(names)

    # --- expressions ---

    def _strong(self, expr: Expr, dtype: str) -> tuple[str, Closure]:
        """An operand and its type; a number takes the type that it is assigned to."""
        kind, closure = self.expression(expr)
        if kind not in ("int", "float"):
            return kind, closure
        wanted = dtype if kind == "int" or dtype in EPSILON else "f64"
        return wanted, weak(kind, wanted, closure)

    def expression(self, expr: Expr) -> tuple[str, Closure]:
        """The type of an expression (`int` and `float` for numbers that have none of their own), and its value."""
        match expr:
            case Number(value):
                return ("float" if isinstance(value, float) else "int"), lambda _: value
            case Name(name):
                kind = "float" if isinstance(self.names.get(name), float) else "int"
                return kind, lambda names: names[name]
            case Read(array):
                find, memory = self._place(expr), self.memory
                return self.types[array], lambda names: memory[array].read(find(names))
            case Negative(value):
                kind, inner = self.expression(value)
                return kind, unary(kind, "-", inner)
            case Cast(dtype, value):
                kind, inner = self._strong(value, dtype)
                return dtype, lift(kind, dtype, inner, self.ordered)
            case Binary(op, left, right):
                return self._binary(op, self.expression(left), self.expression(right))
            case Call(function, (value,)):
                return self._function(function, *self.expression(value))
            case Call(function, (left, right, then, other)):
                return self._choice(function[2:], *map(self.expression, (left, right, then, other)))
            case Call(function, (left, right)):
                return self._binary(function, self.expression(left), self.expression(right))
        raise TypeError(expr)

    def _binary(self, op: str, left: tuple[str, Closure], right: tuple[str, Closure]) -> tuple[str, Closure]:
        kind = joined(left[0], right[0], op)
        first, second = (lift(k, kind, closure, self.ordered) for k, closure in (left, right))
        apply = arithmetic(op, kind, self.ordered)
        return kind, lambda names: apply(first(names), second(names))

    def condition(self, test: Condition) -> Callable[[dict[str, Any]], bool]:
        match test:
            case DataTest(left, op, right):
                return self._compared(op, self.expression(left), self.expression(right))
            case Not(inner):
                negated = self.condition(inner)
                return lambda names: not negated(names)
            case Joined(word, left, right):
                first, second = self.condition(left), self.condition(right)
                if word == "and":
                    return lambda names: first(names) and second(names)
                return lambda names: first(names) or second(names)
        return test.holds

    def _compared(self, op: str, one: tuple[str, Closure], two: tuple[str, Closure]) -> Callable[[Any], bool]:
        kind, (left, right) = self._alike(one, two)
        compare = decided if kind in EPSILON else lambda op, first, second: COMPARISONS[op](first, second)
        return lambda names: compare(op, left(names), right(names))

    def _choice(self, op: str, *sides: tuple[str, Closure]) -> tuple[str, Closure]:
        holds, (kind, (then, other)) = self._compared(op, *sides[:2]), self._alike(*sides[2:])

        def choose(names: dict[str, Any]) -> Any:
            first, values = holds(names), (then(names), other(names))
            return values[0] if first else values[1]

        return kind, choose

    def _alike(self, one: tuple[str, Closure], two: tuple[str, Closure]) -> tuple[str, tuple[Closure, Closure]]:
        """Two values in their common type."""
        kind = joined(one[0], two[0], "")
        return kind, (lift(*one[:1], kind, one[1], self.ordered), lift(*two[:1], kind, two[1], self.ordered))

    def _function(self, function: str, kind: str, inner: Closure) -> tuple[str, Closure]:
        if function == "abs":
            return kind, unary(kind, "abs", inner)
        wanted = "float" if kind in ("int", "float") else kind if kind in EPSILON else "f64"
        lifted = lift(kind, wanted, inner, self.ordered)
        if wanted == "float":
            raise Rejected("a function of numbers alone, which libraries round differently")
        return wanted, lambda names: elementary(function, lifted(names), wanted, self.ordered)


def as_update(assign: Assign) -> tuple[str, Expr]:
    """The operator and operand of an assignment: `x = x + e` is an update, as `x += e` is."""
    target, value = assign.target, assign.value
    found: tuple[str, Expr] | None = None
    match assign.op, value:
        case "+=", _:
            found = "+", value
        case "-=", _:
            found = "+", Negative(value)
        case "*=", _:
            found = "*", value
        case "=", Binary("+", left, right) if right == target:
            found = "+", left
        case "=", Binary("+", left, right) if left == target:
            found = "+", right
        case "=", Binary("-", left, right) if left == target:
            found = "+", Negative(right)
    return found if found and target not in reads(found[1]) else plain(assign)


def plain(assign: Assign) -> tuple[str, Expr]:
    """The same as a plain assignment."""
    op, value = assign.op, assign.value
    return "=", value if op == "=" else Binary(op[0], assign.target, value)


def joined(left: str, right: str, op: str) -> str:
    """The type of an operation: a number takes the other's type, fractions and divisions make integers doubles."""
    kinds = {left, right}
    strong = kinds - {"int", "float"}
    if not strong:
        return "float" if "float" in kinds or op == "/" else "int"
    kind = strong.pop() if len(strong) == 1 else "f64"
    return "f64" if kind in INTEGERS and ("float" in kinds or op == "/") else kind


def lift(kind: str, wanted: str, closure: Closure, ordered: bool) -> Closure:
    """A value converted to the type of the operation that uses it."""
    if kind == wanted:
        return closure
    if kind in ("int", "float"):
        return weak(kind, wanted, closure)
    convert = converter(kind, wanted, ordered)
    return lambda names: convert(closure(names))


def weak(kind: str, wanted: str, closure: Closure) -> Closure:
    """A number converted to the type of the other operand."""
    if wanted == "float":
        return lambda names: float(closure(names))
    if wanted in NUMPY_FLOATS:
        return lambda names: (float(NUMPY_FLOATS[wanted](closure(names))), 0.0)

    return lambda names: wrap(closure(names), wanted)


def converter(kind: str, wanted: str, ordered: bool) -> Callable[[Any], Any]:
    """Convert from a strong type to another: integers wrap around or become floats, floats are truncated."""
    if kind == wanted:
        return lambda value: value
    if kind in INTEGERS and wanted in INTEGERS:
        return lambda value: wrap(value, wanted)
    if wanted in EPSILON:
        if kind in INTEGERS:
            return lambda value: rounded(float(value), 0.0, wanted, ordered=ordered)
        return lambda pair: rounded(*pair, wanted, ordered=ordered)

    def cut(pair: Pair) -> int:
        value, bound = pair
        if not bound < math.inf or math.trunc(value - bound) != math.trunc(value + bound):
            raise Rejected("rounding decides an integer")
        return math.trunc(value) if wrap(math.trunc(value), wanted) == math.trunc(value) else least(wanted)

    return cut


def unary(kind: str, op: str, inner: Closure) -> Closure:
    apply = abs if op == "abs" else (lambda value: -value)
    if kind in EPSILON:

        def run(names: dict[str, Any]) -> Pair:
            value, bound = inner(names)
            return apply(value), bound

        return run
    if kind in INTEGERS:
        return lambda names: wrap(apply(inner(names)), kind)
    return lambda names: apply(inner(names))


def arithmetic(op: str, kind: str, ordered: bool) -> Callable[[Any, Any], Any]:
    """An operation on two values of one type.

    Raises:
        Rejected: only integers have it.
    """
    if op in (*BITWISE, "//", "%") and kind not in INTEGERS:
        raise Rejected("an operation of integers on floats")
    if kind in EPSILON:
        return lambda a, b: floating(op, a, b, kind, ordered)
    if op in ("min", "max"):
        return min if op == "min" else max
    if op == "/":
        return divided
    if op in BITWISE:
        return partial(bitwise, op, kind)
    if op in ("//", "%"):
        return lambda a, b: 0 if b == 0 else wrap(a // b if op == "//" else a % b, kind)
    function = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}[op]
    return (lambda a, b: wrap(function(a, b), kind)) if kind in INTEGERS else function


def bitwise(op: str, kind: str, a: int, b: int) -> int:
    """An operation on the bits of two integers of a type; shifts out of it leave 0, or the sign."""
    if op in ("<<", ">>") and not 0 <= b < INTEGERS[kind]:
        return -1 if op == ">>" and a < 0 else 0
    return wrap(BITWISE[op](a, b), kind)


def divided(a: float, b: float) -> float:
    if b == 0:
        raise Rejected("a number divided by zero")
    return a / b


def floating(op: str, a: Pair, b: Pair, dtype: str, ordered: bool) -> Pair:
    (x, dx), (y, dy) = a, b
    if dx == math.inf or dy == math.inf:
        return 0.0, math.inf
    match op:
        case "+":
            return rounded(x + y, dx + dy, dtype, ordered=ordered)
        case "-":
            return rounded(x - y, dx + dy, dtype, ordered=ordered)
        case "*":
            return rounded(x * y, abs(x) * dy + abs(y) * dx + dx * dy, dtype, ordered=ordered)
        case "/":
            if not abs(y) > 2 * dy:
                return 0.0, math.inf
            return rounded(x / y, (dx + abs(x / y) * dy) / (abs(y) - dy), dtype, 4.0, ordered)
        case "min":
            return min(x, y), max(dx, dy)
        case "max":
            return max(x, y), max(dx, dy)
    raise ValueError(op)


def decided(op: str, a: Pair, b: Pair) -> bool:
    """Whether a comparison of floats holds.

    Raises:
        Rejected: rounding decides it.
    """
    (x, dx), (y, dy) = a, b
    if dx + dy and not abs(x - y) > dx + dy:
        raise Rejected("rounding decides a choice")
    return COMPARISONS[op](x, y)


def elementary(function: str, a: Pair, dtype: str, ordered: bool) -> Pair:
    x, dx = a
    if dx == math.inf:
        return 0.0, math.inf
    match function:
        case "exp":
            if x + dx > 80 or dx > 1:
                return 0.0, math.inf
            return rounded(math.exp(x), (math.exp(dx) - 1) * math.exp(x) + 1e-300, dtype, LIBRARY)
        case "exp2":
            return elementary("exp", (x * math.log(2), dx * math.log(2)), dtype, ordered)
        case "expm1" | "sinh" | "cosh":
            if abs(x) + dx > 80 or dx > 1:
                return 0.0, math.inf
            return rounded(getattr(math, function)(x), dx * math.exp(abs(x) + dx) + 1e-300, dtype, LIBRARY)
        case "tanh":
            return rounded(math.tanh(x), dx + 1e-300, dtype, LIBRARY)
        case "erf":
            return rounded(math.erf(x), 1.2 * dx + 1e-300, dtype, LIBRARY)
        case "sqrt":
            if x - dx < 0 or (dx and x <= 2 * dx):
                return 0.0, math.inf
            return rounded(math.sqrt(x), dx / math.sqrt(x) if dx else 0.0, dtype, 4.0, ordered)
        case "log":
            if x - dx <= 0 or x <= 2 * dx:
                return 0.0, math.inf
            return rounded(math.log(x), 2 * dx / x + 1e-300, dtype, LIBRARY)
        case "log2" | "log10":
            if x - dx <= 0 or x <= 2 * dx:
                return 0.0, math.inf
            return rounded(getattr(math, function)(x), 3 * dx / x + 1e-300, dtype, LIBRARY)
        case "log1p":
            if 1 + x <= 2 * dx:
                return 0.0, math.inf
            return rounded(math.log1p(x), 2 * dx / (1 + x) + 1e-300, dtype, LIBRARY)
        case "atan":
            return rounded(math.atan(x), dx + 1e-300, dtype, LIBRARY)
        case "tan":
            near = abs(math.cos(x)) - dx
            if abs(x) > 1000 or near < 0.01:
                return 0.0, math.inf
            return rounded(math.tan(x), (dx + EPSILON[dtype]) / near**2, dtype, LIBRARY)
        case "sin" | "cos":
            if abs(x) > 1000:
                return 0.0, math.inf
            return rounded(getattr(math, function)(x), dx + EPSILON[dtype], dtype, LIBRARY)
        case "floor" | "ceil":
            round_ = getattr(math, function)
            if round_(x - dx) != round_(x + dx):
                raise Rejected("rounding decides an integer")
            return rounded(float(round_(x)), 0.0, dtype, ordered=ordered)
    raise ValueError(function)
