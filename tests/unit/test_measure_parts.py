"""The parts of measuring that run no candidate: data, comparison, facts, and how many samples a comparison gets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import exp
from random import Random

import classic_nests
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.ir.integer import Affine
from codegen.ir.program import Buffer
from codegen.ir.signature import Signature
from microkernels.dtypes import DType, f32, f64, i32
from poly.analysis.facts import CALLS, DRIFT, facts
from poly.frontends.python import parse_text
from poly.frontends.source import Source
from poly.measure.data import GUARD, Arena, difference
from poly.measure.orders import Data
from poly.measure.trusted import Rows
from poly.search.significance import FIRST, LONG, LOOKS, STAGES, WORTH, beats, first_rounds, next_rounds


def data(dtype: DType = f32, fresh: frozenset[str] = frozenset(), delicate: bool = False, seed: int = 1) -> Data:
    square = (Affine.name("n"), Affine.name("n"))
    buffers = (
        Buffer("A", dtype, square, "in"),
        Buffer("C", dtype, square, "inout"),
        Buffer("D", dtype, (Affine.of(3),), "out"),
        Buffer("s", dtype, (), "scalar"),
    )
    return Data(Signature("nest", ("n",), buffers), (("n", 5),), seed, delicate, fresh)


def test_what_is_read_is_random_and_what_is_set_is_not_a_number() -> None:
    arena = Arena(data())
    arena.reset()
    assert arena.written == ("C", "D")
    assert np.isfinite(arena.values["A"]).all()
    assert np.isfinite(arena.values["C"]).all()
    assert np.isnan(arena.values["D"]).all()
    assert arena.values["s"] == 1.5
    fresh = Arena(data(fresh=frozenset({"C"})))
    fresh.reset()
    assert np.isnan(fresh.values["C"]).all()


def test_reset_gives_first_values_again() -> None:
    arena = Arena(data())
    arena.reset()
    first = arena.values["C"].copy()
    arena.values["C"][...] = 7
    arena.values["D"][...] = 7
    arena.restart()
    assert (arena.values["C"] == first).all()
    assert (arena.values["D"] == 7).all()
    arena.reset()
    assert np.isnan(arena.values["D"]).all()


@pytest.mark.parametrize("delicate", [False, True])
def test_wider_types_hold_the_same_values(delicate: bool) -> None:
    narrow, wide = Arena(data(f32, delicate=delicate)), Arena(data(f64, delicate=delicate))
    assert (narrow.values["A"] == wide.values["A"]).all()
    assert (narrow.values["A"] != Arena(data(f32, delicate=delicate, seed=2)).values["A"]).any()


def test_delicate_data_is_dominated_by_its_diagonal() -> None:
    values = Arena(data(delicate=True)).values["A"]
    diagonal = np.diag(values)
    assert (values > 0).all()
    assert (diagonal > values.sum(1) - diagonal).all()


@pytest.mark.parametrize("dtype", [f32, i32])
@pytest.mark.parametrize(("name", "offset"), [("A", -1), ("C", 25), ("D", 3)])
def test_a_write_beside_an_array_is_seen(dtype: DType, name: str, offset: int) -> None:
    arena = Arena(data(dtype))
    arena.reset()
    assert arena.overrun() == ""
    beside = np.ndarray((1,), arena.values[name].dtype, arena._memory[name], place(arena, name) + offset * dtype.size)
    beside[0] = 0
    assert arena.overrun() == name


def place(arena: Arena, name: str) -> int:
    """The bytes before an array in its memory."""
    return int(arena.values[name].ctypes.data - arena._memory[name].ctypes.data)


@pytest.mark.parametrize(("size", "unit", "starts"), [(5, 64, {16, 48}), (512, 4096, {16})])
def test_arrays_start_where_numpy_puts_its_own(size: int, unit: int, starts: set[int]) -> None:
    """They have guards of at least a page on either side."""
    arena = Arena(replace(data(), sizes=(("n", size),)))
    assert {arena.values[name].ctypes.data % unit for name in "AC"} == starts
    for name, memory in arena._memory.items():
        before = place(arena, name)
        assert before >= GUARD
        assert memory.nbytes - before - arena.values[name].nbytes >= GUARD


@pytest.mark.parametrize("length", [1, 100, 10_000])
def test_rounding_is_no_difference_and_a_missing_term_is(length: int) -> None:
    generator = np.random.default_rng(0)
    terms = generator.uniform(-1, 1, (length, 50)).astype(np.float32)
    expected = terms.sum(0, dtype=np.float64).astype(np.float32)
    in_turn = np.zeros(50, np.float32)
    for row in terms:
        in_turn += row
    assert difference("C", in_turn, expected, length) == ""
    in_turn[7] -= np.float32(0.5)
    assert difference("C", in_turn, expected, length).startswith("wrong result: C[7] is ")


def test_values_that_are_not_finite() -> None:
    """Nothing is asked where the trusted result has none; a candidate must have one where the trusted result has."""
    expected = np.array([[1, np.nan], [np.inf, 2]])
    assert difference("C", np.array([[1, 5.0], [np.nan, 2]]), expected, 1) == ""
    for wrong in (np.nan, np.inf):
        assert (
            difference("C", np.array([[1, 0], [0, wrong]]), expected, 1) == f"wrong result: C[1, 1] is {wrong}, not 2.0"
        )


def test_a_sum_may_be_infinite_in_another_order() -> None:
    """Its terms reach so far; a shorter one may not."""
    expected, found = np.array([1.5e308, 1]), np.array([np.inf, 1])
    assert difference("C", found, expected, 3) == ""
    assert difference("C", found, expected, 1) == "wrong result: C[0] is inf, not 1.5e+308"


def test_integers_are_equal_or_wrong() -> None:
    expected = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert difference("C", expected.copy(), expected, 1000) == ""
    assert difference("C", expected + np.eye(2, 3, dtype=np.int32), expected, 1000).startswith("wrong result: C[0, 0]")


def test_empty_arrays_are_equal() -> None:
    assert difference("C", np.zeros((0, 3)), np.zeros((0, 3)), 1) == ""


def test_rows_are_every_so_many_and_the_last() -> None:
    assert Rows("C", 1, 4).of(np.arange(20).reshape(2, 10)).tolist() == [[0, 4, 8, 9], [10, 14, 18, 19]]


@pytest.mark.parametrize(
    ("name", "sizes", "length", "delicate", "settable", "calls"),
    [
        ("gemm", {"M": 6, "N": 5, "K": 40}, 41, True, set(), DRIFT),
        ("dot", {"N": 40}, 40, False, set(), CALLS),
        ("cholesky", {"N": 20}, None, True, {"A"}, DRIFT),
        ("softmax", {"M": 4, "N": 30}, None, True, {"Y"}, DRIFT),
        ("ints", {"M": 4, "N": 30}, None, False, set(), CALLS),
        ("transpose", {"M": 4, "N": 30}, 1, False, set(), CALLS),
    ],
)
def test_facts(
    name: str, sizes: dict[str, int], length: int | None, delicate: bool, settable: set[str], calls: int
) -> None:
    found = facts(getattr(classic_nests, name).with_sizes(sizes))
    assert length in (None, found.length)
    assert (found.delicate, found.settable, found.calls) == (delicate, settable, calls)


@pytest.mark.parametrize(
    ("statement", "length"),
    [
        ("X[i] += Y[i, k]", 30),
        ("X[i + k] += Y[i, k]", 4),
        ("Y[3, 4] += Y[i, k]", 120),
        ("Y[i, i] += X[k]", 30),
        ("Y[i, 2] += X[k]", 30),
        ("Y[3, 4] += X[k]", 120 * 4),
        ("X[i] += Y[i, 7]", 30 * 30),
        ("X[7] += X[8]", 120 * 120),
        ("X[7] += X[8] + i + k", 120),
        ("X[7] = X[8]", 120),
        ("X[i] = Y[i, k]", 30),
    ],
)
def test_lengths(statement: str, length: int) -> None:
    """However large the array is of which a few elements are written; equal terms are rounded the same way."""
    text = f"def nest(X: f64[40], Y: f64[40, 40]):\n  for i in range(4):\n    for k in range(30):\n      {statement}\n"
    assert facts(parse_text(Source(text, "here", 1), {"f64": f64})).length == length


Noise = Callable[[Random], tuple[float, float]]
"""The seconds of two equally fast candidates, the one that goes first and the other."""


def compared(draw: Random, ratio: float, noise: Noise) -> tuple[list[float], list[float]]:
    """Samples of a challenger that takes `ratio` times as long, in pairs by lot, until there are enough."""
    ours: list[float] = []
    theirs: list[float] = []
    while rounds := next_rounds(ours, theirs):
        for _ in range(rounds):
            mine, other = draw.sample(noise(draw), 2)
            ours.append(ratio * mine)
            theirs.append(other)
    return ours, theirs


def bursts(draw: Random) -> tuple[float, float]:
    """Noise that only adds, and now and then much."""
    first, second = (1 + abs(draw.gauss(0, 0.01)) + (draw.random() if draw.random() < 0.05 else 0.0) for _ in range(2))
    return first, second


def quiet(draw: Random) -> tuple[float, float]:
    return 1 + draw.random() * 1e-4, 1 + draw.random() * 1e-4


def second_is_slower(draw: Random) -> tuple[float, float]:
    """Whoever goes second takes 3 % longer, nearly always by the same: the worst for Student's test."""
    return 1.0, 1.03 + 1e-5 * draw.random()


