"""The derivation of the constants in `codegen.elementary.constants` and its neighbours, computed with 60 digits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, getcontext
from itertools import zip_longest
from math import cos, pi

import numpy as np

from codegen.elementary import pieces
from codegen.elementary.exponentials import SPLIT

getcontext().prec = 60
LN2, LN10 = Decimal(2).ln(), Decimal(10).ln()


def exp_quotient(r: Decimal) -> Decimal:
    """(e^r - 1 - r)/r^2."""
    return (r.exp() - 1 - r) / r**2 if abs(r) > Decimal("1e-15") else Decimal("0.5")


def chebyshev(count: int, low: Decimal, high: Decimal) -> list[Decimal]:
    """The Chebyshev points of a range."""
    centre, radius = (low + high) / 2, (high - low) / 2
    return [centre + radius * Decimal(cos(pi * (2 * k + 1) / (2 * count))) for k in range(count)]


def interpolated(function: Callable[[Decimal], Decimal], terms: int, low: Decimal, high: Decimal) -> list[Decimal]:
    """Coefficients, lowest first, of the polynomial that interpolates a function at the Chebyshev points of a range."""
    return through(function, chebyshev(terms, low, high))


def through(function: Callable[[Decimal], Decimal], points: Sequence[Decimal]) -> list[Decimal]:
    """Coefficients, lowest first, of the polynomial that has a function's values at some points."""
    return pieces.through(points, list(map(function, points)))


def exp_coefficients(terms: int, powers: int = 1) -> tuple[float, ...]:
    """q's for |r| up to ln(2)/2, or where 2 to the power of multiples of 1/powers is known, to a part of that."""
    return tuple(map(float, interpolated(exp_quotient, terms, -LN2 / 2 / powers, LN2 / 2 / powers)))


def ln2_parts(mantissa: int, exponent_bits: int) -> tuple[float, float]:
    """ln 2 in two parts: few enough bits that a product with any exponent is exact, and the rest."""
    unit = Decimal(2) ** (mantissa + 1 - exponent_bits - 1)
    high = Decimal(int(LN2 * unit)) / unit
    return float(high), float(LN2 - high)


def halves(number: Decimal, kind: str) -> tuple[float, float]:
    """A number in two parts: the nearest of a type, and the rest."""
    high = float(np.dtype(kind).type(float(number)))
    return high, float(np.dtype(kind).type(float(number - Decimal(high))))


SQRT2 = Decimal(2).sqrt()
LOG_RANGE = (Decimal(0), ((SQRT2 - 1) / (SQRT2 + 1)) ** 2)
"""The squares of s = f/(2 + f) for 1 + f from sqrt(1/2) to sqrt(2)."""


def log_quotient(z: Decimal) -> Decimal:
    """(ln((1 + s)/(1 - s)) - 2s)/(s*z), where s^2 = z."""
    s = z.sqrt()
    return (((1 + s) / (1 - s)).ln() - 2 * s) / (s * z) if z > Decimal("1e-12") else Decimal(2) / 3


def log_coefficients(terms: int) -> tuple[float, ...]:
    return tuple(map(float, interpolated(log_quotient, terms, *LOG_RANGE)))


def log1p_quotient(f: Decimal) -> Decimal:
    """(ln(1 + f) - f)/f^2."""
    return ((1 + f).ln() - f) / f**2 if abs(f) > Decimal("1e-15") else -Decimal(1) / 2


ROOTS_OF_2 = (1 / SQRT2 - 1, SQRT2 - 1)
"""f for 1 + f from sqrt(1/2) to sqrt(2)."""


def log1p_coefficients(terms: int) -> tuple[float, ...]:
    """Errors are multiplied by f: the Chebyshev points for one term more are used but for that next to 0."""
    points = sorted(chebyshev(terms + 1, *ROOTS_OF_2), key=abs)[1:]
    return tuple(map(float, through(log1p_quotient, points)))


def log1p_error(coefficients: Sequence[float], ends: tuple[Decimal, Decimal] = ROOTS_OF_2) -> float:
    """The greatest error of f + f^2 p(f) as ln(1 + f), relative to it."""
    low, high = ends
    points = [low + (high - low) * step / 400 for step in range(401)]
    return float(max(abs((f + f * f * value(coefficients, f)) / (1 + f).ln() - 1) for f in points if f))


