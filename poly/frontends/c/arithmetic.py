"""The integers of C: the types of literals, what wraps around, and quotients, shifts and masks."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from pycparser import c_ast

from poly.errors import SpecError
from poly.frontends.c.declarations import Meaning, SizeName
from poly.frontends.c.facts import KnownSums, upper_bound
from poly.frontends.c.place import CSource, refusal, shown
from poly.frontends.c.typed import (
    INDICES,
    INTEGERS,
    UNSIGNED,
    Value,
    call,
    common,
    converted,
    literal,
    numeral,
    operation,
    towards_zero,
    wide,
    wraps,
)
from poly.frontends.polynomials import Polynomial, Range, negative, polynomial, total

INT = (-(2**31), 2**31 - 1)
"""The least and greatest int."""
UINT = 2**32 - 1
"""The greatest unsigned int."""
SIZES = {"int": INT[1], "uint": UINT}
"""The greatest sizes of some kinds."""
BITS_OF = {"int": 31, "uint": 32, "long": 63, "ulong": 64}
"""The bits of the greatest number of each kind of integers."""
BITS = "Use << and >> by numbers, & with a mask of the lowest bits, and && and || for conditions."


class Arithmetic:
    """Translates the operations on integers of one function, given the meanings of names at the present place."""

    def __init__(self, source: CSource, typedefs: Mapping[str, c_ast.Node]) -> None:
        self.source = source
        self.typedefs = typedefs
        self.names: dict[str, Meaning] = {}
        self.following = 0
        """How many loops' effects are being followed here, before their bodies are translated."""
        self.lost: set[str] = set()
        """The integers whose values are used where they don't follow from counters and sizes."""
        self.indexes_data = False
        """Whether a subscript or bound depends on data."""
        self.modular = False
        """Whether what wraps around in the present expression has no effect."""
        self.facts = KnownSums()
        """What is known here of counters and sizes."""
        self.loops: tuple[Range, ...] = ()
        """The loops around this place."""
        self.assumed: list[Polynomial] | None = None
        """Sums of sizes that are at least 0 where the nest stands for the text; None if nothing may be assumed."""

    def refuse(self, node: c_ast.Node, why: str, remedy: str) -> SpecError:
        return refusal(node, self.source, why, remedy)

    @contextmanager
    def wrapping(self, has_no_effect: bool) -> Iterator[None]:
        """Inside, what wraps around has no effect, or has one; nothing has where loops' effects are followed."""
        before, self.modular = self.modular, has_no_effect or self.following > 0
        try:
            yield
        finally:
            self.modular = before

    def check_sign(self, node: c_ast.Node, left: Value, right: Value) -> None:
        """Refuse a difference that is unsigned where it would be negative."""
        if not self.modular and wraps(left.kind, right.kind) and not self.is_least(left, right):
            raise self.refuse(
                node,
                f"`{shown(node)}` is unsigned, and wraps around where it would be negative",
                "Declare its names as int or ptrdiff_t, or compare sums: `i + 1 < n`.",
            )

    def check_top(self, node: c_ast.Node, made: Value) -> None:
        """Refuse a sum or product that is beyond the greatest unsigned int, where the nest stands for the text."""
        may_wrap = made.kind == "uint" and not self.modular and self.assumed is not None
        if may_wrap and not self.is_least(literal(UINT, "uint"), made):
            why = f"`{shown(node)}` is unsigned int, and may wrap around"
            raise self.refuse(node, why, "Declare its names as int, long or size_t.")

    def is_least(self, greater: Value, least: Value) -> bool:
        """Whether an integer is at least another one, for all sizes or for those to which the nest is restricted."""
        apart = difference(greater, least)
        if apart is None or self.proves(apart):
            return apart is not None
        if self.assumed is None:
            return False
        most = upper_bound(negative(apart), self.loops, lambda name: self.proves({(name,): 1}))
        if most is None or not any(most) or not all(map(self._are_sizes, most)):
            return False
        self.assumed.append(negative(most))
        return True

    def proves(self, goal: Polynomial) -> bool:
        """Whether a sum of products is at least 0."""
        facts = self.facts
        for name in {name for key in goal for name in key} | {n for sums in facts.known for key in sums for n in key}:
            meaning = self.names.get(name)
            if isinstance(meaning, SizeName):  # kernels only run where sizes are not negative
                most = [{(): SIZES[meaning.kind], (name,): -1}] if meaning.kind in SIZES else []
                facts = facts.more([{(name,): 1}, *most])
        several = {key for sums in (goal, *facts.known) for key in sums if len(key) > 1}
        positive = [{key: 1} for key in several if all(facts.prove({(name,): 1}) for name in key)]
        return facts.more(positive).prove(goal)

    def _are_sizes(self, names: Iterable[str]) -> bool:
        return all(isinstance(self.names.get(name), SizeName) for name in names)

    @contextmanager
    def knowing(self, found: Iterable[Polynomial]) -> Iterator[None]:
        """Inside, these sums are at least 0."""
        before, self.facts = self.facts, self.facts.more(found)
        try:
            yield
        finally:
            self.facts = before

    def check_wrap(self, node: c_ast.Node, *values: Value) -> None:
        """Refuse to combine an unsigned integer with one that may be negative, which C makes unsigned, too."""
        if self.modular or not wraps(*(value.kind for value in values)):
            return
        if not all(value.kind in UNSIGNED or self._is_kept(value) for value in values):
            raise self.refuse(
                node,
                f"`{shown(node)}` makes unsigned what may be negative, so that it wraps around",
                "Declare all its names as int or ptrdiff_t.",
            )

    def check_kept(self, node: c_ast.Node, value: Value, kind: str) -> None:
        """Refuse to make an integer that may be negative one of an unsigned kind."""
        if kind in UNSIGNED and value.kind not in UNSIGNED:
            self.check_wrap(node, value, replace(value, kind="ulong"))

    def _is_kept(self, value: Value) -> bool:
        """Whether an integer of counters and sizes stays as it is where it becomes unsigned."""
        return value.kind in INTEGERS and self.is_natural(value.node)

    def divided(self, node: c_ast.Node, op: str, left: Value, right: Value) -> Value:
        """A division of integers, which C rounds towards zero: of literals, of counters and sizes, or of data.

        A double has the quotient of two integers of 32 bits with so many digits that it rounds to no other integer.
        """
        by, kind = right.number, common(left.kind, right.kind)
        if left.number is not None and by:
            quotient = abs(int(left.number)) // abs(int(by)) * (1 if (left.number < 0) == (by < 0) else -1)
            return literal(quotient if op == "/" else int(left.number) - quotient * int(by), kind)
        if kind in INTEGERS and (by is None or by > 0):
            return Value(towards_zero(op, left.node, right.node, self.is_natural(left.node)), kind, weak=True)
        if "i64" in (left.kind, right.kind) or kind not in INDICES or not _is_int(left) or not _is_int(right):
            remedy = "Divide counters and sizes by positive ones, or divide as double: `(double)a / b`."
            raise self.refuse(node, f"`{shown(node)}` divides integers", remedy)
        whole = call("i32", ast.BinOp(wide(left), ast.Div(), wide(right)))
        if op == "%":
            whole = operation("-", converted(left, "i32"), operation("*", whole, converted(right, "i32")))
        return Value(converted(Value(whole, "i32"), kind), kind)

    def bits(self, node: c_ast.Node, op: str, left: Value, right: Value) -> Value:
        """Shifts by a number, and the lowest bits: products, quotients that round down, and what these leave."""
        number, kind = right.number, common(left.kind, "int")
        mask = isinstance(number, int) and number > 0 and not number & (number + 1)
        fits = mask if op == "&" else op in ("<<", ">>") and isinstance(number, int) and 0 <= number < 31
        if op == "&":
            self.check_wrap(node, left, right)
        if not fits or not isinstance(number, int) or kind not in (*INTEGERS, "i32"):
            raise self.refuse(node, f"`{shown(node)}` is an operation on bits, which poly has not", BITS)
        factor = number + 1 if op == "&" else 1 << number
        if op == "<<":
            return self.binary(node, "*", left, literal(factor, "int"))
        if kind != "i32":
            kinds = {">>": ast.FloorDiv(), "&": ast.Mod()}
            own = kind if op == ">>" else common(kind, right.kind)
            return Value(ast.BinOp(left.node, kinds[op], numeral(factor)), own, weak=True)
        down = call("i32", call("floor", ast.BinOp(wide(left), ast.Mult(), numeral(1 / factor))))
        if op == ">>":
            return Value(down, kind)
        rest = Value(operation("-", converted(left, kind), operation("*", down, numeral(factor))), kind)
        own = common(kind, right.kind)
        return Value(converted(rest, own), own)

    def is_natural(self, node: ast.expr) -> bool:
        """Whether an integer expression can't be negative, as far as signs tell."""
        match node:
            case ast.BinOp(op=ast.Mod()):
                return True  # divisors are positive
            case ast.BinOp(left=first, op=ast.FloorDiv()):
                return self.is_natural(first)
            case ast.IfExp(body=first, orelse=second):
                return self.is_natural(first) and self.is_natural(second)
            case ast.BinOp(left=first, op=ast.Add() | ast.Mult(), right=second) if self.is_natural(first):
                if self.is_natural(second):
                    return True
        found = polynomial(node)
        return found is not None and self.proves(found)

    def binary(self, node: c_ast.Node, op: str, left: Value, right: Value) -> Value:
        """An operation with one of + - * / %."""
        raise NotImplementedError


def difference(greater: Value, less: Value) -> Polynomial | None:
    """The difference of two integers of counters and sizes as a sum of products; None if it is none."""
    first, second = (polynomial(v.node) if v.kind in INTEGERS else None for v in (greater, less))
    return None if first is None or second is None else total(first, negative(second))


def integer_literal(text: str) -> Value:
    """A literal in the first type that has it, of those that C tries in turn."""
    digits = text.rstrip("uUlL")
    is_decimal = digits[0] != "0" or len(digits) == 1
    number = int(digits, 0 if is_decimal or digits[1] in "xXbB" else 8)
    suffix = text[len(digits) :].lower()
    kinds = [kind for kind in INTEGERS if kind in UNSIGNED or "u" not in suffix]
    kinds = [kind for kind in kinds if kind in ("long", "ulong") or "l" not in suffix]
    kinds = [kind for kind in kinds if kind not in UNSIGNED or "u" in suffix or not is_decimal]
    return literal(number, next((kind for kind in kinds if number < 1 << BITS_OF[kind]), "ulong"))


def _is_int(value: Value) -> bool:
    """Whether an integer is an int in C, or a number that an int has."""
    return value.kind not in ("long", "ulong") or (value.number is not None and INT[0] <= value.number <= INT[1])
