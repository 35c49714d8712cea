"""Functions from 0 to infinity in pieces, each with a polynomial: f(c + d) = f(c) + (d + d P(d)).

The centres c are the multiples of a piece's width, so that d is exact, and |d| up to half of it. P interpolates at the
Chebyshev points; next to 0, where d is the argument and P is small, only those of positive d.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from math import cos, pi

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
DIGITS = 50


@dataclass(frozen=True)
class Pieces:
    """An odd function in pieces of a width, of which the last one's centre has the function's limit, and the terms of
    each polynomial, an even number."""

    function: Callable[[Decimal], Decimal]
    width: Decimal
    terms: int

    def rows(self, count: int) -> tuple[tuple[Decimal, ...], ...]:
        """For each term, lowest first, its coefficients in all pieces; f(c) is the first one."""
        with localcontext(prec=DIGITS):
            pieces = [self._piece(self.width * number) for number in range(count)]
        return tuple(zip(*pieces, strict=True))

    def _piece(self, centre: Decimal) -> list[Decimal]:
        low, high = (-self.width / 2 if centre else Decimal(0)), self.width / 2
        middle, radius = (low + high) / 2, (high - low) / 2
        points = [middle + radius * Decimal(cos(pi * (2 * k + 1) / (2 * self.terms))) for k in range(self.terms)]
        at = self.function(centre)
        return [at, *through(points, [(self.function(centre + d) - at) / d - 1 for d in points])]


def through(points: Sequence[Decimal], values: Sequence[Decimal]) -> list[Decimal]:
    """The coefficients, lowest first, of the polynomial with these values, by Newton's divided differences."""
    terms, differences = len(points), list(values)
    for order in range(1, terms):
        for k in range(terms - 1, order - 1, -1):
            differences[k] = (differences[k] - differences[k - 1]) / (points[k] - points[k - order])
    coefficients = [Decimal(0)]
    for point, difference in zip(reversed(points), reversed(differences), strict=True):
        shifted = [Decimal(0), *coefficients]
        coefficients = [s - point * c for s, c in zip(shifted, [*coefficients, Decimal(0)], strict=True)]
        coefficients[0] += difference
    return coefficients[:terms]


def tanh(x: Decimal) -> Decimal:
    power = (2 * x).exp()
    return (power - 1) / (power + 1)


def erf(x: Decimal) -> Decimal:
    """By its series, whose terms cancel each other less than there are digits."""
    term = total = x
    n = 0
    while abs(term) > Decimal(10) ** (5 - DIGITS):
        n += 1
        term *= -x * x / n
        total += term / (2 * n + 1)
    return 2 * total / PI.sqrt()