def part_ends(bits: int) -> tuple[Decimal, Decimal]:
    """r for the parts of [3/4, 1) and of [1, 3/2) next to 1."""
    return -(Decimal(2) ** -(bits + 1)), Decimal(2) ** -bits


def part_coefficients(terms: int, bits: int) -> tuple[float, ...]:
    """p's for these r."""
    return tuple(map(float, interpolated(log1p_quotient, terms, *part_ends(bits))))


def part_error(coefficients: Sequence[float], bits: int) -> float:
    return log1p_error(coefficients, part_ends(bits))


def log_error(coefficients: Sequence[float]) -> float:
    """The greatest error of 2s + s*z*q(z) as ln((1 + s)/(1 - s)), relative to it."""
    points = [LOG_RANGE[1] * step / 200 for step in range(1, 201)]
    return float(max(abs(value(coefficients, z) - log_quotient(z)) * z / (2 + z * log_quotient(z)) for z in points))


def pow_quotient(z: Decimal) -> Decimal:
    """(ln((1 + s)/(1 - s)) - 2s - 2/3 s*z)/(s*z^2), where s^2 = z."""
    return (log_quotient(z) - Decimal(2) / 3) / z if z > Decimal("1e-12") else Decimal(2) / 5


def pow_coefficients(terms: int) -> tuple[float, ...]:
    return tuple(map(float, interpolated(pow_quotient, terms, *LOG_RANGE)))


def pow_error(coefficients: Sequence[float]) -> float:
    """The greatest error of 2s + s*(2/3 z + z^2 q(z)) as ln((1 + s)/(1 - s)), relative to 2s."""
    points = [LOG_RANGE[1] * step / 200 for step in range(1, 201)]
    return float(max(abs(value(coefficients, z) - pow_quotient(z)) * z * z / 2 for z in points))


