"""What going on is expected to gain; where a point stands; who meets again in the play-off."""

from __future__ import annotations

from math import log
from random import Random

import numpy as np
import pytest
from search_spaces import Landscape, as_predicted, bowl, space, structure, two_bowls

from poly.search.belief import SPREAD, Belief
from poly.search.ledger import Ledger
from poly.search.outcome import reasons
from poly.search.playoff import finalists, fresh_seconds, reserve
from poly.search.run import search
from poly.search.standing import Standing
from poly.search.trial import Trial
from poly.search.worth import Worth, expected_improvement
from poly.spaces.space import Point

A, B, C, D = (Point(0, (i, 0, 0)) for i in range(4))


# Belief


def standing(seconds: dict[Point, float]) -> Standing:
    return Standing(Trial(point, (value,) * 3) for point, value in seconds.items())


def test_a_belief_begins_with_the_model() -> None:
    made = two_bowls()
    mean, deviation = Belief(made).expect([A, B])
    assert mean == pytest.approx([log(made.predict(point).seconds) for point in (A, B)])
    assert (deviation > SPREAD).all()


def test_a_common_factor_of_the_model_is_learned() -> None:
    made = two_bowls()
    points = made.sample(12, Random(0))
    belief = Belief(made)
    belief.learn(standing({point: 3 * made.predict(point).seconds for point in points[:8]}))
    mean, deviation = belief.expect(points[8:])
    assert mean == pytest.approx([log(3 * made.predict(point).seconds) for point in points[8:]], abs=0.03)
    assert (deviation < SPREAD).all()


def test_what_was_measured_is_known_and_what_is_alike_nearly() -> None:
    made = two_bowls()
    slow = {
        A: 1.5 * made.predict(A).seconds,
        **{p: made.predict(p).seconds for p in made.sample(6, Random(1)) if p != A},
    }
    belief = Belief(made)
    belief.learn(standing(slow))
    mean, deviation = belief.expect([A, B, Point(1, (4, 5, 3))])
    error = mean - [belief.predicted(point) for point in (A, B, Point(1, (4, 5, 3)))]
    assert error[0] > error[1] > error[2]
    assert deviation[0] < deviation[1] < deviation[2]


def test_draws_agree_with_what_is_expected() -> None:
    made = two_bowls()
    belief = Belief(made)
    belief.learn(standing({A: 1e-3, D: 1.2e-3}))
    mean, deviation = belief.expect([B, C])
    draws = belief.draws([B, C], 4000)
    assert draws.mean(axis=0) == pytest.approx(mean, abs=0.01)
    assert draws.std(axis=0) == pytest.approx(deviation, rel=0.05)


# Worth


def test_the_expected_improvement_is_that_of_many_draws() -> None:
    mean, deviation = np.array([0.1, -0.2, 0.0]), np.array([0.2, 0.1, 0.0])
    draws = np.random.default_rng(0).normal(mean, deviation, (200_000, 3))
    wanted = np.maximum(0.0, 0.05 - draws).mean(axis=0)
    assert expected_improvement(0.05, mean, deviation) == pytest.approx(wanted, abs=1e-3)


def gains(made: Landscape, order: list[Point]) -> list[float]:
    """The expected gain after each of some points."""
    worth, ledger, found = Worth(made.space), Ledger(), []
    for point in order:
        ledger.enter([Trial(point, (made.seconds(point),) * 4)], None)
        found.append(worth.gain(ledger))
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
    ledger = Ledger()
    ledger.enter([Trial(A, (), failure="crashed")], None)
    assert Worth(two_bowls()).gain(ledger) == float("inf")
    ledger.enter([Trial(B, (1.0,)), Trial(C, (1.0,))], None)
    assert Worth(two_bowls()).gain(ledger) == float("inf")


def test_by_default_a_search_ends_when_going_on_is_not_worth_it() -> None:
    made = as_predicted(two_bowls())
    outcome = search(made.space, "droplet", made)
    assert outcome.stopped == "going on is expected to gain less than 1.0%"
    assert len(outcome.trials) < 40
    assert made.seconds(outcome.best) == made.best()


# Standing and ledger


def paired(point: Point, against: Point, ratio: float, level: float) -> Trial:
    """A trial of a point that takes `ratio` times as long as its rival, on a machine at some level."""
    return Trial(point, (ratio * level,) * 4, (level,) * 4, against=against)


def test_a_standing_is_free_of_the_machines_drift() -> None:
    found = Standing([Trial(A, (1.0,) * 4), paired(B, A, 0.9, 2.0), paired(C, B, 1.1, 0.5)])
    assert found.ranked() == [B, C, A]
    assert found.seconds(B) == pytest.approx(0.9)
    assert found.seconds(C) == pytest.approx(0.99)


def test_failures_have_no_place() -> None:
    found = Standing([Trial(A, (), failure="crashed")])
    assert A not in found and found.best is None and len(found) == 0


def test_a_ledger_tells_a_known_trial_as_one_against_todays_champion() -> None:
    ledger = Ledger([Trial(A, (1.0, 1.1, 1.0)), Trial(B, (2.0, 2.1))])
    assert ledger.paired(B, A) == Trial(B, (2.0, 2.1), (1.0, 1.1), against=A)
    assert ledger.paired(A, A) == Trial(A, (1.0, 1.1, 1.0))
    assert ledger.paired(A, D) == Trial(A, (1.0, 1.1, 1.0))


def test_a_ledger_remembers_what_was_measured_in_turn() -> None:
    first, again = paired(B, A, 1.2, 1.0), paired(B, C, 0.9, 1.0)
    ledger = Ledger([Trial(A, (1.0,) * 4), first, again])
    assert ledger.paired(B, A) == first
    assert ledger.paired(B, C) == again


def test_known_trials_make_a_champion() -> None:
    quiet = [Trial(A, (1.0, 1.01, 0.99, 1.0, 1.01, 0.99)), Trial(B, (0.5, 0.51, 0.49, 0.5, 0.51, 0.49))]
    assert Ledger(quiet).champion == B
    assert Ledger([Trial(A, (), failure="crashed")]).champion is None


# The play-off


def test_a_handful_of_trials_keeps_none_for_the_play_off() -> None:
    assert [reserve(trials) for trials in (None, 5, 9, 10, 29, 500)] == [0, 0, 0, 1, 2, 3]


def test_those_close_to_the_champion_meet_it_again() -> None:
    found = standing({A: 1.0, B: 1.02, C: 0.99, D: 1.2})
    assert finalists(A, found) == [C, B]


def test_the_seconds_are_those_of_the_play_off() -> None:
    trials = [Trial(B, (2.0, 2.2), (1.0, 1.1), against=A), Trial(C, (3.0, 3.0), (1.2, 1.3), against=A)]
    assert fresh_seconds(A, trials) == pytest.approx(1.15)
    assert fresh_seconds(C, trials) == 3.0
    assert fresh_seconds(D, trials) is None


def test_reasons_are_counted_by_their_first_lines() -> None:
    trials = [
        Trial(A, (), failure="crashed\nin f"),
        Trial(B, (), failure="slow"),
        Trial(C, (), failure="crashed\nin g"),
    ]
    assert reasons([*trials, Trial(D, (1.0,))]) == "2 times: crashed; once: slow"
