"""The surrogate, what going on is expected to gain, and who is measured again."""

from __future__ import annotations

from math import log
from random import Random

import numpy as np
import pytest
from search_spaces import Landscape, as_predicted, bowl, space, structure, two_bowls

from poly.autoschedule.spaces.space import Point
from poly.search.events import Ask, Trial
from poly.search.journal import Journal, Ranking
from poly.search.run import finalists, search
from poly.search.stopping import ExpectedGain, expected_improvement, reserve
from poly.search.surrogate import SPREAD, Surrogate

A, B, C, D = (Point(0, (i, 0, 0)) for i in range(4))


# The surrogate


def ranking(seconds: dict[Point, float]) -> Ranking:
    return Ranking(Trial(point, (value,) * 3) for point, value in seconds.items())


def test_a_surrogate_begins_with_the_model() -> None:
    made = two_bowls()
    mean, deviation = Surrogate(made).expect([A, B])
    assert mean == pytest.approx([log(made.predict(point).seconds) for point in (A, B)])
    assert (deviation > SPREAD).all()


def test_a_common_factor_of_the_model_is_learned() -> None:
    made = two_bowls()
    points = made.sample(12, Random(0))
    surrogate = Surrogate(made)
    surrogate.learn(ranking({point: 3 * made.predict(point).seconds for point in points[:8]}))
    mean, deviation = surrogate.expect(points[8:])
    assert mean == pytest.approx([log(3 * made.predict(point).seconds) for point in points[8:]], abs=0.03)
    assert (deviation < SPREAD).all()


def test_what_was_measured_is_known_and_what_is_alike_nearly() -> None:
    made = two_bowls()
    slow = {
        A: 1.5 * made.predict(A).seconds,
        **{p: made.predict(p).seconds for p in made.sample(6, Random(1)) if p != A},
    }
    surrogate = Surrogate(made)
    surrogate.learn(ranking(slow))
    mean, deviation = surrogate.expect([A, B, Point(1, (4, 5, 3))])
    error = mean - [surrogate.predicted(point) for point in (A, B, Point(1, (4, 5, 3)))]
    assert error[0] > error[1] > error[2]
    assert deviation[0] < deviation[1] < deviation[2]


def test_draws_agree_with_what_is_expected() -> None:
    made = two_bowls()
    surrogate = Surrogate(made)
    surrogate.learn(ranking({A: 1e-3, D: 1.2e-3}))
    mean, deviation = surrogate.expect([B, C])
    draws = surrogate.draws([B, C], 4000)
    assert draws.mean(axis=0) == pytest.approx(mean, abs=0.01)
    assert draws.std(axis=0) == pytest.approx(deviation, rel=0.05)


# The expected gain


def test_the_expected_improvement_is_that_of_many_draws() -> None:
    mean, deviation = np.array([0.1, -0.2, 0.0]), np.array([0.2, 0.1, 0.0])
    draws = np.random.default_rng(0).normal(mean, deviation, (200_000, 3))
    wanted = np.maximum(0.0, 0.05 - draws).mean(axis=0)
    assert expected_improvement(0.05, mean, deviation) == pytest.approx(wanted, abs=1e-3)


def gains(made: Landscape, order: list[Point]) -> list[float]:
    """The expected gain after each of some points."""
    gain, journal, found = ExpectedGain(made.space), Journal(), []
    for point in order:
        journal.enter(Ask((point,)), [Trial(point, (made.seconds(point),) * 4)])
        found.append(gain.after(journal))
    return found


def test_nothing_is_to_be_gained_where_the_model_is_right_and_its_best_are_measured() -> None:
    made = as_predicted(two_bowls())
    found = gains(made, made.space.ranked()[:12])
    assert found[0] > 0.01
    assert found[-1] < 0.01


def test_much_is_to_be_gained_where_better_ones_are_expected() -> None:
    made = as_predicted(two_bowls())
    worst_first = made.space.ranked()[::-1]
    assert min(gains(made, worst_first[:12])) > 0.01


def test_promises_that_are_not_kept_are_believed_less_and_less() -> None:
    """Only what looked best is slow: a model that errs just where it matters."""
    made = space(structure(bowl, (6, 6)), structure(lambda values: 0.8 * bowl(values), (6, 6), left="b"))
    land = Landscape(made, lambda point: bowl(made.values(point)) * (1.0 if point.structure == 0 else 0.9))
    order = [p for p in made.ranked() if p.structure == 0]
    found = gains(land, order)
    assert found[30] < found[4]


def test_with_every_point_tried_nothing_is_left_to_gain() -> None:
    made = as_predicted(space(structure(bowl, (3, 3))))
    assert gains(made, list(made.space))[-1] == 0.0


def test_before_some_points_were_measured_all_is_to_be_gained() -> None:
    journal = Journal()
    journal.enter(Ask((A,)), [Trial(A, (), failure="crashed")])
    assert ExpectedGain(two_bowls()).after(journal) == float("inf")
    journal.enter(Ask((B, C)), [Trial(B, (1.0,)), Trial(C, (1.0,))])
    assert ExpectedGain(two_bowls()).after(journal) == float("inf")


def test_by_default_a_search_ends_when_going_on_is_not_worth_it() -> None:
    made = as_predicted(two_bowls())
    outcome = search(made.space, "droplet", made)
    assert outcome.stopped == "going on is expected to gain less than 1.0%"
    assert len(outcome.trials) < 40
    assert made.seconds(outcome.best) == made.best()


# The finalists


def test_a_handful_of_trials_keeps_none_for_the_finalists() -> None:
    assert [reserve(trials) for trials in (None, 5, 9, 10, 29, 500)] == [0, 0, 0, 1, 2, 3]


def test_those_close_to_the_incumbent_meet_it_again() -> None:
    found = ranking({A: 1.0, B: 1.02, C: 0.99, D: 1.2})
    assert finalists(A, found) == [C, B]
