"""A measured space: its table laid over it, and how good each point is.

The best of a table was chosen for its time among hundreds, so it was also lucky, and its median flatters it (the
winner's curse). So the visits are cut into halves: the best of one half is judged by its median in the other, and so
is the point compared with it. `quality` is the geometric mean of both ways round; it may exceed 1 by the noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from statistics import median

from benchmarks.search.table import Entry, Key, Table, key
from poly.cost import Cost
from poly.errors import SearchError
from poly.spaces.space import Point, Space, Structure, Values

Half = Mapping[Point, float]
"""The median seconds of each point in one half of its visits."""


@dataclass(frozen=True)
class Landscape:
    """The measured points of a problem's space.

    `space` holds no others. Its choice is the whole space's, or the model's best of its points where that one could
    not be measured.
    """

    problem: str
    space: Space
    table: Table

    @cached_property
    def entries(self) -> dict[Point, Entry]:
        return {point: self.table.entries[key(self.space, point)] for point in self.space}

    @cached_property
    def visits(self) -> dict[Point, list[tuple[float, ...]]]:
        """The samples of each visit to each point that could be measured, at one level."""
        return {p: self.table.visits(key(self.space, p)) for p, entry in self.entries.items() if entry.passes}

    @cached_property
    def seconds(self) -> dict[Point, float]:
        """The median of all samples of a point."""
        return {point: median(s for visit in visits for s in visit) for point, visits in self.visits.items()}

    @cached_property
    def qualities(self) -> dict[Point, float]:
        """How fast each point is, relative to the best one; 0 for a point that failed."""
        first, second = halves(self.visits)
        best_of_first, best_of_second = min(first, key=first.__getitem__), min(second, key=second.__getitem__)
        found = {p: sqrt(second[best_of_first] / second[p] * first[best_of_second] / first[p]) for p in first}
        return {point: found.get(point, 0.0) for point in self.entries}

    @cached_property
    def plain(self) -> dict[Point, float]:
        """The same by the least median of all, which flatters the best of the table; 0 for a point that failed."""
        best = min(self.seconds.values())
        return {point: best / self.seconds[point] if point in self.seconds else 0.0 for point in self.entries}

    @cached_property
    def ranked(self) -> list[Point]:
        """The points as the model ranks them."""
        return self.space.ranked()

    def as_good_as(self, level: float) -> int:
        """How many points reach a quality."""
        return sum(quality >= level for quality in self.qualities.values())


def halves(visits: Mapping[Point, list[tuple[float, ...]]]) -> tuple[Half, Half]:
    """The medians over every second visit, and over the others; of a single visit, over every second sample."""

    def half(visits: list[tuple[float, ...]], start: int) -> float:
        if len(visits) == 1:
            (samples,) = visits
            return median(samples[start::2] or samples)
        return median(s for visit in visits[start::2] for s in visit)

    return (
        {point: half(found, 0) for point, found in visits.items()},
        {point: half(found, 1) for point, found in visits.items()},
    )


def landscape(table: Table, space: Space) -> Landscape:
    """The points that are both in the table and in the space. Raises SearchError where fewer than two were measured."""
    if sum(table.measured(key(space, point)) for point in space) < 2:
        raise SearchError(
            f"the table of {table.problem} has fewer than two points of the space as it is now: measure it again "
            "(poly bench search --measure)."
        )
    structures = tuple(_known(structure, table) for structure in space.structures)
    cut = replace(space, structures=tuple(s for s in structures if any(True for _ in s.points())))
    points = [point for point in cut if table.measured(key(cut, point))]
    chosen = key(space, space.choice)
    favourite = min(points, key=lambda point: cut.predict(point).seconds)
    choice = next((point for point in points if key(cut, point) == chosen), favourite)
    return Landscape(table.problem, replace(cut, choice=choice), table)


def missing(table: Table, space: Space) -> tuple[int, int]:
    """How many points of the space the table lacks, and how many of the table the space no longer has."""
    points = {key(space, point) for point in space}
    return len(points - table.entries.keys()), len(table.entries.keys() - points)


def _known(structure: Structure, table: Table) -> Structure:
    """A structure with the points of a table alone. Each point is predicted once: searches ask again and again."""
    traits = tuple(sorted(structure.traits))
    costs: dict[tuple[object, ...], Cost] = {}

    def allows(values: Values) -> bool:
        return Key(traits, tuple(sorted(values.items()))) in table.entries

    def predict(values: Values) -> Cost:
        at = tuple(values.values())
        if at not in costs:
            costs[at] = structure.predict(values)
        return costs[at]

    return replace(structure, allows=allows, predict=predict)
