"""Intervals of integer expressions, and the simplifications that they allow.

With sizes that are not negative, and 0 <= p_q < 784:

floor((N + 63)/64)                ->    (N + 63)/64, a quotient of C
-((783 - p_q) % 28) + 27          ->    p_q % 28
min(p_q, 800)                     ->    p_q
if 0 < (N + 63)/64                ->    if N > 0
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import Literal

from codegen.ir.integer import (
    Atom,
    Compare,
    Connected,
    Int,
    Linear,
    Lookup,
    Op,
    Relation,
    Select,
    Test,
    choice,
    connected,
    floor_quotient,
    gaps,
    maximum,
    minimum,
    parts_of,
    quotient,
    remainder,
)
from codegen.ir.loop_ir import Block, Comment, For, If, Node, Once, Run

UNKNOWN = 1 << 200
"""A bound of this magnitude or more is unknown."""
Interval = tuple[int, int]


@dataclass(frozen=True)
class Ranges:
    """The intervals of names, and sums of them that are known not to be negative.

    `seen` is called with the interval of each sum, product and quotient examined.
    """

    of: Mapping[str, Interval] = field(default_factory=dict)
    seen: Callable[[Interval], object] = id
    natural: tuple[Int, ...] = ()

    @staticmethod
    def of_sizes(sizes: Iterable[str]) -> Ranges:
        """The intervals of sizes, which are not negative."""
        return Ranges(dict.fromkeys(sizes, (0, UNKNOWN)))

    def having(self, name: str, interval: Interval) -> Ranges:
        """The intervals with that of one more name."""
        return replace(self, of={**self.of, name: interval})

    def inside(self, loop: For) -> Ranges:
        """The intervals with that of a loop's variable."""
        low, high = self.interval(loop.start)
        unbounded = self.having(loop.variable, (low, UNKNOWN))
        known = self.having(loop.variable, (low, max(high, unbounded._last(loop.test, loop.variable))))
        return known.given(loop.test)

    def given(self, test: Test) -> Ranges:
        """The intervals where a condition holds."""
        found = (gap for part in parts_of(test) if isinstance(part, Compare) for gap in gaps(part))
        return replace(self, natural=(*self.natural, *(each for gap in found for each in _least(gap))))

    def most(self, value: Int) -> int:
        """The greatest value, also of a difference whose terms are unknown: of i - N, if N - 1 - i is not negative."""
        return min(self.interval(value + more)[1] for more in (Linear.of(0), *self.natural))

    def _last(self, test: Test, variable: str) -> int:
        """The greatest value of a loop's variable for which its test may hold."""
        if isinstance(test, Connected):
            last = [self._last(part, variable) for part in test.parts]
            return min(last) if test.symbol == "&&" else max(last)
        factor = test.left.coefficient(variable)
        if test.symbol in ("<", "<=") and factor > 0 and test.left == Linear.name(variable) * factor:
            return (self.interval(test.right)[1] - (test.symbol == "<")) // factor
        return UNKNOWN

    def interval(self, value: Int) -> Interval:
        """The least and the greatest value; `seen` gets the hull of all partial sums, in any order of the terms."""
        terms = [(value.constant, value.constant), *(_times(self._atom(a), c) for a, c in value.terms)]
        self.seen((sum(min(low, 0) for low, _ in terms), sum(max(high, 0) for _, high in terms)))
        return sum(low for low, _ in terms), sum(high for _, high in terms)

    def look_at(self, test: Test) -> None:
        """Call `seen` for the expressions that a condition compares."""
        for part in test.parts if isinstance(test, Connected) else ():
            self.look_at(part)
        for side in (test.left, test.right) if isinstance(test, Compare) else ():
            self.interval(side)

    def _atom(self, atom: Atom) -> Interval:
        if isinstance(atom, str):
            return self.of.get(atom, (-UNKNOWN, UNKNOWN))
        if isinstance(atom, Select):
            self.look_at(atom.test)
            (a, b), (c, d) = self.interval(atom.then), self.interval(atom.other)
            return min(a, c), max(b, d)
        if isinstance(atom, Lookup):
            return -UNKNOWN, UNKNOWN
        found = _of_operation(atom.name, list(map(self.interval, atom.args)))
        self.seen(found)
        return found

    def holds(self, test: Test) -> bool:
        """Whether a condition is known to hold."""
        if isinstance(test, Connected):
            return (all if test.symbol == "&&" else any)(map(self.holds, test.parts))
        if test.symbol in (">", ">="):
            return self.holds(Compare(test.right, "<" if test.symbol == ">" else "<=", test.left))
        low, high = self._gap(test.left, test.right)
        match test.symbol:
            case "<":
                return low > 0
            case "<=":
                return low >= 0
            case "==":
                return low == high == 0
        return low > 0 or high < 0

    def fails(self, test: Test) -> bool:
        """Whether a condition is known not to hold."""
        if isinstance(test, Connected):
            return (any if test.symbol == "&&" else all)(map(self.fails, test.parts))
        return self.holds(Compare(test.left, _NOT[test.symbol], test.right))

    def _gap(self, left: Int, right: Int) -> Interval:
        """The interval of `right - left`, operand by operand for a minimum on the right or a maximum on the left."""
        for value, name, sign in ((right, "min", 1), (left, "max", -1)):
            atom = value.atom
            if isinstance(atom, Op) and atom.name == name:
                gaps = [self._gap(left, arg) if sign > 0 else self._gap(arg, right) for arg in atom.args]
                return min(low for low, _ in gaps), min(high for _, high in gaps)
        return self.interval(right - left)

    def value(self, value: Int) -> Int:
        """The expression, simplified."""
        made: Int = Linear((), value.constant)
        for atom, factor in value.terms:
            made = made + self._simpler(atom) * factor
        return rejoined(self._turned(made))

    def _simpler(self, atom: Atom) -> Int:
        if isinstance(atom, str):
            return Linear.name(atom)
        if isinstance(atom, Select):
            test, then, other = self.test(atom.test), self.value(atom.then), self.value(atom.other)
            return then if self.holds(test) else choice(test, then, other)
        if isinstance(atom, Lookup):
            return Linear(((atom, 1),))
        args = list(map(self.value, atom.args))
        match atom.name:
            case "*":
                return prod(args, start=Linear.of(1))
            case "min":
                return minimum(*(a for n, a in enumerate(args) if not self._is_beaten(n, args, 1)))
            case "max":
                return maximum(*(a for n, a in enumerate(args) if not self._is_beaten(n, args, -1)))
        dividend, divisor = args[0], args[1].constant
        low, high = self.interval(dividend)
        if atom.name == "%":
            return dividend if low >= 0 and high < divisor else remainder(dividend, divisor)
        divide = floor_quotient if low < 0 and atom.name == "floordiv" else quotient
        return divide(dividend, divisor)

    def _is_beaten(self, place: int, args: list[Int], sign: int) -> bool:
        """Whether another operand makes this one of a minimum (`sign` 1) or maximum (-1) redundant; the first of equal
        ones stays."""
        gaps = [(n, self.interval((args[place] - other) * sign)) for n, other in enumerate(args) if n != place]
        return any(low >= 0 and (high > 0 or n < place) for n, (low, high) in gaps)

    def _turned(self, value: Int) -> Int:
        """A remainder that counts from the end, `6 - (13 - i) % 7`, made to count from the start: `i % 7`."""
        for atom, factor in value.terms:
            if not isinstance(atom, Op) or atom.name != "%" or factor >= 0:
                continue
            dividend, divisor = atom.args[0], atom.args[1].constant
            turned = -dividend - 1
            turned = turned - turned.constant + turned.constant % divisor
            if value.constant >= -factor * (divisor - 1) and self.interval(turned)[0] >= 0:
                rest = value - Linear(((atom, factor),)) + factor * (divisor - 1)
                return self._turned(rest - self._simpler(Op("%", (turned, Linear.of(divisor)))) * factor)
        return value

    def test(self, test: Test) -> Test:
        """The condition, simplified."""
        if isinstance(test, Connected):
            parts = [self.test(part) for part in test.parts]
            kept = [part for part in parts if not self.holds(part)] if test.symbol == "&&" else parts
            return connected(test.symbol, kept or parts[:1])
        left, right = self.value(test.left), self.value(test.right)
        return _named_first(_undivided(Compare(left, test.symbol, self._binding(left, test.symbol, right))))

    def _binding(self, left: Int, symbol: Relation, right: Int) -> Int:
        """The right-hand side; of a minimum, only the operands that `left` is not known to be below."""
        if symbol not in ("<", "<=") or not isinstance(right.atom, Op) or right.atom.name != "min":
            return right
        open_ = [arg for arg in right.atom.args if not self.holds(Compare(left, symbol, arg))]
        return minimum(*(open_ or right.atom.args[:1]))


