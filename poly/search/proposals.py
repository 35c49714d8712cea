"""Orders in which points are proposed: around a point, from a sample, or all of a space, by a model or at random."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from functools import cache
from itertools import chain, zip_longest
from math import prod
from random import Random

from microkernels.cached import cached_property
from poly.autoschedule.spaces.space import Point, Space
from poly.search.journal import Journal
from poly.search.neighbourhood import neighbours
from poly.search.surrogate import Surrogate

Order = Callable[[Iterable[Point]], list[Point]]
"""Orders the points to be tried."""
MOST = 1000
"""The most points that are predicted to choose the next ones: a second of work."""
TRIES = 20
"""Grid positions drawn per point of a sample before falling back on enumerating the space."""


class NearestFirst:
    """The neighbours of the incumbent, nearest first; then those of the second-best point, and so on."""

    def __init__(self, space: Space, reach: int, random: Random) -> None:
        self._around = cache(lambda point: tuple(neighbours(space, point, reach)))
        self._rest = everywhere(space, list, random)

    def points(self, incumbent: Point, journal: Journal) -> Iterator[Point]:
        """The points to try next, in order; eventually every point of the space that is not in the journal."""
        drops = chain((incumbent,), journal.ranking.points())
        return _new(chain(chain.from_iterable(map(self._around, drops)), self._rest), journal)


class ExpectedFirst:
    """Alternately a neighbour of the incumbent and a point from anywhere, each with the fastest expected first.

    The expectation is the model's prediction, corrected by its errors at the points measured so far (`Surrogate`). So
    that it learns at once of a model that errs about copies, the space's steady points come before all others.
    """

    def __init__(self, space: Space, reach: int, random: Random) -> None:
        self._space, self._random = space, random
        self._around = cache(lambda point: tuple(neighbours(space, point, reach)))
        self._surrogate = Surrogate(space)
        self._rest = everywhere(space, list, random)

    def points(self, incumbent: Point, journal: Journal) -> Iterator[Point]:
        """The points to try next, in order; eventually every point of the space that is not in the journal."""
        self._surrogate.learn(journal.ranking)
        candidates = self._around(incumbent), self._anywhere
        near, far = (self._surrogate.sorted(_new(points, journal)) for points in candidates)
        in_turn = (point for pair in zip_longest(near, far) for point in pair if point is not None)
        return _new(chain(self._space.steady, in_turn, self._rest), journal)

    @cached_property
    def _anywhere(self) -> list[Point]:
        return sampled(self._space, MOST, self._random)


def _new(points: Iterable[Point], known: Container[Point]) -> Iterator[Point]:
    """The points that are not yet known, without repetition."""
    given: set[Point] = set()
    for point in points:
        if point not in known and point not in given:
            given.add(point)
            yield point


def by_model(space: Space) -> Order:
    """The order by predicted seconds; each point is predicted once."""
    predict = cache(lambda point: space.predict(point).seconds)
    return lambda points: sorted(points, key=predict)


def sampled(space: Space, count: int, random: Random) -> list[Point]:
    """Up to `count` distinct points, chosen uniformly like `Space.sample`.

    A large space is not enumerated: positions of its grids are drawn until enough of them are points.
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
    """All points of the space: first a sample of `MOST` in order, then the rest of a larger space at random.

    Nothing is computed before the first point is requested.
    """
    first = order(sampled(space, MOST, random))
    yield from first
    known = set(first)
    yield from (point for point in space.sample(len(space), random) if point not in known)


def batches(points: Iterable[Point], size: int) -> Iterable[tuple[Point, ...]]:
    """The points in groups of `size`, taken lazily."""
    group: list[Point] = []
    for point in points:
        group.append(point)
        if len(group) == size:
            yield tuple(group)
            group = []
    if group:
        yield tuple(group)
