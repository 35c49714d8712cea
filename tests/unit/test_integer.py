"""Integer expressions and conditions: the laws of a ring, what is simplified, and texts with the same values."""

from __future__ import annotations

from math import prod
from random import Random
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.ir.integer import (
    HELPERS,
    PYTHON,
    Compare,
    Connected,
    Int,
    Linear,
    Test,
    choice,
    compare,
    element_count,
    floor_quotient,
    holds,
    maximum,
    minimum,
    parts_of,
    product,
    quotient,
    remainder,
    replaced,
)
from codegen.toolchain.build import load

NAMES = ("K", "M", "N")
K, M, N = (cast("Int", Linear.name(name)) for name in NAMES)
SYMBOLS = ("==", "!=", "<", "<=", ">", ">=")

points = st.fixed_dictionaries({name: st.integers(-9, 20) for name in NAMES})
affine = st.builds(
    lambda factors, constant: Linear.make(zip(NAMES, factors, strict=True), constant),
    st.tuples(*[st.integers(-4, 4)] * len(NAMES)),
    st.integers(-9, 9),
)


def larger(smaller: st.SearchStrategy[Int]) -> st.SearchStrategy[Int]:
    """What is made of smaller expressions. Dividends of `/` and `%` are not negative."""
    divisors, counts = st.integers(1, 7), smaller.map(lambda value: maximum(0, value))
    tests = st.builds(Compare, smaller, st.sampled_from(SYMBOLS), smaller)
    joined = st.builds(Connected, st.sampled_from(("&&", "||")), st.tuples(tests, tests))
    return st.one_of(
        st.builds(lambda a, b: a + b, smaller, smaller),
        st.builds(lambda a, b: a - b, smaller, smaller),
        st.builds(lambda a, b: a * b, smaller, smaller),
        st.lists(smaller, min_size=1, max_size=3).map(product),
        st.lists(smaller, min_size=1, max_size=3).map(lambda values: minimum(*values)),
        st.lists(smaller, min_size=1, max_size=3).map(lambda values: maximum(*values)),
        st.builds(floor_quotient, smaller, divisors),
        st.builds(lambda a, by, b: a * 3 - floor_quotient(a, by) * by * 3 + b, smaller, divisors, smaller),
        st.builds(quotient, counts, divisors),
        st.builds(remainder, counts, divisors),
        st.builds(choice, tests | joined, smaller, smaller),
        st.builds(lambda test: choice(test, 1, 0), tests | joined),
    )


integers = st.recursive(affine.map(lambda value: cast("Int", value)), larger, max_leaves=6)


@given(integers, integers, integers, points)
def test_the_laws_of_a_ring_hold_for_the_values(a: Int, b: Int, c: Int, point: dict[str, int]) -> None:
    x, y, z = (value.evaluate(point) for value in (a, b, c))
    assert (a + b).evaluate(point) == x + y
    assert (a - b).evaluate(point) == x - y
    assert (a * b).evaluate(point) == product([a, b]).evaluate(point) == x * y
    assert (a * (b + c)).evaluate(point) == (a * b + a * c).evaluate(point) == x * (y + z)


@given(affine, affine, affine)
def test_the_laws_of_a_ring_hold_as_equality_of_affine_values(a: Int, b: Int, c: Int) -> None:
    assert a + b == b + a
    assert a * b == b * a
    assert (a + b) + c == a + (b + c)
    assert (a * b) * c == a * (b * c)
    assert a * (b + c) == a * b + a * c
    assert a + 0 == a * 1 == a
    assert a * 0 == a - a == Linear()


@given(st.lists(integers, min_size=1, max_size=4), st.integers(1, 7), points)
def test_what_is_simplified_has_the_same_value(values: list[Int], divisor: int, point: dict[str, int]) -> None:
    found = [value.evaluate(point) for value in values]
    assert minimum(*values).evaluate(point) == min(found)
    assert maximum(*values).evaluate(point) == max(found)
    assert product(values).evaluate(point) == prod(found)
    assert element_count(values).evaluate({n: abs(v) for n, v in point.items()}) == prod(
        max(0, value.evaluate({n: abs(v) for n, v in point.items()})) for value in values
    )
    assert floor_quotient(values[0], divisor).evaluate(point) == found[0] // divisor
    if found[0] >= 0 or found[0] % divisor == 0:
        assert quotient(values[0], divisor).evaluate(point) == found[0] // divisor
        assert remainder(values[0], divisor).evaluate(point) == found[0] % divisor


@given(integers, affine, points)
def test_substitution_is_that_of_the_values(value: Int, other: Int, point: dict[str, int]) -> None:
    assert value.substitute({"M": other}).evaluate(point) == value.evaluate(point | {"M": other.evaluate(point)})
    assert value.renamed({"M": "m"}).evaluate(point | {"m": point["M"]}) == value.evaluate(point)
    assert "M" not in value.renamed({"M": "m"}).names


@given(integers, points)
def test_a_factor_splits_off(value: Int, point: dict[str, int]) -> None:
    linear = value * N + K
    assert linear.factor("N") * N + (linear - linear.factor("N") * N) == linear
    assert (affine_part := linear.part(frozenset({"N"}))).names >= linear.factor("N").names - {"N"}
    assert (linear - affine_part).part(frozenset({"N"})) == Linear()


@settings(max_examples=400)
@given(integers | integers.map(lambda value: -value), integers, points)
def test_python_text_has_the_same_value(value: Int, other: Int, point: dict[str, int]) -> None:
    assert eval(PYTHON.integer(value), {}, dict(point)) == value.evaluate(point)
    assert eval(f"2*{PYTHON.primary(value)}", {}, dict(point)) == 2 * value.evaluate(point)
    for test in (Compare(value, "<", other), Connected("&&", (compare(value, "<=", other), Compare(other, "!=", N)))):
        assert bool(eval(PYTHON.test(test), {}, dict(point))) == holds(test, point)
        assert holds(replaced(test, {"M": N}), point) == holds(test, point | {"M": point["N"]})
        assert all(holds(part, point) for part in parts_of(test)) == holds(test, point)