@pytest.mark.parametrize("noise", [bursts, quiet, second_is_slower])
def test_on_a_flat_landscape_at_most_one_in_twenty_wins(noise: Noise) -> None:
    draw, count = Random(3), 600
    wins = sum(beats(*compared(draw, 1.0, noise)) for _ in range(count))
    assert wins <= 0.05 * count


def even(draw: Random) -> tuple[float, float]:
    return 1 + draw.gauss(0, 0.005), 1 + draw.gauss(0, 0.005)


def test_only_what_seems_a_little_faster_gets_many_pairs() -> None:
    draw = Random(4)
    slower, equal, better, faster = (
        [compared(draw, ratio, noise) for _ in range(50)]
        for ratio, noise in ((1.3, bursts), (1.0, bursts), (0.98, even), (1 / 1.3, bursts))
    )

    def pairs(comparisons: list[tuple[list[float], list[float]]]) -> float:
        return float(np.mean([len(ours) for ours, _ in comparisons]))

    assert pairs(slower) < 1.5 * FIRST
    assert pairs(equal) < STAGES[0] <= pairs(better)
    assert pairs(faster) < 1.5 * STAGES[0]
    assert sum(beats(*samples) for samples in faster) >= 45
    assert sum(beats(*samples) for samples in better) >= 45


