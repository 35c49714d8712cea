"""The derivation of the constants in `codegen.elementary`, computed with 60 digits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, getcontext
from itertools import zip_longest
from math import cos, pi

from codegen.elementary import SPLIT

getcontext().prec = 60
LN2 = Decimal(2).ln()


def exp_quotient(r: Decimal) -> Decimal:
    """(e^r - 1 - r)/r^2."""
    return (r.exp() - 1 - r) / r**2 if abs(r) > Decimal("1e-15") else Decimal("0.5")


def interpolated(function: Callable[[Decimal], Decimal], terms: int, radius: Decimal) -> list[Decimal]:
    """Coefficients, lowest first, of the polynomial that interpolates a function at Chebyshev points."""
    points = [radius * Decimal(cos(pi * (2 * k + 1) / (2 * terms))) for k in range(terms)]
    differences = [function(x) for x in points]
    for order in range(1, terms):
        for k in range(terms - 1, order - 1, -1):
            differences[k] = (differences[k] - differences[k - 1]) / (points[k] - points[k - order])
    coefficients = [Decimal(0)]
    for point, difference in zip(reversed(points), reversed(differences), strict=True):
        shifted = [Decimal(0), *coefficients]
        coefficients = [s - point * c for s, c in zip(shifted, [*coefficients, Decimal(0)], strict=True)]
        coefficients[0] += difference
    return coefficients[:terms]


def exp_coefficients(terms: int) -> tuple[float, ...]:
    return tuple(map(float, interpolated(exp_quotient, terms, LN2 / 2)))


def ln2_parts(mantissa: int, exponent_bits: int) -> tuple[float, float]:
    """ln 2 in two parts: few enough bits that a product with any exponent is exact, and the rest."""
    unit = Decimal(2) ** (mantissa + 1 - exponent_bits - 1)
    high = Decimal(int(LN2 * unit)) / unit
    return float(high), float(LN2 - high)


def tanh_fraction(depth: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """`above` and `below` of `tanh x = x - x*z*above/below`, from Lambert's continued fraction ended at `depth`.

    x/(1 + z/w) is x - x*z/(w + z), where w = 3 + z/(5 + z/(7 + …)).
    """
    over: Sequence[int] = (depth,)
    under: Sequence[int] = (1,)
    for number in range(depth - 2, 1, -2):
        over, under = _sum([number * c for c in over], (0, *under)), over
    return tuple(under), _sum(over, (0, *under))


def _sum(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip_longest(first, second, fillvalue=0))


def value(coefficients: Sequence[float | Decimal], x: Decimal) -> Decimal:
    """A polynomial's value."""
    total = Decimal(0)
    for coefficient in reversed(coefficients):
        total = total * x + Decimal(coefficient)
    return total


def exp_error(coefficients: Sequence[float]) -> float:
    """The greatest relative error of 1 + r + r^2 q(r) as e^r."""
    points = [LN2 / 2 * step / 500 for step in range(-500, 501)]
    return float(max(abs((1 + r + r * r * value(coefficients, r)) / r.exp() - 1) for r in points))


def tanh_error(above: Sequence[int], below: Sequence[int]) -> float:
    """The greatest relative error of the fraction as tanh, on the range where it is used."""
    points = [Decimal(SPLIT) * step / 200 for step in range(1, 201)]
    found = [x - x**3 * value(above, x * x) / value(below, x * x) for x in points]
    exact = [((2 * x).exp() - 1) / ((2 * x).exp() + 1) for x in points]
    return float(max(abs(a / b - 1) for a, b in zip(found, exact, strict=True)))
