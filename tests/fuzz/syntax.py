"""The fuzzer's own representation of nests, and the Python functions that poly reads.

Nothing here comes from poly: the meaning of a nest is defined by `fuzz.interpreter` alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

Values: TypeAlias = Mapping[str, int]
"""Integers by name."""


@dataclass(frozen=True)
class Lin:
    """The sum of `factor * name` over `terms`, plus `constant`; no factor is 0."""

    terms: tuple[tuple[str, int], ...] = ()
    constant: int = 0

    @staticmethod
    def of(terms: Iterable[tuple[str, int]], constant: int = 0) -> Lin:
        total: dict[str, int] = {}
        for name, factor in terms:
            total[name] = total.get(name, 0) + factor
        return Lin(tuple((n, f) for n, f in total.items() if f), constant)

    @staticmethod
    def name(name: str) -> Lin:
        return Lin(((name, 1),))

    def __add__(self, other: Lin | int) -> Lin:
        if isinstance(other, int):
            return replace(self, constant=self.constant + other)
        return Lin.of(self.terms + other.terms, self.constant + other.constant)

    def __mul__(self, factor: int) -> Lin:
        return Lin.of(((n, f * factor) for n, f in self.terms), self.constant * factor)

    def __sub__(self, other: Lin | int) -> Lin:
        return self + (-other if isinstance(other, int) else other * -1)

    def factor(self, name: str) -> int:
        return dict(self.terms).get(name, 0)

    def value(self, values: Values) -> int:
        return self.constant + sum(factor * values[name] for name, factor in self.terms)

    def substitute(self, values: Mapping[str, Lin]) -> Lin:
        result = Lin((), self.constant)
        for name, factor in self.terms:
            result = result + values.get(name, Lin.name(name)) * factor
        return result

    def __str__(self) -> str:
        parts = [f"{'-' if f < 0 else '+'} {'' if abs(f) == 1 else f'{abs(f)}*'}{n}" for n, f in self.terms]
        if self.constant or not parts:
            parts.append(f"{'-' if self.constant < 0 else '+'} {abs(self.constant)}")
        text = " ".join(parts)
        return text[2:] if text.startswith("+") else f"-{text[2:]}"


@dataclass(frozen=True)
class Looked:
    """The index `array[index] + plus`: an element of an array of integers from 0 to `below`, exclusively."""

    array: str
    index: Lin
    below: int
    plus: Lin = Lin()

    @property
    def terms(self) -> tuple[tuple[str, int], ...]:
        """The names in it."""
        return self.index.terms + self.plus.terms

    def __sub__(self, other: Lin) -> Looked:
        return replace(self, plus=self.plus - other)

    def substitute(self, values: Mapping[str, Lin]) -> Looked:
        return replace(self, index=self.index.substitute(values), plus=self.plus.substitute(values))

    def __str__(self) -> str:
        text = f"{self.array}[{self.index}]"
        return text if self.plus == Lin() else f"{text} + {self.plus}"


@dataclass(frozen=True)
class Extreme:
    """The index `max(…) + plus`, `min(…) + plus` or, of one argument, `abs(…) + plus`."""

    kind: Literal["max", "min", "abs"]
    args: tuple[Lin, ...]
    plus: Lin = Lin()

    @property
    def terms(self) -> tuple[tuple[str, int], ...]:
        """The names in it."""
        return (*(term for arg in self.args for term in arg.terms), *self.plus.terms)

    def value(self, values: Values) -> int:
        args = [arg.value(values) for arg in self.args]
        return {"max": max, "min": min, "abs": lambda args: abs(args[0])}[self.kind](args) + self.plus.value(values)

    def __sub__(self, other: Lin) -> Extreme:
        return replace(self, plus=self.plus - other)

    def substitute(self, values: Mapping[str, Lin]) -> Extreme:
        args = tuple(arg.substitute(values) for arg in self.args)
        return replace(self, args=args, plus=self.plus.substitute(values))

    def __str__(self) -> str:
        text = f"{self.kind}({', '.join(map(str, self.args))})"
        return text if self.plus == Lin() else f"{text} + {self.plus}"


Subscript: TypeAlias = Lin | Looked | Extreme

# --- expressions ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Number:
    """A literal."""

    value: float

    def __str__(self) -> str:
        return repr(self.value) if self.value >= 0 else f"({self.value!r})"


@dataclass(frozen=True)
class Name:
    """A loop's index, a size, or a constant from around the function, as a value."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Read:
    """An element of an array or local; a `scalar` (argument by value, or local) has no index."""

    array: str
    indices: tuple[Subscript, ...] = ()
    scalar: bool = False

    def __str__(self) -> str:
        return self.array if self.scalar else f"{self.array}[{', '.join(map(str, self.indices)) or '()'}]"


