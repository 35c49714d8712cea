"""Droplet Search: coordinate descent on the grid of knobs, each move proven by a test.

After Canesche, Rosário, Borin and Pereira, "The Droplet Search Algorithm for Kernel Scheduling" (ACM TACO 21, 2024,
doi 10.1145/3650109). A drop rolls downhill: the neighbours of the champion are measured in batches, each in turn with
it, and one that is faster by a test becomes the champion. What is left of a batch is filled with neighbours further
away, so a batch is a whole one although the near ones are few (the paper's speculation).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from random import Random

from poly.search.champion import crowned
from poly.search.moves import rings
from poly.search.trial import Ask, Search, Trial
from poly.spaces.space import Point, Space

Around = Callable[[Point], Iterable[Point]]
"""The points to try around a champion, those to be tried first in front."""


def descend(champion: Point, around: Around, seen: set[Point], batch: int) -> Generator[Ask, list[Trial], Point]:
    """Rolls downhill from a measured champion until none of the points around it wins; returns the last champion.

    Points in `seen` are left out; those that are asked for are added to it.
    """
    while asked := tuple(islice(_fresh(around(champion), seen), batch)):
        seen.update(asked)
        trials = yield Ask(asked, champion)
        champion = crowned(champion, trials) or champion
    return champion


def opening(start: Point, around: Around, seen: set[Point], batch: int) -> Generator[Ask, list[Trial], Point | None]:
    """Measures the start; where it fails, the points around it until one succeeds. None where all fail."""
    queue = chain((start,), around(start))
    size = 1
    while asked := tuple(islice(_fresh(queue, seen), size)):
        seen.update(asked)
        champion = crowned(None, (yield Ask(asked)))
        if champion is not None:
            return champion
        size = batch
    return None


def _fresh(points: Iterable[Point], seen: set[Point]) -> Iterator[Point]:
    """The points not seen, each once."""
    known = set(seen)
    for point in points:
        if point not in known:
            known.add(point)
            yield point


@dataclass(frozen=True)
class Droplet:
    """Droplet Search over all structures of a space.

    When the knobs of a structure have converged, the structures that differ in one trait are tried with the nearest
    sizes; where one of them wins, the descent goes on there. `batch` is how many points are asked for at a time.
    `guided` puts the neighbours that the model expects to be fast in front: it saves measurements and decides nothing,
    for every move is a test on measured samples. Unguided is the form of the paper, which needs no model.
    """

    guided: bool = True
    batch: int = 4

    def __call__(self, space: Space, start: Point, random: Random) -> Search:
        order = _by_model(space) if self.guided else list

        def around(point: Point) -> Iterable[Point]:
            return order(rings(space, point))

        def beside(point: Point) -> Iterable[Point]:
            return order(space.siblings(point))

        seen: set[Point] = set()
        champion = yield from opening(start, lambda point: chain(around(point), space), seen, self.batch)
        before = None
        while champion is not None and champion != before:
            before = yield from descend(champion, around, seen, self.batch)
            champion = yield from descend(before, beside, seen, self.batch)


def from_origin(space: Space, start: Point, random: Random) -> Search:
    """The paper's own setting: from the un-optimised corner, wherever the model would start, and without the model."""
    return Droplet(guided=False)(space, space.origin, random)


def _by_model(space: Space) -> Callable[[Iterable[Point]], list[Point]]:
    """Puts points into the order of their predicted seconds; each is predicted once."""
    predict = cache(lambda point: space.predict(point).seconds)
    return lambda points: sorted(points, key=predict)
