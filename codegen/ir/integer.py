"""Integer expressions and conditions as values: sizes, subscripts, bounds of loops, counts.

    2*i + min(M, 64) + 1        a linear expression: 2 times the name i, 1 time the atom min(M, 64), plus 1

An expression is linear in its *atoms*: names, and nonlinear terms (products, minima, quotients, …). It is `Affine` if
its atoms are all names, as in the accesses and loop bounds of a nest. `Int` is any expression.

`str` gives C text, which calls HELPERS; `PYTHON` prints the same for Python.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import ceil, prod
from operator import index
from typing import TYPE_CHECKING, Generic, Literal, NoReturn, TypeVar, cast, overload

from codegen.names import c_name
from microkernels.cached import cached_property
from microkernels.errors import SpecError

A = TypeVar("A", bound="Atom", covariant=True)
B = TypeVar("B", bound="Atom")

HELPERS = {
    "imin": "static inline int64_t imin(int64_t a, int64_t b) { return a < b ? a : b; }",
    "imax": "static inline int64_t imax(int64_t a, int64_t b) { return a > b ? a : b; }",
    "floord": "static inline int64_t floord(int64_t a, int64_t b) { return a / b - (a % b < 0); }  /* b > 0 */",
}
"""The C functions that the text of an expression calls."""

COMPARED: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@dataclass(frozen=True)
class Linear(Generic[A]):
    """The sum of `coefficient * atom` over `terms`, plus `constant`.

    `terms` is sorted by the atoms' texts and holds no zero coefficient, so equal sums are equal values.
    """

    terms: tuple[tuple[A, int], ...] = ()
    constant: int = 0

    @staticmethod
    def make(terms: Mapping[B, int] | Iterable[tuple[B, int]], constant: int = 0) -> Linear[B]:
        """Add up the terms of equal atoms, and drop zeros."""
        total: dict[B, int] = {}
        for atom, coefficient in terms.items() if isinstance(terms, Mapping) else terms:
            total[atom] = total.get(atom, 0) + coefficient
        return Linear(tuple(sorted(((a, c) for a, c in total.items() if c), key=_order)), constant)

    @staticmethod
    def name(name: str) -> Affine:
        """The expression that is one name."""
        return Linear(((name, 1),))

    @staticmethod
    def of(value: Linear[B] | int) -> Linear[B]:
        """An integer as an expression; an expression unchanged."""
        return value if isinstance(value, Linear) else Linear((), index(value))

    @property
    def is_affine(self) -> bool:
        """Whether the atoms are names."""
        return all(isinstance(atom, str) for atom, _ in self.terms)

    @cached_property
    def names(self) -> frozenset[str]:
        """All names in it, including those within atoms."""
        return frozenset(atom for atom in walk(self) if isinstance(atom, str))

    @property
    def number(self) -> int | None:
        """The value of a constant expression; None for any other."""
        return None if self.terms else self.constant

    @property
    def atom(self) -> A | None:
        """The atom of an expression that is just one atom; None for any other."""
        single = len(self.terms) == 1 and self.terms[0][1] == 1 and not self.constant
        return self.terms[0][0] if single else None

    @property
    def is_simple(self) -> bool:
        """Whether it is a number or a name."""
        return not self.terms or isinstance(self.atom, str)

    @property
    def largest(self) -> int:
        """The largest magnitude among its coefficients and its constant."""
        return max(abs(self.constant), *(abs(factor) for _, factor in self.terms), 0)

    def coefficient(self, name: str) -> int:
        """The coefficient of a name among the terms; 0 if it is not among them."""
        return next((factor for atom, factor in self.terms if atom == name), 0)

    def factor(self, name: str) -> Int:
        """The factor of a name, in products too: `N + 2` for `i` in `i*N + 2*i + 5`."""
        parts = ((_without(atom, name), coefficient) for atom, coefficient in self.terms)
        return _sum(part * coefficient for part, coefficient in parts if part is not None)

    def part(self, names: frozenset[str]) -> Linear[A]:
        """The terms in which any of the names occurs."""
        return Linear(tuple((atom, factor) for atom, factor in self.terms if names & _names(atom)))

    def evaluate(self, values: Mapping[str, int]) -> int:
        """The integer for given values of all names."""
        return self.constant + sum(c * _value(atom, values) for atom, c in self.terms)

    def substitute(self, values: Mapping[str, Linear[B] | int]) -> Linear[A | B]:
        """Replace names by expressions or integers; names that are not in `values` stay."""
        if self.names.isdisjoint(values):
            return cast("Linear[A | B]", self)
        changed = (_substituted(atom, values) * coefficient for atom, coefficient in self.terms)
        return cast("Linear[A | B]", _sum((Linear((), self.constant), *changed)))

    def renamed(self, names: Mapping[str, str]) -> Linear[A]:
        """The expression with names changed; those not in `names` stay."""
        changed = self.substitute({old: Linear.name(new) for old, new in names.items()})
        return cast("Linear[A]", changed)

    def __add__(self, other: Linear[B] | int) -> Linear[A | B]:
        if not isinstance(other, Linear):
            return Linear(self.terms, self.constant + index(other))
        if not (self.terms and other.terms):
            return Linear(self.terms or other.terms, self.constant + other.constant)
        terms: tuple[tuple[A | B, int], ...] = (*self.terms, *other.terms)
        return Linear.make(terms, self.constant + other.constant)

    def __neg__(self) -> Linear[A]:
        return self * -1

    def __sub__(self, other: Linear[B] | int) -> Linear[A | B]:
        return self + -other

    def __rsub__(self, other: int) -> Linear[A]:
        return -self + other

    @overload
    def __mul__(self, other: int) -> Linear[A]: ...
    @overload
    def __mul__(self, other: Linear[Atom]) -> Int: ...
    def __mul__(self, other: Linear[Atom] | int) -> Linear[Atom] | Linear[A]:
        """The expanded product: `(M + 1) * N` is `M*N + N`."""
        if isinstance(other, Linear) and other.terms:
            scaled: Int = Linear(self.terms, 0)
            products = (_times(a, b) * (c * d) for a, c in scaled.terms for b, d in other.terms)
            return _sum((*products, scaled * other.constant, other * self.constant))
        factor = other.constant if isinstance(other, Linear) else index(other)
        if not factor:
            return Linear()
        return Linear(tuple((atom, c * factor) for atom, c in self.terms), self.constant * factor)

    __radd__ = __add__
    __rmul__ = __mul__

    def _divided(self, other: object) -> NoReturn:
        raise SpecError(
            f"{self} is open, and an extent is a sum of sizes, each times an integer, without //, / and %. Remedy: a "
            f"size of its own for the quotient or the remainder, Q = poly.sizes('Q'), or a number in place of {self}."
        )

    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __truediv__ = __rtruediv__ = _divided

    def __str__(self) -> str:
        """C text."""
        return C.integer(self)

    __repr__ = __str__


@dataclass(frozen=True)
class Op:
    """A nonlinear operation.

    *         a product of two or more factors
    min, max  of two or more operands
    floordiv  a quotient rounded down; the divisor is positive
    /, %      C's quotient and remainder, for a dividend that is nonnegative or a multiple: equal to Python's `//`, `%`
    """

    name: Literal["*", "min", "max", "floordiv", "/", "%"]
    args: tuple[Int, ...]

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        """The text, which orders the terms of each sum that the operation is in."""
        return C.integer(_single(self))


@dataclass(frozen=True)
class Select:
    """`test ? then : other`; with 1 and 0, the truth value of a condition."""

    test: Test
    then: Int
    other: Int

    def __str__(self) -> str:
        return C.integer(_single(self))


@dataclass(frozen=True)
class Lookup:
    """An element of an array of integers, in the subscript of another array: `idx[i]` in `A[idx[i] + 1]`.

    `extent` is that of the other array's dimension, which the whole subscript is inside of.
    """

    array: str
    indices: tuple[Int, ...]
    extent: Affine

    def __str__(self) -> str:
        return C.integer(_single(self))


Relation = Literal["==", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True)
class Compare:
    """`left < right`."""

    left: Int
    symbol: Relation
    right: Int

    @property
    def names(self) -> frozenset[str]:
        return names_of(self)

    def __str__(self) -> str:
        return C.test(self)


@dataclass(frozen=True)
class Connected:
    """Conditions of which all must hold (`&&`), or at least one (`||`)."""

    symbol: Literal["&&", "||"]
    parts: tuple[Test, ...]

    @property
    def names(self) -> frozenset[str]:
        return names_of(self)

    def __str__(self) -> str:
        return C.test(self)


Atom = str | Op | Select | Lookup
Test = Compare | Connected

if TYPE_CHECKING:
    Int = Linear[Atom]
    Affine = Linear[str]
else:
    Int = Affine = Linear


# --- operations on expressions --------------------------------------------------------------------------------------


def minimum(*values: Int | int) -> Int:
    """The smallest of some values, without operands that are known not to be."""
    return _extreme("min", values)


def maximum(*values: Int | int) -> Int:
    """The largest of some values, without operands that are known not to be."""
    return _extreme("max", values)


def floor_quotient(dividend: Int, divisor: int) -> Int:
    """The quotient rounded down. Multiples of the divisor are taken out: `(6*i + j) // 6` is `i + j // 6`."""
    whole = Linear(tuple((atom, c // divisor) for atom, c in dividend.terms if not c % divisor))
    rest = Linear(tuple((atom, c) for atom, c in dividend.terms if c % divisor), dividend.constant)
    if not rest.terms:
        return whole + rest.constant // divisor
    return whole + (_taken_from_itself(rest, divisor) or _single(Op("floordiv", (rest, Linear.of(divisor)))))


def _taken_from_itself(dividend: Int, divisor: int) -> Int | None:
    """`i - i // 14` for `(13*i + 13) // 14`, as isl writes it; None for another dividend."""
    if len(dividend.terms) != 1 or divisor < 3 or dividend.constant != divisor - 1:
        return None
    ((atom, factor),) = dividend.terms
    whole = _single(atom)
    return whole - _single(Op("floordiv", (whole, Linear.of(divisor)))) if factor == divisor - 1 else None


def quotient(dividend: Int, divisor: Int | int) -> Int:
    """The quotient of a dividend that is nonnegative or a multiple of the divisor."""
    by = Linear.of(divisor)
    exact = by.number and not any(c % by.constant for _, c in dividend.terms)
    if exact:
        return floor_quotient(dividend, by.constant)
    return (by.number and _taken_from_itself(dividend, by.constant)) or _single(Op("/", (dividend, by)))


def remainder(dividend: Int, divisor: Int | int) -> Int:
    """The remainder of a nonnegative dividend; of a negative one, only whether it is 0 is meaningful."""
    by = Linear.of(divisor)
    if by.number and not any(c % by.constant for _, c in dividend.terms):
        return Linear((), dividend.constant % by.constant)
    return _single(Op("%", (dividend, by)))


def choice(test: Test, then: Int | int, other: Int | int) -> Int:
    """`test ? then : other`."""
    one, two = Linear.of(then), Linear.of(other)
    return one if one == two else _single(Select(test, one, two))


def product(factors: Iterable[Int | int]) -> Int:
    """The product, not expanded: `M*(N + 1)`. Constant factors become its coefficient."""
    given = [Linear.of(factor) for factor in factors]
    number = prod(factor.constant for factor in given if not factor.terms)
    atoms: list[Int] = []
    for factor in given:
        if len(factor.terms) == 1 and not factor.constant:
            number *= factor.terms[0][1]
            atoms += factors_of(factor.terms[0][0])
        elif factor.terms:
            atoms.append(factor)
    if len(atoms) < 2:
        return prod(atoms, start=Linear.of(1)) * number
    return _single(Op("*", tuple(sorted(atoms, key=str)))) * number


def element_count(extents: Iterable[Int | int]) -> Int:
    """The number of elements of an array with these extents; a negative extent counts as 0."""
    given = [Linear.of(extent) for extent in extents]
    return product(extent if _is_count(extent) else maximum(0, extent) for extent in given)


def compare(left: Int, symbol: Relation, right: Int) -> Compare:
    """A comparison, with `i <= 63` as `i < 64`, and `i <= M - 1` as `i < M`."""
    if symbol == "<=" and right.is_affine and (right.constant or not right.terms):
        return Compare(left, "<", right + 1)
    return Compare(left, symbol, right)


def connected(symbol: Literal["&&", "||"], parts: Sequence[Test]) -> Test:
    """Several conditions as one."""
    return parts[0] if len(parts) == 1 else Connected(symbol, tuple(parts))


def parts_of(test: Test) -> tuple[Test, ...]:
    """The terms of a conjunction."""
    if isinstance(test, Connected) and test.symbol == "&&":
        return tuple(part for term in test.parts for part in parts_of(term))
    return (test,)


def gaps(test: Compare) -> tuple[Int, ...]:
    """The values of which none is negative exactly if a comparison holds; none at all for `!=`."""
    apart = test.right - test.left
    match test.symbol:
        case "<" | "<=":
            return (apart - (test.symbol == "<"),)
        case ">" | ">=":
            return (-apart - (test.symbol == ">"),)
        case "==":
            return apart, -apart
    return ()


def _extreme(name: Literal["min", "max"], values: Iterable[Int | int]) -> Int:
    kept: list[Int] = []
    for value in (part for given in values for part in _flat(name, Linear.of(given))):
        apart = [(value - other).number for other in kept]
        if any(gap is not None and (gap >= 0) == (name == "min") for gap in apart):
            continue  # another one is as small, or as large
        kept = [other for other, gap in zip(kept, apart, strict=True) if gap is None] + [value]
    return kept[0] if len(kept) == 1 else _single(Op(name, tuple(kept)))


def _flat(name: str, value: Int) -> tuple[Int, ...]:
    """The operands of a minimum within a minimum, or of a maximum within a maximum; any other value itself."""
    atom = value.atom
    return atom.args if isinstance(atom, Op) and atom.name == name else (value,)


def _is_count(value: Int) -> bool:
    """Whether it is never negative, given that no name is."""
    return value.constant >= 0 and all(c > 0 and _is_count_atom(atom) for atom, c in value.terms)


def _is_count_atom(atom: Atom) -> bool:
    if isinstance(atom, Op):
        every = all(map(_is_count, atom.args))
        return every or (atom.name == "max" and any(map(_is_count, atom.args)))
    return isinstance(atom, str) or (isinstance(atom, Select) and _is_count(atom.then) and _is_count(atom.other))


def _single(atom: Atom) -> Int:
    return Linear(((atom, 1),))


def _sum(parts: Iterable[Int]) -> Int:
    given = list(parts)
    constant, terms = sum(part.constant for part in given), [part.terms for part in given if part.terms]
    if len(terms) < 2:
        return Linear(terms[0] if terms else (), constant)
    return Linear.make([term for own in terms for term in own], constant)


def largest(value: Int, name: int) -> int:
    """A bound on the magnitude of a sum of names and quotients, given one on that of each name."""
    parts = (abs(c) * (name if isinstance(atom, str) else largest(_dividend(atom)[0], name)) for atom, c in value.terms)
    return sum(parts) + abs(value.constant)


def straight(value: Int) -> Affine:
    """About the same as an affine expression: `i` for `i // 2`, 0 for `i - 4*(i // 4)`.

    The coefficients of names in quotients are divided, and all are rounded away from 0.
    """
    if value.is_affine:
        return cast("Affine", value)
    terms = slopes(value).items()
    return Linear.make({name: ceil(abs(c)) * (1 if c > 0 else -1) for name, c in terms}, value.constant)


def slopes(value: Int) -> dict[str, Fraction]:
    """By how much a value grows with each name, on average: 1/2 for `i // 2`."""
    found: dict[str, Fraction] = {}
    for atom, factor in value.terms:
        if isinstance(atom, Lookup):
            continue
        dividend, divisor = (Linear.name(atom), 1) if isinstance(atom, str) else _dividend(atom)
        inner = {atom: Fraction(1)} if isinstance(atom, str) else slopes(dividend)
        for name, slope in inner.items():
            found[name] = found.get(name, Fraction()) + slope * factor / divisor
    return found


def lookups(value: Int) -> tuple[Lookup, ...]:
    """The elements that are looked up in an expression, outer ones first."""
    return tuple(atom for atom in walk(value) if isinstance(atom, Lookup))


def map_lookups(value: Int, change: Callable[[Lookup], Lookup]) -> Int:
    """The sum with `change(lookup)` for each of its terms that is an element of an array."""
    if not any(isinstance(atom, Lookup) for atom, _ in value.terms):
        return value
    terms = [(change(atom) if isinstance(atom, Lookup) else atom, c) for atom, c in value.terms]
    return Linear.make(terms, value.constant)


def _dividend(atom: Atom) -> tuple[Int, int]:
    """The dividend and the divisor of a quotient."""
    assert isinstance(atom, Op) and atom.name == "floordiv", "subscripts have no other operations"
    return atom.args[0], atom.args[1].constant


def factors_of(atom: Atom) -> tuple[Int, ...]:
    """The factors of a product; any other atom is its own only factor."""
    return atom.args if isinstance(atom, Op) and atom.name == "*" else (_single(atom),)


def _times(first: Atom, second: Atom) -> Int:
    return _single(Op("*", tuple(sorted((*factors_of(first), *factors_of(second)), key=str))))


def _without(atom: Atom, name: str) -> Int | None:
    """An atom divided by a name; None if the name is not a factor of it."""
    factors = list(factors_of(atom))
    own = Linear.name(name)
    if own not in factors:
        return None
    factors.remove(own)
    return prod(factors, start=Linear.of(1))


def _order(term: tuple[Atom, int]) -> str:
    return term[0] if isinstance(term[0], str) else str(term[0])


# --- walks over atoms -----------------------------------------------------------------------------------------------


def walk(value: Int) -> Iterator[Atom]:
    """All atoms of an expression, including nested ones."""
    for atom, _ in value.terms:
        yield from _walk(atom)


def _walk(atom: Atom) -> Iterator[Atom]:
    yield atom
    for part in _parts(atom):
        yield from walk(part)


def _parts(atom: Atom) -> tuple[Int, ...]:
    """The expressions that an atom is made of."""
    if isinstance(atom, Select):
        return (*sides(atom.test), atom.then, atom.other)
    if isinstance(atom, Lookup):
        return (*atom.indices, atom.extent)
    return atom.args if isinstance(atom, Op) else ()


def sides(test: Test) -> tuple[Int, ...]:
    """The expressions that a condition compares."""
    if isinstance(test, Compare):
        return (test.left, test.right)
    return tuple(side for part in test.parts for side in sides(part))


def _names(atom: Atom) -> frozenset[str]:
    return frozenset(part for part in _walk(atom) if isinstance(part, str))


def _value(atom: Atom, values: Mapping[str, int]) -> int:
    if isinstance(atom, str):
        return int(values[atom])
    if isinstance(atom, Select):
        return (atom.then if holds(atom.test, values) else atom.other).evaluate(values)
    assert isinstance(atom, Op), f"{atom} is data"
    args = [arg.evaluate(values) for arg in atom.args]
    match atom.name:
        case "*":
            return prod(args)
        case "min":
            return min(args)
        case "max":
            return max(args)
        case "%":
            return args[0] % args[1]
    return args[0] // args[1]


def names_of(test: Test) -> frozenset[str]:
    """All names in a condition."""
    return frozenset().union(*(side.names for side in sides(test)))


def holds(test: Test, values: Mapping[str, int]) -> bool:
    """Whether a condition holds for given values of all names."""
    if isinstance(test, Connected):
        return (all if test.symbol == "&&" else any)(holds(part, values) for part in test.parts)
    return COMPARED[test.symbol](test.left.evaluate(values), test.right.evaluate(values))


def _substituted(atom: Atom, values: Mapping[str, Linear[B] | int]) -> Int:
    if isinstance(atom, str):
        return Linear.of(cast("Int | int", values[atom])) if atom in values else Linear.name(atom)
    if isinstance(atom, Select):
        test = replaced(atom.test, values)
        return choice(test, atom.then.substitute(values), atom.other.substitute(values))
    if isinstance(atom, Lookup):
        indices = tuple(cast("Int", value.substitute(values)) for value in atom.indices)
        return _single(Lookup(atom.array, indices, cast("Affine", atom.extent.substitute(values))))
    args = [cast("Int", arg.substitute(values)) for arg in atom.args]
    match atom.name:
        case "*":
            return prod(args, start=Linear.of(1))
        case "min" | "max":
            return _extreme(atom.name, args)
        case "floordiv":
            return floor_quotient(args[0], args[1].constant)
        case "/":
            return quotient(args[0], args[1])
    return remainder(args[0], args[1])


def replaced(test: Test, values: Mapping[str, Linear[B] | int]) -> Test:
    """A condition with names replaced by expressions or integers."""
    if isinstance(test, Connected):
        return Connected(test.symbol, tuple(replaced(part, values) for part in test.parts))
    return Compare(test.left.substitute(values), test.symbol, test.right.substitute(values))


# --- text ------------------------------------------------------------------------------------------------------------

SUM, PRODUCT, PRIMARY = 1, 2, 3
"""The precedence of a text."""


@dataclass(frozen=True)
class Language:
    """A printer of expressions and conditions, with the syntax of C or Python.

    `calls` maps operations to functions of two arguments. Python's take any number; its remainders are not negative.
    """

    calls: Mapping[str, str]
    symbols: Mapping[str, str]
    choice: Callable[[str, str, str], str]
    named: Callable[[str], str] = str
    """The text of a name."""
    lookup: str = ""
    """What is before an element that is looked up."""
    is_python: bool = False

    def integer(self, value: Int) -> str:
        """The text of an expression."""
        return self._sum(value)[0]

    def primary(self, value: Int) -> str:
        """The text of an expression, in parentheses unless it is a name, a call, or a nonnegative number."""
        text, level = self._sum(value)
        return text if level == PRIMARY else f"({text})"

    def test(self, test: Test) -> str:
        """The text of a condition; a disjunction in a conjunction, or the other way round, is in parentheses."""
        if isinstance(test, Compare):
            return f"{self.integer(test.left)} {test.symbol} {self.integer(test.right)}"
        return self.symbols[test.symbol].join(self._part(test.symbol, part) for part in test.parts)

    def _part(self, symbol: str, part: Test) -> str:
        text = self.test(part)
        return f"({text})" if isinstance(part, Connected) and part.symbol != symbol else text

    def _sum(self, value: Int) -> tuple[str, int]:
        """The text and its precedence."""
        value = _with_remainders(value) if self.is_python else value
        if not value.terms:
            return str(value.constant), PRIMARY if value.constant >= 0 else SUM
        if value.atom is not None:
            return self._atom(value.atom)
        numbers = [*(c for _, c in value.terms), *[value.constant] * (value.constant != 0)]
        negated = max(numbers) < 0
        parts = [self._term(atom, abs(c), negated) for atom, c in value.terms] + [str(abs(value.constant))]
        signed = list(zip(numbers, parts, strict=False))
        first = next((at for at, number in enumerate(numbers) if number > 0), 0)
        ordered = [signed[first], *signed[:first], *signed[first + 1 :]]
        text = "".join(f" {'-' if sign < 0 else '+'} {part}" for sign, part in ordered)
        return f"{'-' * negated}{text[3:]}", SUM if negated or len(signed) > 1 else PRODUCT

    def _term(self, atom: Atom, coefficient: int, negated: bool) -> str:
        """A term's text. A quotient behind a sign or a factor is in parentheses: `-a // 2` is `(-a) // 2` in Python."""
        text, level = self._atom(atom)
        whole = level == PRIMARY or (isinstance(atom, Op) and atom.name == "*") or (coefficient == 1 and not negated)
        factors = [str(coefficient)] * (coefficient != 1)
        return "*".join([*factors, text if whole else f"({text})"])

    def _atom(self, atom: Atom) -> tuple[str, int]:
        if isinstance(atom, str):
            return self.named(atom), PRIMARY
        if isinstance(atom, Select):
            test = self.test(atom.test)
            if (atom.then, atom.other) == (Linear.of(1), Linear.of(0)):
                return f"({test})", PRIMARY
            return f"({self.choice(test, self.integer(atom.then), self.integer(atom.other))})", PRIMARY
        if isinstance(atom, Lookup):
            return f"{self.lookup}{atom.array}[{', '.join(map(self.integer, atom.indices))}]", PRIMARY
        if atom.name in self.calls:
            call, args = self.calls[atom.name], map(self.integer, atom.args)
            if self.is_python:
                return f"{call}({', '.join(args)})", PRIMARY
            return reduce(lambda a, b: f"{call}({a}, {b})", args), PRIMARY
        return self.symbols[atom.name].join(map(self.primary, atom.args)), PRODUCT