@dataclass(frozen=True)
class Negative:
    """`-value`."""

    value: Expr

    def __str__(self) -> str:
        return f"(-{self.value})"


@dataclass(frozen=True)
class Binary:
    """`left op right` with one of + - * /, or of // % << >> & | ^ for integers."""

    op: str
    left: Expr
    right: Expr

    def __str__(self) -> str:
        return f"({self.left} {self.op} {self.right})"


@dataclass(frozen=True)
class Call:
    """A function of one argument, such as `exp`, or `min` and `max` of two.

    The function `if<` of four arguments stands for `c if a < b else d`, and so do those of the other comparisons.
    """

    function: str
    args: tuple[Expr, ...]

    def __str__(self) -> str:
        if self.function.startswith("if"):
            left, right, then, other = self.args
            return f"({then} if {left} {self.function[2:]} {right} else {other})"
        return f"{self.function}({', '.join(map(str, self.args))})"


@dataclass(frozen=True)
class Cast:
    """A value in another type, `i32(value)`."""

    dtype: str
    value: Expr

    def __str__(self) -> str:
        return f"{self.dtype}({self.value})"


Expr: TypeAlias = Number | Name | Read | Negative | Binary | Call | Cast


# --- conditions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Quotient:
    """`inner // by`, or with `rest` `inner % by`."""

    inner: Lin
    by: int
    rest: bool

    def value(self, values: Values) -> int:
        inner = self.inner.value(values)
        return inner % self.by if self.rest else inner // self.by

    def __str__(self) -> str:
        return f"({self.inner}) {'%' if self.rest else '//'} {self.by}"


COMPARISONS = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


@dataclass(frozen=True)
class Test:
    """`left op right`."""

    left: Lin | Quotient
    op: str
    right: Lin

    __test__ = False
    """Keeps pytest from collecting the class."""

    def holds(self, values: Values) -> bool:
        return COMPARISONS[self.op](self.left.value(values), self.right.value(values))

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


@dataclass(frozen=True)
class DataTest:
    """`left op right` of elements."""

    left: Expr
    op: str
    right: Expr

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


@dataclass(frozen=True)
class Joined:
    """Two conditions, joined by `and` or `or`."""

    word: Literal["and", "or"]
    left: Condition
    right: Condition

    def __str__(self) -> str:
        return f"({self.left} {self.word} {self.right})"


@dataclass(frozen=True)
class Not:
    """`not condition`."""

    inner: Condition

    def __str__(self) -> str:
        return f"not ({self.inner})"


Condition: TypeAlias = Test | DataTest | Joined | Not


# --- statements -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class For:
    """`max(lower) <= index < min(upper)`; a negative step counts down from the last of these."""

    index: str
    lower: tuple[Lin, ...]
    upper: tuple[Lin, ...]
    step: int
    body: tuple[Stmt, ...]

    def range(self, values: Values) -> range:
        low, high = max(b.value(values) for b in self.lower), min(b.value(values) for b in self.upper)
        return range(low, high, self.step) if self.step > 0 else range(high - 1, low - 1, self.step)

    def __str__(self) -> str:
        low, high = _joined("max", self.lower), _joined("min", self.upper)
        if self.step < 0:
            first, last = _joined("min", [b - 1 for b in self.upper]), _joined("max", [b - 1 for b in self.lower])
            return f"for {self.index} in range({first}, {last}, {self.step}):"
        if self.step > 1:
            return f"for {self.index} in range({low}, {high}, {self.step}):"
        return f"for {self.index} in range({high if low == '0' else f'{low}, {high}'}):"


def _joined(function: str, bounds: Iterable[Lin]) -> str:
    texts = list(map(str, bounds))
    return texts[0] if len(texts) == 1 else f"{function}({', '.join(texts)})"


@dataclass(frozen=True)
class If:
    """`if test:`, with an `else` where there is one."""

    test: Condition
    body: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()


@dataclass(frozen=True)
class Assign:
    """`target op value` with op one of = += -= *= /=."""

    target: Read
    op: str
    value: Expr

    def __str__(self) -> str:
        value = str(self.value)
        bare = value[1:-1] if isinstance(self.value, Binary) else value
        return f"{self.target} {self.op} {bare}"


