"""What was found for other sizes of a nest, as points of a new size's space.

Transfer-Tuning (Gibson and Cano, PACT 2022) reuses whole schedules between kernels of one class; here the class is the
nest itself, so that structures correspond by their traits and sizes of tiles are clamped to the new grid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random

from poly.search.trial import Ask, Search, Strategy, Trial
from poly.spaces.space import Point, Space, Value

Traits = tuple[tuple[str, str], ...]


def placed(space: Space, traits: Traits, values: Mapping[str, Value]) -> Point | None:
    """The point of a space that is most like a schedule found elsewhere.

    Its structure shares the most traits (the first of several in the space's order), its knobs are the nearest.
    None where that structure has no allowed point.
    """
    known = set(traits)
    numbers = range(len(space.structures))
    alike = max(numbers, key=lambda n: len(known.intersection(space.structures[n].traits)))
    return space.nearest(alike, values)


def transferred(space: Space, found: Iterable[tuple[Traits, Mapping[str, Value]]], most: int) -> tuple[Point, ...]:
    """At most so many different points for what was found elsewhere, in its order, without the model's choice."""
    points: dict[Point, None] = {}
    for traits, values in found:
        point = placed(space, traits, values)
        if point is not None and point != space.choice:
            points[point] = None
    return tuple(points)[:most]


def seeded(strategy: Strategy, seeds: tuple[Point, ...]) -> Strategy:
    """The strategy that first measures `seeds` beside the start, and then begins at the best of them."""

    def search(space: Space, start: Point, random: Random) -> Search:
        trials = yield Ask((start, *(seed for seed in seeds if seed != start)))
        yield from strategy(space, _best(trials, start), random)

    return search


def _best(trials: list[Trial], otherwise: Point) -> Point:
    """The point with the least median; `otherwise` where all failed."""
    from statistics import median

    sound = [trial for trial in trials if trial.samples]
    return min(sound, key=lambda trial: median(trial.samples)).point if sound else otherwise