def _least(value: Int) -> tuple[Int, ...]:
    """Sums that aren't negative if a value isn't: with a minimum in it, one for each operand."""
    for atom, factor in value.terms:
        if isinstance(atom, Op) and atom.name == "min" and factor == 1:
            rest = value - Linear(((atom, 1),))
            return tuple(each for arg in atom.args for each in _least(rest + arg))
    return (value,)


_NOT: dict[Relation, Relation] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def simplified(node: Node, known: Ranges) -> Node:
    """The loops with simplified expressions and conditions, of which none is known to hold or not to."""
    match node:
        case For():
            inner = known.inside(node)
            start, test, body = known.value(node.start), node.test, simplified(node.body, inner)
            if isinstance(test, Compare):
                test = Compare(test.left, test.symbol, known.value(test.right))
            return replace(node, start=start, test=test, body=body)
        case Once():
            return replace(node, value=known.value(node.value), body=simplified(node.body, known))
        case If():
            if known.holds(node.test):
                return simplified(node.then, known)
            if known.fails(node.test):
                return Block(()) if node.other is None else simplified(node.other, known)
            other = None if node.other is None else simplified(node.other, known)
            return If(known.test(node.test), simplified(node.then, known), other)
        case Block():
            return Block(tuple(simplified(child, known) for child in node.nodes))
        case Comment():
            return replace(node, body=simplified(node.body, known))
        case Run():
            return Run(node.statement, tuple(map(known.value, node.values)))
    return node


