"""Points in the order in which the model expects them to be fast; a large space is looked at by a sample."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from random import Random

from poly.spaces.space import Point, Space

Order = Callable[[Iterable[Point]], list[Point]]
"""Puts points to be tried into an order."""
MOST = 1000
"""How many points are predicted at most to find those to go on with: a second's work."""


def by_model(space: Space) -> Order:
    """The order of predicted seconds; each point is predicted once."""
    predict = cache(lambda point: space.predict(point).seconds)
    return lambda points: sorted(points, key=predict)


def everywhere(space: Space, order: Order, random: Random) -> Iterator[Point]:
    """All points of the space: first a sample of `MOST` in order, then, in a larger space, the rest as it comes.

    Nothing is done before the first is asked for.
    """
    first = order(space.sample(MOST, random))
    yield from first
    known = set(first)
    yield from (point for point in space if point not in known)
