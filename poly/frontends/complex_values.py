"""Complex numbers as pairs of expressions, and their arithmetic.

Products and sums follow their definitions, with one rounding for each operation on parts. A part that is 0 by its
notation, as in `2.0` and `1j`, takes no part in them: `1j * x` is `-x.imag + x.real j`, also for infinite parts. A
quotient is Smith's: R. L. Smith, Algorithm 116: Complex division, CACM 5(8), 1962. It overflows only where the result
is near the limits of the type, and its error is a few roundings relative to the modulus of the result.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

Keep = Callable[[ast.expr], ast.expr]
"""Keeps a value that is used several times in a local."""


@dataclass(frozen=True)
class Parts:
    """The real and the imaginary part of a number; None for one that is 0 by its notation."""

    real: ast.expr | None
    imag: ast.expr | None = None

    @property
    def is_complex(self) -> bool:
        return self.imag is not None

    def map(self, change: Keep) -> Parts:
        """Both parts changed."""
        return Parts(*(None if part is None else change(part) for part in (self.real, self.imag)))


def whole(part: ast.expr | None) -> ast.expr:
    """A part as an expression."""
    return ast.Constant(0.0) if part is None else part


def numeral(value: complex) -> Parts:
    """A literal."""
    return Parts(ast.Constant(value.real) if value.real else None, ast.Constant(value.imag))


def called(name: str, *args: ast.expr) -> ast.expr:
    """The call of a function by its name in poly."""
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


def negative(value: Parts) -> Parts:
    return value.map(lambda part: ast.UnaryOp(ast.USub(), part))


def conjugate(value: Parts) -> Parts:
    return Parts(value.real, negative(Parts(value.imag)).real)


def plus(one: Parts, other: Parts) -> Parts:
    return Parts(_sum(one.real, other.real), _sum(one.imag, other.imag))


def minus(one: Parts, other: Parts) -> Parts:
    return Parts(_difference(one.real, other.real), _difference(one.imag, other.imag))


def times(one: Parts, other: Parts) -> Parts:
    real = _difference(_product(one.real, other.real), _product(one.imag, other.imag))
    return Parts(real, _sum(_product(one.real, other.imag), _product(one.imag, other.real)))


def over(value: Parts, by: Parts, keep: Keep) -> Parts:
    """A quotient; by a real number, that of each part."""
    if by.imag is None:
        return value.map(lambda part: ast.BinOp(part, ast.Div(), whole(by.real)))
    c, d = whole(by.real), by.imag
    is_real = ast.Compare(called("abs", c), [ast.GtE()], [called("abs", d)])

    def larger(one: ast.expr | None, other: ast.expr | None) -> ast.expr:
        """`one` if the divisor's real part is the larger one."""
        return ast.IfExp(is_real, whole(one), whole(other))

    large, small = keep(larger(c, d)), keep(larger(d, c))
    ratio = keep(ast.BinOp(small, ast.Div(), large))
    divisor = keep(ast.BinOp(large, ast.Add(), ast.BinOp(small, ast.Mult(), ratio)))
    a, b = value.real, value.imag
    first, second = keep(larger(a, b)), keep(larger(b, a))
    real = ast.BinOp(first, ast.Add(), ast.BinOp(second, ast.Mult(), ratio))
    turned = ast.BinOp(second, ast.Sub(), ast.BinOp(first, ast.Mult(), ratio))
    imag = ast.IfExp(is_real, turned, ast.UnaryOp(ast.USub(), turned))
    return Parts(ast.BinOp(real, ast.Div(), divisor), ast.BinOp(imag, ast.Div(), divisor))


def modulus(value: Parts) -> ast.expr:
    """The absolute value, which overflows or is 0 where the squares of the parts do or are."""
    if value.imag is None or value.real is None:
        return called("abs", whole(value.imag or value.real))
    squares = (ast.BinOp(part, ast.Mult(), part) for part in (value.real, value.imag))
    return called("sqrt", ast.BinOp(next(squares), ast.Add(), next(squares)))


def exponential(value: Parts, keep: Keep) -> Parts:
    """`exp`."""
    if value.imag is None:
        return Parts(called("exp", whole(value.real)))
    cos, sin = called("cos", value.imag), called("sin", value.imag)
    if value.real is None:
        return Parts(cos, sin)
    size = keep(called("exp", value.real))
    return Parts(ast.BinOp(size, ast.Mult(), cos), ast.BinOp(size, ast.Mult(), sin))


def _sum(one: ast.expr | None, other: ast.expr | None) -> ast.expr | None:
    return one or other if one is None or other is None else ast.BinOp(one, ast.Add(), other)


def _difference(one: ast.expr | None, other: ast.expr | None) -> ast.expr | None:
    if one is None and other is not None:
        return ast.UnaryOp(ast.USub(), other)
    return one if one is None or other is None else ast.BinOp(one, ast.Sub(), other)


def _product(one: ast.expr | None, other: ast.expr | None) -> ast.expr | None:
    if one is None or other is None:
        return None
    if _is_one(one) or _is_one(other):
        return other if _is_one(one) else one
    return ast.BinOp(one, ast.Mult(), other)


def _is_one(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) and part.value == 1
