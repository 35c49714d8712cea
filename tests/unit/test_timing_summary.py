"""Medians, quartiles, paired ratios, geometric means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poly.timing.summary import geometric_mean, interval, is_precise, paired_ratio, precision, summarize

SAMPLES = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=30)


def test_the_median_and_the_quartiles_of_five_samples() -> None:
    summary = summarize([5, 1, 4, 2, 3])
    assert (summary.low, summary.median, summary.high) == (2, 3, 4)
    assert summary.spread == pytest.approx(1 / 3)


def test_one_sample_has_no_spread() -> None:
    assert summarize([7.0]).spread == 0


def test_without_samples_there_is_nothing_to_summarize() -> None:
    with pytest.raises(ValueError, match="no samples"):
        summarize([])


def test_one_slow_burst_does_not_move_the_median() -> None:
    assert summarize([1, 1, 1, 1, 100]).median == 1


@given(SAMPLES)
def test_the_quartiles_enclose_the_median(samples: list[float]) -> None:
    summary = summarize(samples)
    assert min(samples) <= summary.low <= summary.median <= summary.high <= max(samples)


@given(SAMPLES, st.floats(0.1, 10))
def test_what_slows_a_whole_round_down_cancels_in_a_paired_ratio(samples: list[float], factor: float) -> None:
    ratio = paired_ratio([factor * sample for sample in samples], samples)
    assert ratio.median == pytest.approx(factor)
    assert ratio.spread == pytest.approx(0, abs=1e-9)


def test_the_geometric_mean_of_a_half_and_two_is_one() -> None:
    assert geometric_mean([0.5, 2]) == pytest.approx(1)
    assert geometric_mean([]) is None


def test_the_interval_of_a_median_lies_between_samples_of_known_ranks() -> None:
    """Of 20 samples, by the binomial distribution: less than 2.5 % of all cases have the median below the sixth."""
    samples = [float(n) for n in range(1, 21)]
    assert interval(samples) == (6.0, 15.0)
    assert precision(samples) == pytest.approx(4.5 / 10.5)


def test_five_samples_do_not_bound_a_median() -> None:
    assert interval([1, 2, 3, 4, 5]) is None and precision([1, 2, 3, 4, 5]) is None
    assert interval([1, 2, 3, 4, 5, 6]) == (1, 6)


def test_equal_samples_are_precise_and_too_few_are_not() -> None:
    assert is_precise([2.0] * 6, 0.01) and not is_precise([2.0] * 5, 0.01)
    assert is_precise([1.0, 1.01] * 20, 0.011) and not is_precise([1.0, 1.1] * 20, 0.011)
