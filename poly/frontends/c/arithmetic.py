"""The integers of C: the types of literals, what wraps around, and quotients, shifts and masks."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from pycparser import c_ast

from poly.errors import SpecError
from poly.frontends.c.declarations import CounterName, Meaning, SizeName
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
from poly.frontends.polynomials import polynomial

INT = (-(2**31), 2**31 - 1)
"""The least and greatest int."""
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
        positive = left.number is not None and right.number is not None and left.number >= right.number
        if not self.modular and not positive and wraps(left.kind, right.kind):
            raise self.refuse(
                node,
                f"`{shown(node)}` is unsigned, and wraps around where it would be negative",
                "Declare its names as int or ptrdiff_t, or compare sums: `i + 1 < n`.",
            )

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

        def natural(name: str) -> bool:
            match self.names.get(name):
                case CounterName(natural=is_natural):
                    return is_natural
                case SizeName():
                    return True
            return False

        return found is not None and all(f >= 0 and all(map(natural, key)) for key, f in found.items())

    def binary(self, node: c_ast.Node, op: str, left: Value, right: Value) -> Value:
        """An operation with one of + - * / %."""
        raise NotImplementedError


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
