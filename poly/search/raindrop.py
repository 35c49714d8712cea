"""Explore as a storm, exploit as a raindrop: a look at many structures, then a descent in the best few.

After Canesche, Rosário, Pereira et al., "Explore as a Storm, Exploit as a Raindrop" (arXiv 2406.20037), where the storm
is Ansor's first trials. Here it falls where the model expects most of each structure, and somewhere else at random.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from itertools import islice
from random import Random

from poly.search.champion import batches, crowned
from poly.search.moves import across, along
from poly.search.ranking import MOST, Order, by_model, everywhere, sampled
from poly.search.standing import Standing
from poly.search.trial import Ask, Search, Trial
from poly.spaces.space import Point, Space


@dataclass(frozen=True)
class Raindrop:
    """The two phases.

    The storm measures the start, the model's best point of each of at most `structures` structures (those that it
    expects most of), and `samples` random points. Then one drop after the other rolls downhill from the best points of
    the `drops` fastest structures, each within its structure. `batch` is how many points are asked for at a time.
    """

    structures: int = 12
    samples: int = 4
    drops: int = 3
    batch: int = 4

    def __call__(self, space: Space, start: Point, random: Random) -> Search:
        order = by_model(space)
        standing = Standing()
        asked: set[Point] = set()
        champion: Point | None = None
        for points in batches(self._storm(space, start, order, random), self.batch):
            asked.update(points)
            trials = yield Ask(points, champion)
            champion = crowned(champion, trials)
            for trial in trials:
                standing.add(trial)
        for drop in islice(_first_of_each(standing.ranked()), self.drops):
            yield from _descent(drop, _within(space, order), asked, self.batch)

    def _storm(self, space: Space, start: Point, order: Order, random: Random) -> list[Point]:
        best = islice(_first_of_each(islice(everywhere(space, order, random), MOST)), self.structures)
        return list(dict.fromkeys([start, *best, *sampled(space, self.samples, random)]))


def _first_of_each(points: Iterable[Point]) -> Iterable[Point]:
    """The first point of each structure, in the order given."""
    first: dict[int, Point] = {}
    for point in points:
        first.setdefault(point.structure, point)
    return first.values()


def _within(space: Space, order: Order) -> Callable[[Point], Iterable[Point]]:
    """The neighbours of a point in its own structure, one knob or two moved by a step, in the order given."""
    return lambda point: order({*along(space, point, 1), *across(space, point, 1)})


def _descent(
    champion: Point, around: Callable[[Point], Iterable[Point]], asked: set[Point], batch: int
) -> Generator[Ask, list[Trial], None]:
    """Moves from a measured point to neighbours that beat it until none does."""
    while fresh := tuple(islice((point for point in around(champion) if point not in asked), batch)):
        asked.update(fresh)
        champion = crowned(champion, (yield Ask(fresh, champion))) or champion
