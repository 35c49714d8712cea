"""Polynomials in sizes: the laws of a ring, by evaluation."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.affine import Affine
from poly.polynomial import Polynomial

NAMES = ("M", "N", "K")

monomials = st.lists(st.sampled_from(NAMES), max_size=3).map(lambda names: tuple(sorted(names)))
polynomials = st.dictionaries(monomials, st.integers(-4, 4), max_size=4).map(Polynomial.make)
points = st.fixed_dictionaries({name: st.integers(-3, 5) for name in NAMES})


def value(polynomial: Polynomial, point: dict[str, int]) -> int:
    return sum(c * prod(point[name] for name in monomial) for monomial, c in polynomial.terms)


@settings(max_examples=60)
@given(polynomials, polynomials, points)
def test_sums_and_products_are_those_of_the_values(a: Polynomial, b: Polynomial, point: dict[str, int]) -> None:
    assert value(a + b, point) == value(a, point) + value(b, point)
    assert value(a * b, point) == value(a, point) * value(b, point)


@settings(max_examples=60)
@given(polynomials, polynomials, polynomials)
def test_the_laws_of_a_ring_hold_as_equality_of_values(a: Polynomial, b: Polynomial, c: Polynomial) -> None:
    assert a + b == b + a
    assert a * b == b * a
    assert (a + b) + c == a + (b + c)
    assert (a * b) * c == a * (b * c)
    assert a * (b + c) == a * b + a * c
    assert a + 0 == a
    assert a * 1 == a
    assert a * 0 == Polynomial()
    assert a + a * -1 == Polynomial()


@settings(max_examples=60)
@given(polynomials, points)
def test_the_text_is_c_with_the_same_value(a: Polynomial, point: dict[str, int]) -> None:
    assert eval(str(a), {}, dict(point)) == value(a, point)


@settings(max_examples=60)
@given(polynomials, points)
def test_a_linear_name_splits_off(a: Polynomial, point: dict[str, int]) -> None:
    linear = Polynomial.make({m: c for m, c in a.terms if m.count("M") < 2})
    assert linear.coefficient("M") * "M" + linear.without("M") == linear
    assert "M" not in linear.without("M").names
    assert value(linear, point | {"M": 0}) == value(linear.without("M"), point)


@pytest.mark.parametrize(
    ("given_value", "text", "constant"),
    [
        (0, "0", 0),
        (-3, "-3", -3),
        ("M", "M", None),
        (Affine.name("M") * 2 - 1, "2*M - 1", None),
        (Polynomial.of("N") * "M" * -1 + 7, "-M*N + 7", None),
    ],
)
def test_values_of_every_kind(given_value: Polynomial | Affine | int | str, text: str, constant: int | None) -> None:
    polynomial = Polynomial.of(given_value)
    assert str(polynomial) == text
    assert polynomial.constant == constant