def drawn(rng: Random, depth: int) -> Int:
    """A random expression, whose divisions are of numbers that are not negative."""
    if not depth:
        return cast("Int", Linear.make(zip(NAMES, rng.choices(range(-3, 4), k=3), strict=True), rng.randrange(-9, 9)))
    a, b, c = (drawn(rng, depth - rng.randrange(1, depth + 1)) for _ in range(3))
    test: Test = Compare(a, rng.choice(SYMBOLS), b)
    if rng.random() < 0.5:
        test = Connected(rng.choice(("&&", "||")), (test, Connected("||", (Compare(b, "<", c), Compare(c, "==", a)))))
    divisor = rng.randrange(1, 7)
    made = (
        lambda: a + b,
        lambda: a - b * 3,
        lambda: product([a, b]),
        lambda: a * b,
        lambda: minimum(a, b, c),
        lambda: maximum(a, b),
        lambda: floor_quotient(a, divisor),
        lambda: quotient(maximum(0, a), divisor),
        lambda: -quotient(maximum(0, a), divisor),
        lambda: b - remainder(maximum(0, a), divisor),
        lambda: choice(test, b, c),
        lambda: choice(test, 1, 0) + b,
    )
    return rng.choice(made)()


def test_c_text_has_the_same_value() -> None:
    rng = Random(1)
    expressions = [drawn(rng, depth % 4) for depth in range(400)]
    heads = [f"int64_t f{n}(int64_t K, int64_t M, int64_t N)" for n in range(len(expressions))]
    lines = ["#include <stdint.h>", *HELPERS.values()]
    lines += [f"{head} {{ return {text}; }}" for head, text in zip(heads, expressions, strict=True)]
    library = load("\n".join(lines) + "\n", "".join(f"{head};\n" for head in heads), ("-fwrapv", "-Wno-unused"))
    for number, expression in enumerate(expressions):
        for _ in range(20):
            point = {name: rng.randrange(-20, 40) for name in NAMES}
            assert getattr(library.lib, f"f{number}")(*point.values()) == expression.evaluate(point), str(expression)


@pytest.mark.parametrize(
    ("value", "text", "python"),
    [
        (Linear(), "0", "0"),
        (Linear.of(-3), "-3", "-3"),
        (M * 2 - 1, "2*M - 1", "2*M - 1"),
        (M * N * -1 + 7, "7 - M*N", "7 - M*N"),
        ((M + 1) * N, "M*N + N", "M*N + N"),
        (product([M + 1, N, 4]), "4*(M + 1)*N", "4*(M + 1)*N"),
        (element_count([M, N - 1, 4]), "4*M*imax(0, N - 1)", "4*M*max(0, N - 1)"),
        (element_count([M, -2]), "0", "0"),
        (minimum(M, N, 3), "imin(imin(M, N), 3)", "min(M, N, 3)"),
        (minimum(M, M + 1, minimum(N, M)), "imin(M, N)", "min(M, N)"),
        (maximum(M, M + 1), "M + 1", "M + 1"),
        (floor_quotient(M * 6 + N, 6), "M + floord(N, 6)", "M + N // 6"),
        (floor_quotient(M * 6 + 7, 6), "M + 1", "M + 1"),
        (quotient(M * 13 + 13, 14), "M - floord(M, 14)", "M - M // 14"),
        (M + 2 - floor_quotient(M + 1, 2) * 2, "M - 2*floord(M + 1, 2) + 2", "(M + 1) % 2 + 1"),
        (N * 2 - floor_quotient(M, 4) * 4, "2*N - 4*floord(M, 4)", "2*N - 4*(M // 4)"),
        (quotient(M + 5, 6) * 6, "6*((M + 5)/6)", "6*((M + 5) // 6)"),
        (N * 2 - quotient(M + 5, 6), "2*N - (M + 5)/6", "2*N - (M + 5) // 6"),
        (-quotient(M + 5, 6) - 1, "-((M + 5)/6) - 1", "-((M + 5) // 6) - 1"),
        (-M + 2, "2 - M", "2 - M"),
        (N - remainder(M, 6), "N - M % 6", "N - M % 6"),
        (quotient(M, 1), "M", "M"),
        (remainder(M * 6 + 8, 6), "2", "2"),
        (remainder(M + 1, 6), "(M + 1) % 6", "(M + 1) % 6"),
        (choice(Compare(M, "<", N), 1, 0), "(M < N)", "(M < N)"),
        (choice(Compare(M, "<", N), M, N) - 1, "(M < N ? M : N) - 1", "(M if M < N else N) - 1"),
        (choice(Compare(M, "<", N), M, M), "M", "M"),
    ],
)
def test_texts(value: Int, text: str, python: str) -> None:
    assert (str(value), PYTHON.integer(value)) == (text, python)


def test_texts_of_conditions() -> None:
    one, two = compare(M, "<=", N - 1), Compare(M, "==", Linear())
    assert str(one) == "M < N"
    assert str(Connected("&&", (one, Connected("||", (one, two))))) == "M < N && (M < N || M == 0)"
    assert PYTHON.test(Connected("||", (one, two))) == "M < N or M == 0"


def test_a_number_must_be_an_integer() -> None:
    for wrong in (lambda: M * cast("int", 1.5), lambda: M + cast("int", 0.5), lambda: Linear.of(cast("int", 2.0))):
        with pytest.raises(TypeError):
            wrong()
