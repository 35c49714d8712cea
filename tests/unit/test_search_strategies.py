"""The strategies on landscapes that are formulas: what they find, what they ask for, and that they end."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint, EntryPoints
from itertools import islice, pairwise
from math import exp
from random import Random
from statistics import median
from types import ModuleType
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from search_spaces import Landscape, as_predicted, bowl, space, structure, two_bowls

from microkernels import plugins
from poly.autoschedule.spaces.space import Point, Space, Value
from poly.errors import SearchError
from poly.search import strategies as registry
from poly.search.droplet import Droplet
from poly.search.events import Ask, Strategy, Trial
from poly.search.evolution import crossed
from poly.search.journal import Journal
from poly.search.neighbourhood import across, along, elsewhere, neighbours
from poly.search.proposals import ExpectedFirst, NearestFirst, by_model, everywhere, sampled
from poly.search.raindrop import Raindrop
from poly.search.run import search
from poly.search.stopping import Budget
from poly.search.strategies import strategies, strategy

NO_LIMIT = Budget(gain=None)
WIDE = (9, 9, 9)


def noisy(made: Space, seconds: Callable[[Point], float], seed: int, noise: float = 0.01) -> Landscape:
    return Landscape(made, seconds, lambda random: abs(random.gauss(0, noise)), seed=seed)


def quality(made: Landscape, name: str | Strategy, trials: int | None, seeds: int = 5, **more: Any) -> float:
    """The median over some seeds of the best time there is over that of what was found."""
    found = []
    for seed in range(seeds):
        made = Landscape(made.space, made.seconds, made.noise, made.drift, made.fails, seed=seed)
        outcome = search(made.space, name, made, budget=Budget(trials=trials, gain=None), random=Random(seed), **more)
        found.append(made.best() / made.seconds(outcome.best))
    return median(found)


def one(seconds: Callable[[Mapping[str, Value]], float], sizes: tuple[int, ...] = WIDE) -> Space:
    return space(structure(seconds, sizes=sizes))


def flat(values: Mapping[str, Value]) -> float:
    return 1e-3


def total(values: Mapping[str, Value]) -> int:
    return sum(value for value in values.values() if value is not None)


# What every strategy keeps


@settings(max_examples=15)
@given(
    name=st.sampled_from(strategies()),
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    holes=st.sets(st.integers(0, 63)),
    failures=st.sets(st.integers(0, 63), max_size=20),
    seed=st.integers(0, 9),
)
def test_every_search_ends_inside_the_space(
    name: str, sizes: list[int], holes: set[int], failures: set[int], seed: int
) -> None:
    def number(values: Mapping[str, Value]) -> int:
        return sum(4**i * (value or 0) for i, value in enumerate(values.values())) % 64

    grid = structure(bowl, tuple(sizes), lambda values: number(values) not in holes, order="rows")
    other = structure(bowl, tuple(sizes), order="columns")
    made = as_predicted(space(grid, other), noise=0.05, seed=seed)
    made.fails = lambda point: (
        "crashed" if point.structure == 1 and number(made.space.values(point)) in failures else ""
    )
    assume(any(not made.fails(point) for point in made.space))
    try:
        outcome = search(made.space, name, made, budget=NO_LIMIT, random=Random(seed))
    except SearchError as error:
        assert "could be measured" in str(error) and name in ("annealing", "raindrop")  # they don't look everywhere
    else:
        assert outcome.best in made.space
        assert not made.fails(outcome.best)
    assert all(point in made.space for point in made.measured)


@pytest.mark.parametrize("name", ["droplet", "droplet-origin", "evolution", "exhaustive", "random"])
@pytest.mark.slow
def test_these_look_at_every_point_when_nothing_stops_them(name: str) -> None:
    made = as_predicted(two_bowls())
    search(made.space, name, made, budget=NO_LIMIT)
    assert set(made.measured) == set(made.space)


def test_the_model_alone_is_one_measurement() -> None:
    made = as_predicted(two_bowls())
    outcome = search(made.space, "model", made)
    assert made.measured == [made.space.choice] == [outcome.best]


def test_the_model_alone_takes_the_next_one_where_its_choice_fails() -> None:
    made = as_predicted(two_bowls())
    first, second = made.space.ranked()[:2]
    made.fails = lambda point: "crashed" if point == first else ""
    assert search(made.space, "model", made).best == second


# Droplet


def test_droplet_rolls_into_a_bowl_from_its_edge_and_random_search_does_not() -> None:
    made = one(flat)
    made_bowl = noisy(made, lambda point: exp(0.04 * sum((i - 6) ** 2 for i in point.at)), 0)
    assert quality(made_bowl, "droplet-origin", 110) == 1.0  # of 729
    assert quality(made_bowl, "random", 110) < 0.97


def test_droplet_crosses_a_plateau() -> None:
    made = one(flat, (12, 6))
    steps = noisy(made, lambda point: 2.0 - (point.at[0] >= 5) - 0.5 * (point.at[0] >= 10), 0)
    assert quality(steps, "droplet-origin", 60) == 1.0


def test_droplet_leaves_a_deceptive_slope() -> None:
    made = one(flat, (10, 5))
    trap = noisy(made, lambda point: 0.5 if point.at == (9, 4) else 1 + 0.05 * sum(point.at), 0)
    assert quality(trap, "droplet-origin", None, seeds=2) == 1.0


def test_droplet_skips_holes_in_the_grid() -> None:
    checkered = space(structure(flat, (9, 9), lambda values: total(values) % 2 == 0))
    slope = noisy(checkered, lambda point: exp(-0.05 * sum(point.at)), 0)
    assert quality(slope, "droplet-origin", 30) == 1.0


def test_droplet_goes_around_points_that_fail() -> None:
    made = one(flat, (7, 7))
    rough = noisy(made, lambda point: exp(-0.05 * sum(point.at)), 0)
    rough.fails = lambda point: "crashed" if Random(str(point.at)).random() < 0.3 else ""
    assert quality(rough, "droplet-origin", 45) > 0.94


def test_droplet_starts_elsewhere_where_the_start_fails() -> None:
    made = as_predicted(two_bowls())
    made.fails = lambda point: "crashed" if point == made.space.choice else ""
    outcome = search(made.space, "droplet", made, budget=Budget(trials=20, gain=None))
    assert made.measured[0] == made.space.choice
    assert made.seconds(outcome.best) == made.best()


def test_droplet_finds_the_better_structure() -> None:
    made = space(*(structure(flat, (4, 4), left=left, right=right) for left in "ab" for right in "abc"))
    worth = {0: 1.2, 1: 1.1, 2: 1.3, 3: 1.0, 4: 0.8, 5: 1.4}
    hills = noisy(made, lambda point: worth[point.structure] * exp(0.03 * sum((i - 2) ** 2 for i in point.at)), 0)
    assert quality(hills, "droplet-origin", 40) == 1.0


def test_the_model_only_orders_what_droplet_tries() -> None:
    """A model that has everything upside down costs measurements, not quality."""
    made = one(lambda values: 1 / bowl(values), (5, 5))
    upside_down = noisy(made, lambda point: bowl(made.values(point)), 0)
    assert quality(upside_down, "droplet", None, seeds=3) == 1.0


def test_a_steady_point_shows_at_once_that_the_model_errs_about_a_structure() -> None:
    made = space(
        structure(bowl, WIDE, right="in place"), structure(lambda values: 2 * bowl(values), WIDE, right="whole")
    )
    steady = replace(made, steady=(Point(1, (4, 4, 4)),))
    lands = [
        noisy(s, lambda point: bowl(made.values(point)) * (1 if point.structure else 3), 0) for s in (made, steady)
    ]
    without, found = (quality(land, "droplet", 8, seeds=3) for land in lands)
    assert found > 0.6
    assert without < 0.4


def test_a_guide_saves_measurements() -> None:
    made = one(bowl, WIDE)
    far = Point(0, (8, 8, 8))
    land = noisy(made, lambda point: bowl(made.values(point)), 0)
    guided, unguided = (quality(land, Droplet(guided=guided), 24, start=far) for guided in (True, False))
    assert guided > unguided


def test_droplet_seldom_moves_where_all_points_are_equally_fast() -> None:
    """Moves of the incumbent on a flat landscape, out of all tests made: 5 % at most."""
    moves = tests = 0
    for seed in range(4):
        made = noisy(one(flat, (6, 6)), lambda point: 1e-3, seed, noise=0.03)
        search(made.space, "droplet", made, budget=NO_LIMIT, random=Random(seed))
        incumbents = [ask.incumbent for ask in made.asked if ask.incumbent]
        moves += sum(a != b for a, b in pairwise(incumbents))
        tests += sum(len(ask.points) for ask in made.asked if ask.incumbent)
    assert tests > 100
    assert moves / tests <= 0.05


# The two phases


def test_raindrop_looks_at_the_best_of_each_structure_first() -> None:
    made = as_predicted(two_bowls())
    search(made.space, Raindrop(samples=0), made, budget=NO_LIMIT)
    assert {point.structure for point in made.measured[:2]} == {0, 1}
    assert {point.at for point in made.measured[:2]} == {(2, 2, 2)}


def test_raindrop_descends_where_the_model_did_not_expect_it() -> None:
    made = space(*(structure(lambda values, f=f: f * bowl(values), (5, 5), order=str(f)) for f in (1.0, 1.1, 1.2)))
    truth = noisy(made, lambda point: exp(0.05 * sum((i - 4) ** 2 for i in point.at)) * (3 - point.structure), 0)
    assert quality(truth, "raindrop", 40) == 1.0


# Annealing and evolution


@pytest.mark.parametrize("name", ["annealing", "evolution"])
def test_they_come_near_the_bottom_of_a_bowl(name: str) -> None:
    land = noisy(one(flat), lambda point: exp(0.04 * sum((i - 6) ** 2 for i in point.at)), 0)
    assert quality(land, name, 140) >= 0.92


def test_a_child_has_its_parents_traits_and_knobs() -> None:
    made = space(*(structure(flat, (4, 4), left=left, right=right) for left in "ab" for right in "ab"))
    mother, father = Point(0, (0, 3)), Point(3, (2, 1))
    children = {crossed(made, mother, father, Random(seed)) for seed in range(60)}
    assert {child.structure for child in children} == {0, 1, 2, 3}
    assert {child.at for child in children} == {(a, b) for a in (0, 2) for b in (3, 1)}


# Neighbourhoods


def test_along_and_across() -> None:
    made = space(structure(flat, (3, 4), lambda values: values["b"] != 2))
    assert list(along(made, Point(0, (1, 0)), 1)) == [Point(0, (2, 0)), Point(0, (0, 0)), Point(0, (1, 2))]
    assert list(across(made, Point(0, (1, 2)), 1)) == [Point(0, (2, 3)), Point(0, (0, 3))]


@given(
    holes=st.sets(st.tuples(st.integers(1, 4), st.integers(1, 3)), max_size=12),
    values=st.tuples(st.one_of(st.none(), st.integers(-2, 9)), st.integers(-2, 9)),
)
def test_the_nearest_point_is_the_fewest_steps_away(
    holes: set[tuple[int, int]], values: tuple[int | None, int]
) -> None:
    made = structure(flat, (4, 3), lambda values: (values["a"], values["b"]) not in holes)
    wanted = (3 if values[0] is None else min(max(values[0], 1), 4) - 1, min(max(values[1], 1), 3) - 1)
    steps = [abs(a - wanted[0]) + abs(b - wanted[1]) for a, b in made.points()]
    found = made.nearest({"a": values[0], "b": values[1]})
    assert (found is None) == (not steps)
    if found is not None:
        assert made.allows(made.values(found))
        assert abs(found[0] - wanted[0]) + abs(found[1] - wanted[1]) == min(steps)


def test_elsewhere_begins_with_the_most_alike() -> None:
    made = space(*(structure(flat, (2,), left=left, right=right) for left in "ab" for right in "ab"))
    assert [point.structure for point in elsewhere(made, Point(0, (1,)))] == [1, 2, 3]
    assert {point.at for point in elsewhere(made, Point(0, (1,)))} == {(1,)}


def test_neighbours_are_points_of_the_space_and_others() -> None:
    made = two_bowls()
    for point in made.sample(10, Random(0)):
        around = list(neighbours(made, point, 2))
        assert point not in around
        assert all(other in made for other in around)


# Proposal orders


def tried(*points: Point) -> Journal:
    """A journal in which these points were asked for, and failed."""
    journal = Journal()
    journal.enter(Ask(points), [Trial(point, (), failure="crashed") for point in points])
    return journal


@pytest.mark.parametrize("order", [NearestFirst, ExpectedFirst])
def test_an_order_names_every_other_point_once(order: type[NearestFirst] | type[ExpectedFirst]) -> None:
    made = two_bowls()
    asked = made.sample(30, Random(1))
    points = list(order(made, 2, Random(0)).points(made.choice, tried(*asked)))
    assert sorted(points) == sorted(set(made) - set(asked))


def test_the_nearest_are_the_steps_of_one_knob() -> None:
    made = two_bowls()
    points = NearestFirst(made, 2, Random(0)).points(made.choice, tried(made.choice))
    assert list(islice(points, 6)) == list(along(made, made.choice, 1))


def test_the_guided_order_takes_a_neighbour_and_the_best_of_all_in_turn() -> None:
    made = space(structure(lambda values: 1 / total(values), (9, 9)))
    here = Point(0, (1, 1))
    near, far = islice(ExpectedFirst(made, 2, Random(0)).points(here, tried(here)), 2)
    assert near == max(neighbours(made, here, 2), key=lambda point: sum(point.at))
    assert far == Point(0, (8, 8))


def test_the_guided_order_learns_where_the_model_errs() -> None:
    """What was measured in the structure that the model likes was slow: the other one comes first."""
    made = space(structure(bowl, order="rows"), structure(lambda values: 1.05 * bowl(values), order="columns"))
    known = [point for point in made.sample(40, Random(2)) if point != made.choice]
    slow = Journal(Trial(p, (made.predict(p).seconds * (1.3 - 0.3 * p.structure),) * 3) for p in known)
    unlearned, learned = (
        next(ExpectedFirst(made, 2, Random(0)).points(made.choice, journal)) for journal in (tried(*known), slow)
    )
    assert (unlearned.structure, learned.structure) == (0, 1)


def test_the_guided_order_begins_with_the_steady_points() -> None:
    made = two_bowls()
    first, second = made.sample(2, Random(3))
    made = replace(made, steady=(first, second))
    assert list(islice(ExpectedFirst(made, 2, Random(0)).points(made.choice, tried(made.choice)), 2)) == [first, second]
    assert next(ExpectedFirst(made, 2, Random(0)).points(made.choice, tried(made.choice, first))) == second


# Samples


def test_a_sample_of_a_large_space_is_as_even_as_one_of_its_list() -> None:
    """Two structures, one of them nine parts holes: points are as likely in both."""
    full = structure(flat, (10, 10, 10))
    sparse = structure(flat, (10, 10, 10), lambda values: values["a"] == 1)
    made = space(full, sparse)
    points = [point for seed in range(40) for point in sampled(made, 50, Random(seed))]
    assert all(point in made for point in points)
    assert len(set(points[:50])) == 50
    assert sum(point.structure for point in points) / len(points) == pytest.approx(100 / 1100, abs=0.02)


def test_a_sample_of_a_space_that_is_nearly_all_holes() -> None:
    made = space(structure(flat, (30, 30, 30), lambda values: values["a"] == values["b"] == 1))
    assert len(set(sampled(made, 25, Random(0)))) == 25
    assert len(sampled(made, 99, Random(0))) == 30


def test_everywhere_is_every_point_once_the_model_s_favourites_first() -> None:
    made = two_bowls()
    points = list(everywhere(made, by_model(made), Random(0)))
    assert sorted(points) == sorted(made)
    assert [made.predict(point).seconds for point in points] == sorted(made.predict(p).seconds for p in made)


# The registry


def test_an_unknown_strategy_is_named_with_the_nearest_one() -> None:
    with pytest.raises(
        SearchError, match=r"no strategy named 'dropet'; did you mean 'droplet'\? There are: annealing, "
    ):
        strategy("dropet")
    with pytest.raises(SearchError, match=r"no strategy named 'xyz'\. There are: "):
        strategy("xyz")


def test_the_example_of_a_strategy_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_STRATEGIES", dict(registry._STRATEGIES))
    example = "\n".join(re.findall(r"^    (.*)|^$", registry.__doc__ or "", re.MULTILINE))
    exec(example, {})
    made = as_predicted(one(bowl))
    outcome = search(made.space, "greedy", made, start=Point(0, (8, 8, 8)), budget=NO_LIMIT)
    assert made.seconds(outcome.best) == made.best()
    assert "greedy" in strategies()


def test_a_package_adds_a_strategy_by_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("their_package")
    monkeypatch.setattr(module, "theirs", strategy("random"), raising=False)
    monkeypatch.setitem(sys.modules, "their_package", module)
    entry = EntryPoint("theirs", "their_package:theirs", registry.GROUP)
    monkeypatch.setattr(plugins, "entry_points", lambda **wanted: EntryPoints([entry]).select(**wanted))
    assert "theirs" in strategies()
    assert strategy("theirs") is strategy("random")
