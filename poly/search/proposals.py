"""In which order points are proposed: those around a point, samples of a space, all of it, by a model or by chance."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from functools import cache, cached_property
from itertools import chain, zip_longest
from math import prod
from random import Random

from poly.autoschedule.spaces.space import Point, Space
from poly.search.journal import Journal
from poly.search.neighbourhood import neighbours
from poly.search.surrogate import Surrogate

Order = Callable[[Iterable[Point]], list[Point]]
"""Puts points to be tried into an order."""
MOST = 1000
"""How many points are predicted at most to find those to go on with: a second's work."""
TRIES = 20
"""How many places of the grids are looked at for each point of a sample before the space is enumerated after all."""


class NearestFirst:
    """The neighbours of the incumbent, the nearest first; then those of the second best point, and so on."""

    def __init__(self, space: Space, reach: int, random: Random) -> None:
        self._around = cache(lambda point: tuple(neighbours(space, point, reach)))
        self._rest = everywhere(space, list, random)

    def points(self, incumbent: Point, journal: Journal) -> Iterator[Point]:
        """What to try next, in order: every point of the space that is not in the journal, in the end."""
        drops = chain((incumbent,), journal.ranking.points())
        return _new(chain(chain.from_iterable(map(self._around, drops)), self._rest), journal)


class ExpectedFirst:
    """In turn a neighbour of the incumbent and a point from anywhere, those first that are expected to be fastest.

    Expected is the model's prediction, corrected by its errors at the points measured so far (`Surrogate`).
    """

    def __init__(self, space: Space, reach: int, random: Random) -> None:
        self._space, self._random = space, random
        self._around = cache(lambda point: tuple(neighbours(space, point, reach)))
        self._surrogate = Surrogate(space)
        self._rest = everywhere(space, list, random)

    def points(self, incumbent: Point, journal: Journal) -> Iterator[Point]:
        """What to try next, in order: every point of the space that is not in the journal, in the end."""
        self._surrogate.learn(journal.ranking)
        candidates = self._around(incumbent), self._anywhere
        near, far = (self._surrogate.sorted(_new(points, journal)) for points in candidates)
        in_turn = (point for pair in zip_longest(near, far) for point in pair if point is not None)
        return _new(chain(in_turn, self._rest), journal)

    @cached_property
    def _anywhere(self) -> list[Point]:
        return sampled(self._space, MOST, self._random)


def _new(points: Iterable[Point], known: Container[Point]) -> Iterator[Point]:
    """The points that are not known, each once."""
    given: set[Point] = set()
    for point in points:
        if point not in known and point not in given:
            given.add(point)
            yield point


def by_model(space: Space) -> Order:
    """The order of predicted seconds; each point is predicted once."""
    predict = cache(lambda point: space.predict(point).seconds)
    return lambda points: sorted(points, key=predict)


def sampled(space: Space, count: int, random: Random) -> list[Point]:
    """What `Space.sample` gives: so many different points, each as likely as any other.

    A large space is not enumerated for that: places of its grids are drawn until enough of them are points.
    """
    places = [prod(len(knob.values) for knob in structure.knobs) for structure in space.structures]
    if sum(places) < TRIES * count:
        return space.sample(count, random)
    found: dict[Point, None] = {}
    for number in random.choices(range(len(places)), places, k=TRIES * count):
        knobs = space.structures[number].knobs
        point = Point(number, tuple(random.randrange(len(knob.values)) for knob in knobs))
        if point in space:
            found[point] = None
        if len(found) == count:
            return list(found)
    return space.sample(count, random)


def everywhere(space: Space, order: Order, random: Random) -> Iterator[Point]:
    """All points of the space: first a sample of `MOST` in order, then, in a larger space, the rest at random.

    Nothing is done before the first is asked for.
    """
    first = order(sampled(space, MOST, random))
    yield from first
    known = set(first)
    yield from (point for point in space.sample(len(space), random) if point not in known)


def batches(points: Iterable[Point], size: int) -> Iterable[tuple[Point, ...]]:
    """The points in groups of so many, taken from where they come from as they are needed."""
    group: list[Point] = []
    for point in points:
        group.append(point)
        if len(group) == size:
            yield tuple(group)
            group = []
    if group:
        yield tuple(group)
