"""Explore as a storm, exploit as a raindrop: sample many structures, then descend in the best few.

After Canesche, Rosário, Pereira et al., "Explore as a Storm, Exploit as a Raindrop" (arXiv 2406.20037), where the storm
is Ansor's first trials. Here it consists of the model's best point of each structure, and of random points.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from itertools import islice
from random import Random

from poly.autoschedule.spaces.space import Point, Space
from poly.search.events import Ask, Search, Trial
from poly.search.journal import Journal, successor
from poly.search.neighbourhood import across, along
from poly.search.proposals import MOST, Order, batches, by_model, everywhere, sampled


@dataclass(frozen=True)
class Raindrop:
    """The two phases.

    The storm measures the start, the model's best point of each of the `structures` most promising structures, and
    `samples` random points. Then one drop after the other rolls downhill from the best point of each of the `drops`
    fastest structures, within that structure. `batch` is the number of points asked for at a time.
    """

    structures: int = 12
    samples: int = 4
    drops: int = 3
    batch: int = 4

    def __call__(self, space: Space, start: Point, random: Random) -> Search:
        order = by_model(space)
        journal = Journal()
        for points in batches(self._storm(space, start, order, random), self.batch):
            ask = Ask(points, journal.incumbent)
            journal.enter(ask, (yield ask))
        for drop in islice(_first_of_each(journal.ranking.points()), self.drops):
            yield from _descent(drop, _within(space, order), journal, self.batch)

    def _storm(self, space: Space, start: Point, order: Order, random: Random) -> list[Point]:
        best = islice(_first_of_each(islice(everywhere(space, order, random), MOST)), self.structures)
        return list(dict.fromkeys([start, *best, *sampled(space, self.samples, random)]))


def _first_of_each(points: Iterable[Point]) -> Iterable[Point]:
    """The first point of each structure, in the given order."""
    first: dict[int, Point] = {}
    for point in points:
        first.setdefault(point.structure, point)
    return first.values()


def _within(space: Space, order: Order) -> Callable[[Point], Iterable[Point]]:
    """The neighbours of a point in its own structure, with one or two knobs moved by a step, in the given order."""
    return lambda point: order({*along(space, point, 1), *across(space, point, 1)})


def _descent(
    drop: Point, around: Callable[[Point], Iterable[Point]], journal: Journal, batch: int
) -> Generator[Ask, list[Trial], None]:
    """Move from a measured point to neighbours that beat it until none does."""
    while fresh := tuple(islice((point for point in around(drop) if point not in journal), batch)):
        ask = Ask(fresh, drop)
        drop = successor(drop, journal.enter(ask, (yield ask))) or drop
