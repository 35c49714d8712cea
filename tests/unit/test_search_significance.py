"""The decision between a challenger and the incumbent: it holds its level under any noise, and finds what is there."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, log, sin
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poly.autoschedule.spaces.space import Point
from poly.search.events import Trial
from poly.search.significance import LEVEL, LOOKS, beats, gain, p_value, winner

STAGES = (4, 8, 16)
COMPARISONS = 400
Noise = Callable[[Random], float]


def gaussian(random: Random) -> float:
    return random.gauss(0, 0.01)


def bursts(random: Random) -> float:
    """Mostly quiet; now and then something else runs."""
    return random.gauss(0, 0.003) + (random.expovariate(3) if random.random() < 0.1 else 0.0)


def skewed(random: Random) -> float:
    return random.expovariate(50)


def slightly_skewed(random: Random) -> float:
    return random.expovariate(100)


def cauchy(random: Random) -> float:
    return min(5.0, abs(random.gauss(0, 0.01) / max(1e-9, abs(random.gauss(0, 1)))))


def pairs(random: Random, noise: Noise, faster: float, drift: float = 0.0) -> tuple[list[float], list[float]]:
    """As many samples of challenger and incumbent as the last stage has; the machine slows down and recovers."""
    common = [drift * sin(n / 3) for n in range(STAGES[-1])]
    ours = [exp(c + noise(random)) * (1 - faster) for c in common]
    return ours, [exp(c + noise(random)) for c in common]


def wins(noise: Noise, faster: float, drift: float = 0.0) -> float:
    """The share of comparisons that call the challenger the winner, when each stage is looked at until one does."""
    random = Random(11)
    found = 0
    for _ in range(COMPARISONS):
        ours, theirs = pairs(random, noise, faster, drift)
        found += any(beats(ours[:n], theirs[:n]) for n in STAGES)
    return found / COMPARISONS


@pytest.mark.parametrize("noise", [gaussian, bursts, skewed, cauchy])
def test_equal_schedules_have_a_winner_in_at_most_one_comparison_of_twenty(noise: Noise) -> None:
    assert wins(noise, faster=0.0) <= LEVEL


def test_a_drift_of_the_machine_makes_no_winner() -> None:
    assert wins(gaussian, faster=0.0, drift=0.3) <= LEVEL


def test_looking_at_each_stage_without_sharing_the_level_would_call_too_many_winners() -> None:
    assert len(STAGES) == LOOKS
    random = Random(11)
    found = 0
    for _ in range(COMPARISONS):
        ours, theirs = pairs(random, gaussian, 0.0)
        found += any(beats(ours[:n], theirs[:n], looks=1) for n in STAGES)
    assert found / COMPARISONS > LEVEL


@pytest.mark.parametrize(("noise", "drift"), [(gaussian, 0.0), (gaussian, 0.3), (slightly_skewed, 0.0)])
def test_two_percent_are_found_in_even_noise(noise: Noise, drift: float) -> None:
    assert wins(noise, faster=0.02, drift=drift) > 0.9


def test_two_percent_are_found_in_bursts_more_often_than_not() -> None:
    assert wins(bursts, faster=0.02) > 0.6


def test_fewer_than_two_pairs_never_decide() -> None:
    assert p_value([1.0], [9.0]) == 1.0
    assert p_value([], []) == 1.0
    assert not beats([1.0], [9.0])


def test_samples_without_noise_decide_by_their_sign() -> None:
    assert beats([1.0, 1.0], [1.1, 1.1])
    assert not beats([1.0, 1.0], [1.0, 1.0])
    assert not beats([1.1, 1.1], [1.0, 1.0])


def test_samples_that_are_no_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        p_value([1.0, 2.0], [1.0])


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(*[st.floats(1e-6, 1.0)] * 2), min_size=2, max_size=12), st.floats(0.01, 100))
def test_the_unit_does_not_matter_and_only_one_of_two_can_win(samples: list[tuple[float, float]], unit: float) -> None:
    ours, theirs = [list(side) for side in zip(*samples, strict=True)]
    assert not (beats(ours, theirs) and beats(theirs, ours))
    scaled = p_value([x * unit for x in ours], [x * unit for x in theirs])
    assert scaled == pytest.approx(p_value(ours, theirs), rel=1e-3, abs=1e-6)


def trial(number: int, ours: list[float], theirs: list[float]) -> Trial:
    return Trial(Point(0, (number,)), tuple(ours), tuple(theirs))


def test_the_winner_of_several_is_the_one_that_gains_most() -> None:
    incumbent = [1.0, 1.01, 1.0, 1.01, 1.0, 1.01, 1.0, 1.01]
    some = trial(1, [x * 0.9 for x in incumbent], incumbent)
    most = trial(2, [x * 0.8 for x in incumbent], incumbent)
    none = trial(3, [x * 1.1 for x in incumbent], incumbent)
    failed = Trial(Point(0, (4,)), (), failure="crashed")
    assert winner([some, most, none, failed]) == most
    assert winner([none, failed]) is None


def test_a_gain_is_the_median_log_ratio() -> None:
    assert gain(trial(1, [1.0, 1.0, 1.0], [2.0, 2.0, 50.0])) == pytest.approx(log(2))
    assert gain(Trial(Point(0, (1,)), (1.0,))) == -inf
