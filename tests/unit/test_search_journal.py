"""The journal of a search: its ranking, incumbent, and whatever else is read from its events."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_spaces import as_predicted, two_bowls

from poly.autoschedule.spaces.space import Point
from poly.search.events import Ask, Decided, Event, Stopped, Trial
from poly.search.journal import Journal, Ranking, fresh_seconds, reasons
from poly.search.run import search
from poly.search.stopping import Budget
from poly.search.strategies import strategies

A, B, C, D = (Point(0, (i, 0, 0)) for i in range(4))


def paired(point: Point, against: Point, ratio: float, level: float) -> Trial:
    """A trial of a point that takes `ratio` times as long as its rival, on a machine at some level."""
    return Trial(point, (ratio * level,) * 4, (level,) * 4, against=against)


def test_a_ranking_is_free_of_the_machines_drift() -> None:
    found = Ranking([Trial(A, (1.0,) * 4), paired(B, A, 0.9, 2.0), paired(C, B, 1.1, 0.5)])
    assert found.points() == [B, C, A]
    assert found.seconds(B) == pytest.approx(0.9)
    assert found.seconds(C) == pytest.approx(0.99)


def test_failures_have_no_place() -> None:
    found = Ranking([Trial(A, (), failure="crashed")])
    assert A not in found and found.best is None and len(found) == 0


def test_a_known_trial_is_told_as_one_against_todays_incumbent() -> None:
    journal = Journal([Trial(A, (1.0, 1.1, 1.0)), Trial(B, (2.0, 2.1))])
    assert journal.paired(B, A) == Trial(B, (2.0, 2.1), (1.0, 1.1), against=A)
    assert journal.paired(A, A) == Trial(A, (1.0, 1.1, 1.0))
    assert journal.paired(A, D) == Trial(A, (1.0, 1.1, 1.0))


def test_what_was_measured_in_turn_is_remembered() -> None:
    first, again = paired(B, A, 1.2, 1.0), paired(B, C, 0.9, 1.0)
    journal = Journal([Trial(A, (1.0,) * 4), first, again])
    assert journal.paired(B, A) == first
    assert journal.paired(B, C) == again


def test_known_trials_make_an_incumbent() -> None:
    quiet = [Trial(A, (1.0, 1.01, 0.99, 1.0, 1.01, 0.99)), Trial(B, (0.5, 0.51, 0.49, 0.5, 0.51, 0.49))]
    assert Journal(quiet).incumbent == B
    assert Journal([Trial(A, (), failure="crashed")]).incumbent is None


def test_the_seconds_are_those_of_the_finalists_measured_again() -> None:
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


def test_the_choice_is_placed_by_samples_taken_in_turn() -> None:
    journal = Journal([Trial(D, (2.0, 2.0)), Trial(A, (3.0, 3.0), (6.0, 6.0), against=D)])
    assert journal.seconds_beside(D, A, 3.0) == pytest.approx(6.0)
    assert journal.seconds_beside(D, A, 1.5) == pytest.approx(3.0)
    journal = Journal([Trial(A, (2.0, 2.0)), Trial(D, (9.0, 9.0), (3.0, 3.0), against=A)])
    assert journal.seconds_beside(D, A, 2.0) == pytest.approx(6.0)


def test_gains_are_not_chained() -> None:
    """Each winner's gain is too high by luck: the choice is not ten times ten as slow as the last of them."""
    lucky = Trial(A, (1.0, 1.0), (10.0, 10.0), against=D), Trial(B, (1.0, 1.0), (10.0, 10.0), against=A)
    journal = Journal([Trial(D, (1.1, 1.1)), *lucky])
    assert journal.seconds_beside(D, B, 1.0) == pytest.approx(1.1)


def test_without_a_sample_of_both_there_is_nothing_to_compare() -> None:
    journal = Journal([Trial(A, (1.0, 1.0)), Trial(D, (), failure="crashed")])
    assert journal.seconds_beside(D, A, 1.0) is None
    assert journal.seconds_beside(D, None, None) is None


# Events


@settings(max_examples=20)
@given(st.sampled_from(strategies()), st.integers(1, 40), st.integers(0, 99))
def test_the_same_events_give_the_same_journal(name: str, trials: int, seed: int) -> None:
    """Nothing is kept beside the events: a journal that is made of them has the same to say."""
    made = as_predicted(two_bowls(), noise=0.05, seed=seed)
    made.fails = lambda point: "crashed" if sum(point.at) % 4 == 0 and point != made.space.choice else ""
    before = search(made.space, name, made, budget=Budget(trials=5, gain=None), random=Random(seed)).trials
    heard: list[Event] = []
    journal = Journal(before, [heard.append])
    search(made.space, name, made, budget=Budget(trials=trials, gain=None), random=Random(seed), journal=journal)
    again = Journal(journal.events)
    assert journal.events == [*before, *heard]
    assert (again.incumbent, again.ranking.points(), again.known, again.measured, again.failures) == (
        journal.incumbent,
        journal.ranking.points(),
        journal.known,
        journal.measured,
        journal.failures,
    )
    assert again.known == list(before)
    assert again.outcome() == journal.outcome()


def test_events_come_in_their_order() -> None:
    heard: list[Event] = []
    trial, ask = Trial(A, (1.0,) * 4), Ask((A,))
    journal = Journal((), [heard.append])
    assert journal.enter(ask, [trial]) == [trial]
    journal.add(Stopped("enough"))
    assert heard == journal.events == [ask, trial, Decided(A), Stopped("enough")]
    assert journal.outcome().stopped == "enough"


def test_of_a_batch_that_is_interrupted_what_was_measured_counts() -> None:
    def trials() -> Iterator[Trial]:
        yield Trial(A, (1.0,) * 4)
        raise KeyboardInterrupt

    journal = Journal()
    with pytest.raises(KeyboardInterrupt):
        journal.enter(Ask((A, B)), trials())
    assert journal.incumbent == A and journal.events[-1] == Decided(A)


def test_an_incumbent_is_only_beaten_in_turn_with_it() -> None:
    slow, fast = (1.0, 1.01, 0.99) * 2, (0.5, 0.51, 0.49) * 2
    journal = Journal()
    journal.enter(Ask((A,)), [Trial(A, slow)])
    journal.enter(Ask((B,)), [Trial(B, fast)])
    assert journal.incumbent == A and journal.ranking.best == B
    journal.enter(Ask((C,), A), [Trial(C, fast, slow, against=A)])
    assert journal.incumbent == C


def test_an_incumbent_whose_newest_trial_has_failed_has_the_seconds_of_its_samples() -> None:
    journal = Journal([Trial(A, (1.0, 1.0)), Trial(A, (), failure="crashed")])
    journal.enter(Ask((B,)), [Trial(B, (), failure="crashed")])
    assert journal.outcome().seconds == 1.0
