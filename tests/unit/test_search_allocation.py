"""Which of several searches gets the next batch, and that one budget for all of them is kept."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from search_spaces import Landscape, as_predicted, bowl, space, structure, two_bowls

from poly.search.allocation import Standing, most_gain
from poly.search.run import Running
from poly.search.stopping import Budget, Purse, reserve

USUAL = Standing(seconds=1.0, gain=0.1, cost=0.5, trials=4)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (replace(USUAL, seconds=2.0), USUAL),
        (replace(USUAL, gain=0.2), USUAL),
        (replace(USUAL, cost=0.2), USUAL),
        (replace(USUAL, trials=0, seconds=1e-6), replace(USUAL, seconds=1e6)),
        (USUAL, replace(USUAL, gain=float("inf"), trials=11)),
        (replace(USUAL, gain=float("inf"), trials=2), USUAL),
        (replace(USUAL, seconds=1.1, cost=None), USUAL),
        (USUAL, replace(USUAL, gain=0.0, cost=0.0)),
    ],
)
def test_the_next_batch_goes_where_most_is_saved_per_second(better: Standing, worse: Standing) -> None:
    assert most_gain([better, worse]) == 0
    assert most_gain([worse, better]) == 1


def driven(lands: list[Landscape], budget: Budget) -> list[Running]:
    """Searches that spend one budget, to their ends."""
    purse = Purse(budget, lambda: 0.0, len(lands))
    searches = [Running(land.space, "droplet", land, purse, random=Random(0)) for land in lands]
    open_ = list(range(len(searches)))
    while open_:
        standings = [standing(searches[at], lands[at]) for at in open_]
        at = open_[most_gain(standings)]
        if not searches[at].step():
            open_.remove(at)
    return searches


def standing(search: Running, land: Landscape) -> Standing:
    journal = search.journal
    best = land.space.choice if journal.incumbent is None else journal.incumbent
    return Standing(land.seconds(best), search.gain.guess(journal), 1.0, len(journal.trials))


@pytest.mark.parametrize("trials", [2, 3, 19, 20, 45, 60])
def test_searches_spend_one_budget_of_trials_to_the_last(trials: int) -> None:
    lands = [as_predicted(two_bowls(), seed=seed) for seed in (1, 2)]
    searches = driven(lands, Budget(trials=trials, gain=None))
    measured = [len(search.journal.measured) for search in searches]
    assert [len(land.measured) for land in lands] == measured and min(measured) >= 1
    kept = 2 * reserve(trials, 2)
    assert trials - kept <= sum(measured) <= trials
    assert all(search.journal.outcome().stopped == f"the budget of {trials} trials is spent" for search in searches)


def test_a_nest_with_nothing_to_gain_gets_its_first_batch_and_few_more() -> None:
    """One space has a single fast point that the model finds; in the other one the model errs."""
    flat = as_predicted(space(structure(bowl, (2, 2))))
    wrong = Landscape(two_bowls(), lambda point: 2.0 - 0.1 * sum(point.at) + 0.3 * point.structure)
    settled, erring = driven([flat, wrong], Budget(trials=40, gain=None))
    assert 1 <= len(settled.journal.measured) <= 4 < 30 < len(erring.journal.measured)


def test_a_search_without_a_trial_has_a_batch_even_if_all_is_spent() -> None:
    made = as_predicted(two_bowls())
    purse = Purse(Budget(trials=1, gain=None), lambda: 0.0, 2)
    purse.trials = 5
    search = Running(made.space, "droplet", made, purse)
    assert search.step() and not search.step()
    assert len(search.journal.measured) == 1


def test_an_interrupted_search_keeps_its_best_and_one_without_is_interrupted() -> None:
    made = as_predicted(two_bowls())
    search = Running(made.space, "droplet", made, Purse(Budget(), lambda: 0.0))
    with pytest.raises(KeyboardInterrupt):
        search.interrupt()
    search = Running(made.space, "droplet", made, Purse(Budget(), lambda: 0.0))
    search.step()
    search.interrupt()
    outcome = search.journal.outcome()
    assert outcome.interrupted and outcome.best == made.space.choice and not search.step()


def test_finalists_of_the_others_are_kept_for_them() -> None:
    purse = Purse(Budget(trials=60, gain=None), lambda: 0.0, 2)
    purse.trials = 53
    assert purse.left() == 1 and not purse.spent()
    purse.trials = 54
    assert purse.spent() and purse.reserved_left() == 3
    purse.trials = 57
    assert purse.reserved_left() == 0
    purse.release()
    assert purse.reserved_left() == 3
