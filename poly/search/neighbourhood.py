"""The neighbours of a point: along the grid of knobs, and in other structures."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

from poly.autoschedule.spaces.space import Point, Space


def along(space: Space, point: Point, radius: int) -> Iterator[Point]:
    """The points `radius` steps away along one knob, upwards first; holes in the grid do not count as steps."""
    for knob in range(len(point.at)):
        line = _line(space, point, knob)
        here = line.index(point)
        if here + radius < len(line):
            yield line[here + radius]
        if here >= radius:
            yield line[here - radius]


def across(space: Space, point: Point, radius: int) -> Iterator[Point]:
    """The points at which two knobs differ by `radius` steps, in every combination of up and down."""
    for knobs in combinations(range(len(point.at)), 2):
        for signs in product((radius, -radius), repeat=2):
            moved = _moved(point, {k: point.at[k] + sign for k, sign in zip(knobs, signs, strict=True)})
            if moved in space:
                yield moved


def elsewhere(space: Space, point: Point) -> Iterator[Point]:
    """The nearest point of every other structure, structures with the most common traits first."""
    here = set(space.structures[point.structure].traits)

    def differ(number: int) -> int:
        return len(here.symmetric_difference(space.structures[number].traits))

    others = sorted((n for n in range(len(space.structures)) if n != point.structure), key=differ)
    for number in others:
        found = space.nearest(number, space.values(point))
        if found is not None:
            yield found


def neighbours(space: Space, point: Point, reach: int) -> Iterator[Point]:
    """The points of the space around this one, nearest first, possibly with repetitions.

    First one knob moves by a step, or one trait of the structure changes; then two knobs move together; then one or two
    knobs move by two steps, and so on up to `reach`; finally come all other structures.
    """
    for radius in range(1, reach + 1):
        yield from along(space, point, radius)
        yield from space.siblings(point) if radius == 1 else ()
        yield from across(space, point, radius)
    yield from elsewhere(space, point)


def _line(space: Space, point: Point, knob: int) -> list[Point]:
    """The points of the space that differ from this one at most in one knob, in ascending order of it."""
    size = len(space.structures[point.structure].knobs[knob].values)
    return [moved for i in range(size) if (moved := _moved(point, {knob: i})) in space]


def _moved(point: Point, knobs: dict[int, int]) -> Point:
    return Point(point.structure, tuple(knobs.get(k, i) for k, i in enumerate(point.at)))