def facts(test: Test) -> Iterator[Int | Test]:
    """The parts of a conjunction: for an inequality, a value that is above 0 if it holds; any other part itself.

    `32*i < min(48, (N + 5)/6)` says that 48 - 32*i and N - 192*i are above 0.
    """
    if isinstance(test, Connected) and test.symbol == "&&":
        yield from (fact for part in test.parts for fact in facts(part))
    elif isinstance(test, Connected) or test.symbol not in ("<", "<=", ">", ">="):
        yield test
    elif test.symbol in (">", ">="):
        yield from facts(Compare(test.right, "<" if test.symbol == ">" else "<=", test.left))
    elif isinstance(test.right.atom, Op) and test.right.atom.name == "min":
        yield from (fact for arg in test.right.atom.args for fact in facts(Compare(test.left, test.symbol, arg)))
    else:
        yield _undivided_gap(test.right - test.left + (test.symbol == "<="))


def _undivided_gap(gap: Int) -> Int:
    """A value that is above 0 exactly if `gap` is: `n - 6*a` for `(n + 5)/6 - a`."""
    for atom, factor in gap.terms:
        if factor == 1 and isinstance(atom, Op) and atom.name in ("/", "floordiv") and atom.args[1].number is not None:
            divisor = atom.args[1].constant
            return atom.args[0] + (gap - Linear(((atom, 1),))) * divisor - divisor + 1
    return gap


def rejoined(value: Int) -> Int:
    """A quotient and its remainder joined to the dividend: `i` for `7*(i/7) + i % 7`."""
    factors = dict(value.terms)
    for atom, factor in value.terms:
        if not isinstance(atom, Op) or atom.name != "%":
            continue
        dividend, divisor = atom.args
        names: tuple[Literal["/", "floordiv"], ...] = ("/", "floordiv")
        for quotient_ in (Op(name, atom.args) for name in names):
            if factors.get(quotient_) == factor * divisor.constant:
                rest = value - Linear(((atom, factor), (quotient_, factor * divisor.constant)))
                return rejoined(rest + dividend * factor)
    return value


def _undivided(test: Compare) -> Compare:
    """`2 < a/7` as `21 <= a`."""
    atom, least = test.right.atom, test.left.number
    if test.symbol not in ("<", "<=") or least is None:
        return test
    if not isinstance(atom, Op) or atom.name not in ("/", "floordiv"):
        return test
    dividend, divisor = atom.args
    least += test.symbol == "<"
    return test if least < 0 else Compare(Linear.of(least * divisor.constant), "<=", dividend)


def _named_first(test: Compare) -> Compare:
    """`0 < N` and `N >= 1` as `N > 0`."""
    if test.left.number is not None and test.symbol in ("<", "<="):
        rest = test.right - test.right.constant
        if rest.atom is not None:
            return Compare(rest, ">", Linear.of(test.left.constant - test.right.constant - (test.symbol == "<=")))
    if test.right.number is not None and test.symbol == ">=" and test.left.atom is not None:
        return Compare(test.left, ">", test.right - 1)
    return test


def _times(of: Interval, factor: int) -> Interval:
    low, high = of
    return (low * factor, high * factor) if factor >= 0 else (high * factor, low * factor)


def _of_operation(name: str, of: list[Interval]) -> Interval:
    match name, of:
        case "min", _:
            return min(low for low, _ in of), min(high for _, high in of)
        case "max", _:
            return max(low for low, _ in of), max(high for _, high in of)
        case "%", [_, (_, divisor)]:
            return 0, divisor - 1
        case (("floordiv" | "/"), [(a, b), (divisor, _)]):
            return a // divisor, b // divisor
    corners = [prod(chosen) for chosen in product(*of)]
    return min(corners), max(corners)
