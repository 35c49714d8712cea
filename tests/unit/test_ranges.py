"""What is known of expressions' values: simpler ones have the same values, and intervals hold them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen.ir.integer import (
    PYTHON,
    Compare,
    Connected,
    Int,
    Linear,
    Op,
    Select,
    Test,
    choice,
    floor_quotient,
    holds,
    maximum,
    minimum,
    walk,
)
from codegen.ir.loop_ir import For, If, Run
from codegen.ir.ranges import UNKNOWN, Ranges, facts, simplified

NAMES = {"N": (0, UNKNOWN), "i": (0, 9), "j": (-3, 5), "k": (4, 4)}
KNOWN = Ranges(NAMES)
VALUES = {"N": (0, 1, 7, 20), "i": (0, 1, 5, 9), "j": (-3, -1, 0, 5), "k": (4,)}
POINTS = [dict(zip(VALUES, point, strict=True)) for point in product(*VALUES.values())]
i, j, k, N = (Linear.name(name) for name in "ijkN")


def linear(inner: st.SearchStrategy[Int]) -> st.SearchStrategy[Int]:
    terms = st.lists(st.tuples(inner, st.integers(-3, 3)), min_size=1, max_size=3)
    return st.builds(
        lambda terms, constant: sum((value * factor for value, factor in terms), Linear((), constant)),
        terms,
        st.integers(-30, 30),
    )


def remainder_of(value: Int, divisor: int) -> Int:
    """`value % divisor` where that is the same in C: of a number that is not negative."""
    low, _ = KNOWN.interval(value)
    ahead = 0 if low >= -UNKNOWN // 2 and low >= 0 else None
    return Linear(((Op("%", (value, Linear.of(divisor))), 1),)) if ahead == 0 else value


def grown(inner: st.SearchStrategy[Int]) -> st.SearchStrategy[Int]:
    pairs = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(
        linear(inner),
        st.builds(lambda values: minimum(*values), pairs),
        st.builds(lambda values: maximum(*values), pairs),
        st.builds(floor_quotient, inner, st.integers(1, 9)),
        st.builds(remainder_of, inner, st.integers(1, 9)),
        st.builds(choice, truths(inner), inner, inner),
    )


def truths(inner: st.SearchStrategy[Int]) -> st.SearchStrategy[Test]:
    compared = st.builds(Compare, inner, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), inner)
    parts = st.lists(compared, min_size=2, max_size=3).map(tuple)
    return st.one_of(compared, st.builds(Connected, st.sampled_from(["&&", "||"]), parts))


EXPRESSIONS = st.recursive(st.sampled_from([i, j, k, N, Linear.of(7)]), grown, max_leaves=6)


def is_the_same_in_c(value: Int, point: dict[str, int]) -> bool:
    """Whether each quotient and remainder is of a number that is not negative, or that is a multiple."""
    divided = [atom.args for atom in walk(value) if isinstance(atom, Op) and atom.name in ("/", "%")]
    pairs = [(dividend.evaluate(point), divisor.constant) for dividend, divisor in divided]
    return all(dividend >= 0 or dividend % divisor == 0 for dividend, divisor in pairs)


@given(EXPRESSIONS)
def test_a_simpler_expression_has_the_same_value(value: Int) -> None:
    made = KNOWN.value(value)
    low, high = KNOWN.interval(value)
    for point in POINTS:
        expected = value.evaluate(point)
        assert made.evaluate(point) == expected
        assert low <= expected <= high
        if not any(isinstance(atom, Select) for atom in walk(value)):
            assert is_the_same_in_c(made, point)


@given(truths(EXPRESSIONS))
def test_a_simpler_condition_holds_where_it_does(test: Test) -> None:
    made, known = KNOWN.test(test), KNOWN.holds(test)
    for point in POINTS:
        assert holds(made, point) == holds(test, point)
        assert holds(test, point) or not known
        assert not (holds(test, point) and KNOWN.fails(test))


@given(truths(EXPRESSIONS))
def test_what_a_condition_says_is_the_condition(test: Test) -> None:
    said = list(facts(test))
    for point in POINTS:
        true = [fact.evaluate(point) > 0 if isinstance(fact, Linear) else holds(fact, point) for fact in said]
        assert all(true) == holds(test, point)


def test_a_loop_over_tiles_says_what_a_loop_inside_needs() -> None:
    """`i_tile < (N + 191)/192` that there is an i from 32*i_tile to before (N + 5)/6."""
    tile = Linear.name("i_tile")
    (around,) = facts(Compare(tile, "<", floor_quotient(N + 191, 192)))
    (inside,) = facts(Compare(tile * 32, "<", floor_quotient(N + 5, 6)))
    assert around == inside == N - tile * 192


@pytest.mark.parametrize(
    ("value", "simple"),
    [
        (floor_quotient(N + 63, 64), "(N + 63) // 64"),
        (Linear.of(27) - Linear(((Op("%", (Linear.of(783) - i, Linear.of(28))), 1),)), "i"),
        (Linear.of(6) - Linear(((Op("%", (Linear.of(13) - i, Linear.of(7))), 1),)), "i % 7"),
        (floor_quotient(N, 7) * 14 + remainder_of(N, 7) * 2 + j, "2*N + j"),
        (floor_quotient(N, 7) * 14 + remainder_of(N, 7), "N % 7 + 14*(N // 7)"),
        (minimum(i, Linear.of(9)), "i"),
        (maximum(j, -N - 3), "j"),
        (choice(Compare(i, "<", Linear.of(10)), j, N), "j"),
    ],
)
def test_values(value: Int, simple: str) -> None:
    assert PYTHON.integer(KNOWN.value(value)) == simple


@pytest.mark.parametrize(
    ("test", "simple"),
    [
        (Compare(Linear(), "<", floor_quotient(N + 63, 64)), "N > 0"),
        (Compare(N, ">=", Linear.of(1)), "N > 0"),
        (Compare(Linear.of(2), "<", floor_quotient(N, 7)), "N > 20"),
        (Compare(i * 32, "<", minimum(i * 32 + 32, N)), "32*i < N"),
        (Connected("&&", (Compare(i, ">=", Linear()), Compare(j, "==", Linear.of(2)))), "j == 2"),
    ],
)
def test_conditions(test: Test, simple: str) -> None:
    assert PYTHON.test(KNOWN.test(test)) == simple


def test_conditions_that_hold_or_never_do_are_gone() -> None:
    """`if 25*t < min(49, 25*t + 25)` for t below 2."""
    t = Linear.name("t")
    inner = If(Compare(t * 25, "<", minimum(Linear.of(49), t * 25 + 25)), Run("S", (t,)))
    made = simplified(For("t", Linear(), Compare(t, "<", Linear.of(2)), 1, inner), Ranges())
    assert isinstance(made, For)
    assert made.body == Run("S", (t,))
    never = If(Compare(t, ">", Linear.of(1)), Run("S", (t,)), inner)
    assert simplified(replace(made, body=never), Ranges()) == made
