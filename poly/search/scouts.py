"""Where a descent looks next: around its points as they lie, or where the corrected model expects most."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from functools import cache, cached_property
from itertools import chain, zip_longest
from random import Random

from poly.search.belief import Belief
from poly.search.moves import neighbours
from poly.search.ranking import MOST, everywhere, sampled
from poly.search.standing import Standing
from poly.spaces.space import Point, Space


class Plain:
    """The neighbours of the champion, the nearest first; then those of the second best point, and so on."""

    def __init__(self, space: Space, reach: int, random: Random) -> None:
        self._around = cache(lambda point: tuple(neighbours(space, point, reach)))
        self._rest = everywhere(space, list, random)

    def points(self, champion: Point, standing: Standing, asked: Container[Point]) -> Iterator[Point]:
        """What to try next, in order: every point of the space that was not asked for, in the end."""
        drops = chain((champion,), standing.ranked())
        return _new(chain(chain.from_iterable(map(self._around, drops)), self._rest), asked)


class Guided:
    """In turn a neighbour of the champion and a point from anywhere, those first that are expected to be fastest.

    Expected is the model's prediction, corrected by its errors at the points measured so far (`Belief`).
    """

    def __init__(self, space: Space, reach: int, random: Random) -> None:
        self._space, self._random = space, random
        self._around = cache(lambda point: tuple(neighbours(space, point, reach)))
        self._belief = Belief(space)
        self._rest = everywhere(space, list, random)

    def points(self, champion: Point, standing: Standing, asked: Container[Point]) -> Iterator[Point]:
        """What to try next, in order: every point of the space that was not asked for, in the end."""
        self._belief.learn(standing)
        near, far = (self._belief.sorted(_new(points, asked)) for points in (self._around(champion), self._anywhere))
        in_turn = (point for pair in zip_longest(near, far) for point in pair if point is not None)
        return _new(chain(in_turn, self._rest), asked)

    @cached_property
    def _anywhere(self) -> list[Point]:
        return sampled(self._space, MOST, self._random)


def _new(points: Iterable[Point], asked: Container[Point]) -> Iterator[Point]:
    """The points that were not asked for, each once."""
    given: set[Point] = set()
    for point in points:
        if point not in asked and point not in given:
            given.add(point)
            yield point
