"""The loop of a search: its budgets, what it measures and what not, how it ends."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_spaces import Landscape, as_predicted, bowl, space, structure, two_bowls

from poly.autoschedule.spaces.space import Point, Space
from poly.errors import SearchError
from poly.search.events import Ask, Event, Search, Trial
from poly.search.journal import Journal, Outcome
from poly.search.run import search
from poly.search.stopping import Budget
from poly.search.strategies import strategies

NO_LIMIT = Budget(gain=None)


def in_order(space: Space, start: Point, random: Random) -> Search:
    """All points, one by one."""
    for point in space:
        yield Ask((point,))


class Ticking:
    """A clock on which every trial takes a second."""

    def __init__(self, made: Landscape) -> None:
        self.made = made

    def __call__(self) -> float:
        return float(len(self.made.measured))


@settings(max_examples=15)
@given(st.sampled_from(strategies()), st.integers(1, 60), st.integers(0, 99))
def test_a_budget_of_trials_is_kept_and_no_point_is_measured_twice(name: str, trials: int, seed: int) -> None:
    made = as_predicted(two_bowls(), seed=seed)
    outcome = search(made.space, name, made, budget=Budget(trials=trials, gain=None), random=Random(seed))
    assert len(outcome.trials) == len(made.measured) <= trials
    assert all(point in made.space for point in made.measured)
    explored = [point for ask in made.asked[:-1] for point in ask.points]
    assert max(Counter(explored).values(), default=1) == 1
    assert outcome.best in made.measured


def test_all_trials_of_a_budget_are_used_where_nothing_is_left_for_finalists() -> None:
    made = as_predicted(two_bowls())
    assert len(search(made.space, in_order, made, budget=Budget(trials=9, gain=None)).trials) == 9


def test_a_budget_of_seconds_ends_the_search() -> None:
    made = as_predicted(two_bowls())
    outcome = search(made.space, "random", made, budget=Budget(seconds=10, gain=None), clock=Ticking(made))
    assert len(outcome.trials) == 10
    assert outcome.stopped == "the budget of 10 s is spent"


@pytest.mark.parametrize(
    "limit", [{"trials": 0}, {"trials": -3}, {"seconds": 0}, {"gain": 0.0}, {"seconds": float("nan")}]
)
def test_a_budget_of_nothing_is_refused(limit: dict[str, float]) -> None:
    with pytest.raises(SearchError, match=r"a budget of \w+=.* allows no search"):
        Budget(**limit)


def test_the_same_seed_gives_the_same_search() -> None:
    for name in strategies():
        first, second = (
            search(made.space, name, made, budget=Budget(trials=30, gain=None), random=Random(5))
            for made in (as_predicted(two_bowls()), as_predicted(two_bowls()))
        )
        assert first == second


def test_exhaustive_visits_every_point_and_finds_the_best() -> None:
    made = as_predicted(two_bowls())
    outcome = search(made.space, "exhaustive", made, budget=NO_LIMIT)
    assert set(made.measured) == set(made.space)
    assert made.seconds(outcome.best) == made.best()
    assert outcome.seconds == pytest.approx(made.best(), rel=0.01)
    assert outcome.stopped == "the strategy has no more to ask"


def test_known_trials_are_not_measured_again() -> None:
    made = as_predicted(two_bowls())
    before = search(made.space, "droplet", made, budget=Budget(trials=12, gain=None))
    again = as_predicted(two_bowls(), seed=1)
    after = search(made.space, "droplet", again, budget=Budget(trials=12, gain=None), journal=Journal(before.trials))
    explored = [point for ask in again.asked[:-1] for point in ask.points]
    assert not set(explored) & {trial.point for trial in before.trials}
    assert made.seconds(after.best) <= made.seconds(before.best)


def test_a_search_that_is_resumed_asks_what_an_unbroken_one_asks() -> None:
    def run(trials: int, known: tuple[Trial, ...] = ()) -> Outcome:
        made = as_predicted(two_bowls(), noise=0.0)
        return search(made.space, "droplet", made, budget=Budget(trials=trials, gain=None), journal=Journal(known))

    whole = run(9)
    assert run(4, known=run(5).trials).trials == whole.trials[5:]


def test_the_best_of_known_trials_counts() -> None:
    made = as_predicted(two_bowls(), noise=0.0)
    best = min(made.space, key=made.seconds)
    known = [Trial(best, (made.seconds(best),) * 4)]
    outcome = search(made.space, "droplet-origin", made, budget=Budget(trials=5, gain=None), journal=Journal(known))
    assert outcome.best == best


def test_interrupted_the_best_so_far_is_kept() -> None:
    made = as_predicted(two_bowls())

    def observe(event: Event) -> None:
        if isinstance(event, Trial) and len(journal.measured) == 7:
            raise KeyboardInterrupt

    journal = Journal(listeners=[observe])
    outcome = search(made.space, in_order, made, budget=NO_LIMIT, journal=journal)
    assert outcome.interrupted
    assert outcome.stopped == "interrupted"
    assert len(outcome.trials) == 7
    assert outcome.best in made.measured


def test_interrupted_before_anything_was_measured_there_is_no_outcome() -> None:
    made = as_predicted(two_bowls())
    made.fails = lambda point: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        search(made.space, "droplet", made)


def test_failures_are_kept_with_their_reasons_and_the_search_goes_on() -> None:
    made = as_predicted(two_bowls())
    made.fails = lambda point: "gcc: error: no registers left\nmore" if sum(point.at) % 2 else ""
    journal = Journal()
    outcome = search(made.space, "exhaustive", made, budget=NO_LIMIT, journal=journal)
    assert made.seconds(outcome.best) == made.best()
    assert set(outcome.failures) == {point for point in made.space if made.fails(point)}
    assert len(journal.failures) == len(outcome.failures)
    assert journal.measured == list(outcome.trials)


@pytest.mark.parametrize("name", strategies())
def test_where_every_point_fails_the_reasons_are_told(name: str) -> None:
    made = as_predicted(two_bowls())
    made.fails = lambda point: "killed: it ran for 10 s\nand more" if point.structure else "gcc: error"
    with pytest.raises(
        SearchError, match=r"none of \d+ points could be measured: .*(killed: it ran for 10 s|gcc: error)"
    ):
        search(made.space, name, made)


def test_where_all_fails_not_every_point_is_tried() -> None:
    made = as_predicted(two_bowls())
    made.fails = lambda point: "crashed"
    with pytest.raises(SearchError, match="crashed"):
        search(made.space, "random", made, budget=NO_LIMIT)
    assert len(made.measured) < len(list(made.space)) / 2


def test_a_space_without_a_point_is_refused() -> None:
    made = two_bowls()
    empty = replace(made, structures=tuple(replace(s, allows=lambda values: False) for s in made.structures))
    with pytest.raises(SearchError, match="has no legal schedule"):
        search(empty, "droplet", as_predicted(made))


def test_a_start_outside_the_space_is_refused() -> None:
    made = as_predicted(two_bowls())
    with pytest.raises(SearchError, match="cannot start at"):
        search(made.space, "droplet", made, start=Point(7, (0,)))


def test_a_strategy_that_leaves_the_space_is_told_so() -> None:
    def astray(space: Space, start: Point, random: Random) -> Search:
        yield Ask((Point(0, (99, 0, 0)),))

    made = as_predicted(two_bowls())
    with pytest.raises(SearchError, match="not a point of the space"):
        search(made.space, astray, made)


def test_a_strategy_that_asks_for_the_same_for_ever_is_stopped() -> None:
    def stubborn(space: Space, start: Point, random: Random) -> Search:
        while True:
            yield Ask((start,))

    made = as_predicted(two_bowls())
    outcome = search(made.space, stubborn, made, budget=NO_LIMIT)
    assert len(made.measured) == 1
    assert outcome.stopped == "the strategy repeats itself"


def test_a_measurer_that_measures_no_more_ends_the_search() -> None:
    class Tired(Landscape):
        def measure(self, ask: Ask) -> list[Trial]:
            return super().measure(replace(ask, points=ask.points[:1])) if len(self.measured) < 3 else []

    made = two_bowls()
    tired = Tired(made, lambda point: made.predict(point).seconds)
    outcome = search(made, "random", tired, budget=NO_LIMIT)
    assert len(outcome.trials) == 3
    assert outcome.stopped == "nothing more was measured"


def test_every_challenger_meets_the_incumbent() -> None:
    made = as_predicted(two_bowls())
    outcome = search(made.space, in_order, made, budget=Budget(trials=20, gain=None))
    assert outcome.trials[0].against is None
    assert all(trial.against is not None and len(trial.rival) == len(trial.samples) for trial in outcome.trials[1:])


def test_finalists_measured_again_do_not_leave_the_choice_to_luck() -> None:
    """On a flat landscape with much noise the fastest of many looks fast; its time in the end is the true one."""
    made = space(structure(bowl, sizes=(8, 8)))
    flat = Landscape(made, lambda point: 1e-3, lambda random: random.gauss(0, 0.1), pairs=4)
    outcome = search(made, "random", flat, budget=Budget(trials=60, gain=None))
    assert len(flat.asked[-1].points) == 3
    assert outcome.seconds == pytest.approx(1e-3, rel=0.08)
    assert len(outcome.trials) <= 60