def two_thirds() -> tuple[float, float]:
    """2/3 in two parts: 26 bits, and the rest."""
    high = Decimal(2**27 // 3) / 2**26
    return float(high), float(Decimal(2) / 3 - high)


PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803")


def erf(x: Decimal) -> Decimal:
    """2/sqrt(pi) e^-z (x + 2/3 x^3 + 4/15 x^5 + …), z = x^2, whose terms are all positive."""
    term = total = x
    number = 0
    while abs(term) > abs(total) * Decimal(10) ** -58:
        number += 1
        term *= 2 * x * x / (2 * number + 1)
        total += term
    return 2 / PI.sqrt() * (-x * x).exp() * total


def erf_quotient(z: Decimal) -> Decimal:
    """erf(x)/x - 1, where x^2 = z."""
    x = max(z, Decimal("1e-40")).sqrt()
    return erf(x) / x - 1


def erf_coefficients(terms: int, parting: float) -> tuple[float, ...]:
    return tuple(map(float, interpolated(erf_quotient, terms, Decimal(0), Decimal(parting) ** 2)))


def erf_error(coefficients: Sequence[float], parting: float) -> float:
    """The greatest relative error of x + x*p(z) as erf, up to `parting`."""
    points = [Decimal(parting) ** 2 * step / 200 for step in range(1, 201)]
    return float(max(abs((1 + value(coefficients, z)) / (1 + erf_quotient(z)) - 1) for z in points))


def exponent_quotient(x: Decimal) -> Decimal:
    """-log2(1 - erf(x))/x."""
    return -(1 - erf(x)).ln() / LN2 / x


def exponent_coefficients(terms: int, parting: float, fitted: float) -> tuple[float, ...]:
    return tuple(map(float, interpolated(exponent_quotient, terms, Decimal(parting), Decimal(fitted))))


def exponent_error(coefficients: Sequence[float], parting: float, whole: float) -> float:
    """The greatest error of 2^-(x*t(x)) as 1 - erf(x), absolute."""
    points = [Decimal(parting) + (Decimal(whole) - Decimal(parting)) * step / 60 for step in range(61)]
    return float(max(abs((-x * value(coefficients, x) * LN2).exp() - (1 - erf(x))) for x in points))


def power_quotient(f: Decimal) -> Decimal:
    """(2^f - 1)/f."""
    return ((f * LN2).exp() - 1) / f if abs(f) > Decimal("1e-15") else LN2


def power_coefficients(terms: int) -> tuple[float, ...]:
    return tuple(map(float, interpolated(power_quotient, terms, Decimal("-0.5"), Decimal("0.5"))))


def power_error(coefficients: Sequence[float]) -> float:
    """The greatest error of 1 + f*p(f) as 2^f, for |f| up to 1/2, relative."""
    points = [Decimal(step) / 100 for step in range(-50, 51)]
    return float(max(abs((1 + f * value(coefficients, f)) / (f * LN2).exp() - 1) for f in points))


def tail_range(centre: float, flat: float) -> tuple[Decimal, Decimal]:
    """(x - centre)/(x + 2) at 1 and at `flat`."""
    return (1 - Decimal(centre)) / 3, (Decimal(flat) - Decimal(centre)) / (Decimal(flat) + 2)


def tail(t: Decimal, centre: float) -> tuple[Decimal, Decimal]:
    """(1 - erf(x)) e^(x^2) and x, where t = (x - centre)/(x + 2)."""
    x = (Decimal(centre) + 2 * t) / (1 - t)
    return (1 - erf(x)) * (x * x).exp(), x


def tail_coefficients(terms: int, centre: float, flat: float) -> tuple[float, ...]:
    return tuple(map(float, interpolated(lambda t: tail(t, centre)[0], terms, *tail_range(centre, flat))))


def tail_error(coefficients: Sequence[float], centre: float, flat: float) -> float:
    """The greatest error of e^-(x^2) q(t) as 1 - erf(x), absolute: erf is almost 1."""
    low, high = tail_range(centre, flat)
    points = [low + (high - low) * step / 200 for step in range(201)]
    exact = [tail(t, centre) for t in points]
    found = [abs(value(coefficients, t) - q) * (-x * x).exp() for t, (q, x) in zip(points, exact, strict=True)]
    return float(max(found))


def atan(x: Decimal) -> Decimal:
    """x - x^3/3 + x^5/5 - … of a small number, after halving the angle."""
    doublings = 0
    while x > Decimal("0.01"):
        x, doublings = x / (1 + (1 + x * x).sqrt()), doublings + 1
    power = total = x
    number = 1
    while abs(power) > Decimal(10) ** -58:
        power, number = -power * x * x, number + 2
        total += power / number
    return total * 2**doublings


def atan_quotient(z: Decimal) -> Decimal:
    """(atan(t)/t - 1)/z, where t^2 = z."""
    return (atan(z.sqrt()) / z.sqrt() - 1) / z if z > Decimal("1e-12") else -Decimal(1) / 3


def atan_coefficients(terms: int) -> tuple[float, ...]:
    return tuple(map(float, interpolated(atan_quotient, terms, Decimal(0), Decimal(1))))


def atan_error(coefficients: Sequence[float]) -> float:
    """The greatest error of t + t*z*p(z) as atan(t), relative to t, up to 1."""
    points = [Decimal(step) / 100 for step in range(1, 101)]
    return float(max(abs(value(coefficients, z) - atan_quotient(z)) * z for z in points))


def sinh_quotient(z: Decimal) -> Decimal:
    """(sinh(x)/x - 1)/z, where x^2 = z."""
    x = z.sqrt()
    return ((x.exp() - (-x).exp()) / (2 * x) - 1) / z if z > Decimal("1e-12") else Decimal(1) / 6


def sinh_coefficients(terms: int) -> tuple[float, ...]:
    return tuple(map(float, interpolated(sinh_quotient, terms, Decimal(0), Decimal(1))))


def sinh_error(coefficients: Sequence[float]) -> float:
    """The greatest error of x + x*z*p(z) as sinh(x), relative to it, up to 1."""
    points = [Decimal(step) / 100 for step in range(1, 101)]
    return float(max(abs(value(coefficients, z) - sinh_quotient(z)) * z / (1 + z * sinh_quotient(z)) for z in points))


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


def exp_error(coefficients: Sequence[float], powers: int = 1) -> float:
    """The greatest relative error of 1 + r + r^2 q(r) as e^r."""
    points = [LN2 / 2 / powers * step / 500 for step in range(-500, 501)]
    return float(max(abs((1 + r + r * r * value(coefficients, r)) / r.exp() - 1) for r in points))


def tanh_error(above: Sequence[int], below: Sequence[int]) -> float:
    """The greatest relative error of the fraction as tanh, on the range where it is used."""
    points = [Decimal(SPLIT) * step / 200 for step in range(1, 201)]
    found = [x - x**3 * value(above, x * x) / value(below, x * x) for x in points]
    exact = [((2 * x).exp() - 1) / ((2 * x).exp() + 1) for x in points]
    return float(max(abs(a / b - 1) for a, b in zip(found, exact, strict=True)))


def series(x: Decimal, first: int) -> Decimal:
    """x^n/n! - x^(n+2)/(n+2)! + … from n = `first`: the sine from 1, the cosine from 0."""
    term = total = x**first if first else Decimal(1)
    number = first
    while abs(term) > abs(total) * Decimal(10) ** -58:
        term *= -x * x / ((number + 1) * (number + 2))
        number += 2
        total += term
    return total


QUARTER, HALF = (PI / 4) ** 2, (PI / 2) ** 2
"""The greatest r^2 of what is left after multiples of pi/2, and of pi."""


def sine_quotient(z: Decimal) -> Decimal:
    """(sin(r)/r - 1)/z, where r^2 = z."""
    return (series(z.sqrt(), 1) / z.sqrt() - 1) / z if z > Decimal("1e-12") else -Decimal(1) / 6


def cosine_quotient(z: Decimal) -> Decimal:
    """(cos(r) - 1 + z/2)/z^2, where r^2 = z."""
    return (series(z.sqrt(), 0) - 1 + z / 2) / z**2 if z > Decimal("1e-12") else Decimal(1) / 24


def tangent_quotient(z: Decimal) -> Decimal:
    """(tan(r)/r - 1)/z, where r^2 = z."""
    r = z.sqrt()
    return (series(r, 1) / series(r, 0) / r - 1) / z if z > Decimal("1e-12") else Decimal(1) / 3


def periodic_coefficients(quotient: Callable[[Decimal], Decimal], terms: int) -> tuple[float, ...]:
    return tuple(map(float, interpolated(quotient, terms, Decimal(0), QUARTER)))


def wide_sine_coefficients(terms: int) -> tuple[float, ...]:
    """-1/6 as a float, and coefficients of the rest, which is that of the rounding alone for small z."""
    first = Decimal(-1 / 6)
    others = interpolated(lambda z: (sine_quotient(z) - first) / z, terms - 1, Decimal("0.5"), HALF)
    return tuple(map(float, (first, *others)))


def wide_sine_error(coefficients: Sequence[float]) -> float:
    """The greatest error of r + r z s(z), z = r^2, relative to sin(r), for r up to pi/2."""
    points = [HALF * step / 200 for step in range(1, 201)]
    wrong = ((value(coefficients, z) - sine_quotient(z)) * z / (1 + z * sine_quotient(z)) for z in points)
    return float(max(map(abs, wrong)))


def periodic_error(coefficients: Sequence[float], quotient: Callable[[Decimal], Decimal], power: int) -> float:
    """The greatest error of the polynomial times z^power, relative as sin(r)/r and cos(r) are about 1."""
    points = [QUARTER * step / 200 for step in range(1, 201)]
    return float(max(abs(value(coefficients, z) - quotient(z)) * z**power for z in points))


def quarters() -> tuple[float, float, float]:
    """pi/2 in three parts: 33 bits, 33 bits, and the rest."""
    first = Decimal(int(PI / 2 * 2**32)) / 2**32
    second = Decimal(int((PI / 2 - first) * 2**65)) / 2**65
    return float(first), float(second), float(PI / 2 - first - second)


def float_quarters() -> tuple[float, float, float]:
    """pi/2 in three parts: two floats, and the rest."""
    first, _ = halves(PI / 2, "f4")
    second, _ = halves(PI / 2 - Decimal(first), "f4")
    return first, second, float(PI / 2 - Decimal(first) - Decimal(second))
