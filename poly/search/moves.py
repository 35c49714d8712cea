"""From a point to its neighbours: along the grid of knobs, and across to other structures."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

from poly.spaces.space import Point, Space


def lines(space: Space, point: Point) -> list[list[Point]]:
    """For each knob the points that differ from this one in that knob alone, the knob ascending, and this one.

    Points outside the space are left out, so the neighbour beyond a hole is next on its line.
    """
    knobs = space.structures[point.structure].knobs
    return [
        [p for p in (_moved(point, {k: i}) for i in range(len(knob.values))) if p in space]
        for k, knob in enumerate(knobs)
    ]


def along(space: Space, point: Point, radius: int) -> Iterator[Point]:
    """The points so many steps away from this one along one knob, upwards first."""
    for line in lines(space, point):
        here = line.index(point)
        if here + radius < len(line):
            yield line[here + radius]
        if here - radius >= 0:
            yield line[here - radius]


def across(space: Space, point: Point, radius: int, together: int) -> Iterator[Point]:
    """The points at which so many knobs differ from this one's by so many steps, in every mix of up and down."""
    for knobs in combinations(range(len(point.at)), together):
        for signs in product((radius, -radius), repeat=together):
            moved = _moved(point, {k: point.at[k] + sign for k, sign in zip(knobs, signs, strict=True)})
            if moved in space:
                yield moved


def rings(space: Space, point: Point) -> Iterator[Point]:
    """Every neighbour that a descent looks at, by one knob, all knobs together, two knobs; the nearest first.

    The radius grows up to the length of the longest knob, so a wide plateau is crossed.
    """
    knobs = len(point.at)
    longest = max((len(knob.values) for knob in space.structures[point.structure].knobs), default=1)
    for radius in range(1, longest):
        yield from along(space, point, radius)
        for together in sorted({knobs, 2} - {0, 1}, reverse=True):
            yield from across(space, point, radius, together)


def _moved(point: Point, knobs: dict[int, int]) -> Point:
    return Point(point.structure, tuple(knobs.get(k, i) for k, i in enumerate(point.at)))
