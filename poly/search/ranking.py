"""Which points to try when nothing near is left: all of a small space, a sample of a large one, in some order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from math import prod
from random import Random

from poly.spaces.space import Point, Space

Order = Callable[[Iterable[Point]], list[Point]]
"""Puts points to be tried into an order."""
MOST = 1000
"""How many points are predicted at most to find those to go on with: a second's work."""
TRIES = 20
"""How many places of the grids are looked at for each point of a sample before the space is enumerated after all."""


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