C = Language(
    {"min": "imin", "max": "imax", "floordiv": "floord"},
    {"*": "*", "/": "/", "%": " % ", "&&": " && ", "||": " || "},
    lambda test, then, other: f"{test} ? {then} : {other}",
    lookup="(int64_t)",
)
PYTHON = Language(
    {"min": "min", "max": "max"},
    {"*": "*", "/": " // ", "floordiv": " // ", "%": " % ", "&&": " and ", "||": " or "},
    lambda test, then, other: f"{then} if {test} else {other}",
    is_python=True,
)


def _with_remainders(value: Int) -> Int:
    """`(t + 1) % 2` in place of `t - 2*((t + 1) // 2) + 1`."""
    for atom, factor in value.terms:
        if isinstance(atom, Op) and atom.name == "floordiv" and factor % atom.args[1].constant == 0:
            dividend, divisor = atom.args
            times = -factor // divisor.constant
            rest = value - (dividend - _single(atom) * divisor) * times
            if len(rest.terms) < len(value.terms) - 1:
                return _with_remainders(rest) + _single(Op("%", (dividend, divisor))) * times
    return value


def primary(value: Int) -> str:
    """C text, in parentheses unless it is a name, a call, or a nonnegative number."""
    return C.primary(value)


def extent(size: Int) -> str:
    """An expression of sizes as C text, in parentheses unless it binds like a name."""
    return primary(in_c(size))


def in_c(value: Int) -> Int:
    """An expression of sizes, with their names in C."""
    return value.renamed({name: c_name(name) for name in value.names})