@dataclass(frozen=True)
class Local:
    """A local: an array of a shape, or where the shape is None a scalar with its first value.

    `fill` is the value of all elements of an array; it becomes loops once the shapes are known (`fuzz.fitting`).
    """

    name: str
    dtype: str
    shape: tuple[Lin, ...] | None
    value: Expr | None = None
    fill: Expr | None = None

    def __str__(self) -> str:
        if self.shape is None:
            return f"{self.name}: {self.dtype} = {self.value}"
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


Stmt: TypeAlias = For | If | Assign | Local


# --- nests ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Arg:
    """An array of a shape, or where the shape is None a scalar by value."""

    name: str
    dtype: str
    shape: tuple[Lin, ...] | None
    below: int = 0
    """Of an array that is looked up: its elements are less than this."""

    def __str__(self) -> str:
        shape = "" if self.shape is None else f"[{', '.join(map(str, self.shape)) or '()'}]"
        return f"{self.name}: {self.dtype}{shape}"


CALLED = (
    "exp", "exp2", "expm1", "sqrt", "sinh", "cosh", "tanh", "erf", "log", "log2", "log10", "log1p", "sin", "cos", "tan",
    "atan", "floor", "ceil",
)  # fmt: skip
"""The functions of one argument that nests call."""


@dataclass(frozen=True)
class Program:
    """A nest: a function over arguments, with sizes and constants from around it."""

    name: str
    args: tuple[Arg, ...]
    body: tuple[Stmt, ...]
    sizes: tuple[str, ...]
    constants: tuple[tuple[str, float], ...] = ()
    reassociate: bool = True
    functions: tuple[str, ...] = field(default=CALLED)
    einsum: str = ""
    """The subscripts that poly gets in place of these loops."""

    def text(self, decorator: str = "@poly.nest") -> str:
        """The function as Python, which poly reads."""
        head = f"def {self.name}({', '.join(map(str, self.args))}):"
        lines = [decorator, head, *("    " + line for line in block(self.body))]
        return "\n".join(filter(None, lines)) + "\n"


def block(body: Iterable[Stmt]) -> list[str]:
    """The lines of statements."""
    lines = [line for statement in body for line in _lines(statement)]
    return lines or ["pass"]


def _lines(statement: Stmt) -> Iterator[str]:
    match statement:
        case For(body=body):
            yield str(statement)
            yield from ("    " + line for line in block(body))
        case If(test, body, orelse):
            yield f"if {test}:"
            yield from ("    " + line for line in block(body))
            if orelse:
                yield "else:"
                yield from ("    " + line for line in block(orelse))
        case _:
            yield str(statement)


def walk(body: Iterable[Stmt], around: tuple[For, ...] = ()) -> Iterator[tuple[Stmt, tuple[For, ...]]]:
    """All statements, each with the loops around it, parents first."""
    for statement in body:
        yield statement, around
        match statement:
            case For(body=inner):
                yield from walk(inner, (*around, statement))
            case If(_, inner, orelse):
                yield from walk((*inner, *orelse), around)


def reads(expr: Expr | None) -> Iterator[Read]:
    """All elements that an expression reads."""
    match expr:
        case Read(indices=indices):
            yield expr
            yield from (Read(index.array, (index.index,)) for index in indices if isinstance(index, Looked))
        case Negative(value) | Cast(_, value):
            yield from reads(value)
        case Binary(_, left, right):
            yield from reads(left)
            yield from reads(right)
        case Call(_, args):
            for arg in args:
                yield from reads(arg)


def map_reads(expr: Expr, change) -> Expr:
    """The expression with `change(read)` for each element that it reads."""
    match expr:
        case Read():
            return change(expr)
        case Negative(value):
            return Negative(map_reads(value, change))
        case Cast(dtype, value):
            return Cast(dtype, map_reads(value, change))
        case Binary(op, left, right):
            return Binary(op, map_reads(left, change), map_reads(right, change))
        case Call(function, args):
            return Call(function, tuple(map_reads(arg, change) for arg in args))
    return expr


def compared(condition: Condition) -> Iterator[Expr]:
    """The values that a condition compares."""
    match condition:
        case DataTest(left, _, right):
            yield from (left, right)
        case Joined(_, left, right):
            yield from (*compared(left), *compared(right))
        case Not(inner):
            yield from compared(inner)


def map_compared(condition: Condition, change) -> Condition:
    """The condition with `change(value)` for each value that it compares."""
    match condition:
        case DataTest(left, op, right):
            return DataTest(change(left), op, change(right))
        case Joined(word, left, right):
            return Joined(word, map_compared(left, change), map_compared(right, change))
        case Not(inner):
            return Not(map_compared(inner, change))
    return condition