@given(st.lists(st.integers(-9, 9).filter(lambda gain: gain != 1), min_size=FIRST, max_size=FIRST))
def test_giving_up_needs_most_pairs_to_gain_little(gains: list[int]) -> None:
    """The gains are multiples of the one that is worth more pairs."""
    given_up = next_rounds([1.0] * FIRST, [exp(gain * WORTH) for gain in gains]) == 0
    assert given_up == (sum(gain < 1 for gain in gains) >= 2)


def test_a_hopeless_challenger_or_a_long_sample_gets_one_pair() -> None:
    assert first_rounds(1e-3, 1e-3) == first_rounds(1e-3, 2e-3) == FIRST
    assert first_rounds(2e-3, 1e-3) == 1
    assert first_rounds(LONG, LONG) == 1
    assert next_rounds([2.0], [1.0]) == 0
    assert next_rounds([1.0], [1.0]) == FIRST - 1


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)), max_size=STAGES[-1]).filter(
        lambda pairs: len(pairs) in (0, FIRST, *STAGES)
    )
)
def test_stages_are_looked_at_as_often_as_the_test_allows(pairs: list[tuple[float, float]]) -> None:
    assert len(STAGES) <= LOOKS
    rounds = next_rounds([ours for ours, _ in pairs], [theirs for _, theirs in pairs])
    assert rounds == 0 or len(pairs) + rounds in (FIRST, *STAGES)
    if len(pairs) == STAGES[-1]:
        assert rounds == 0
