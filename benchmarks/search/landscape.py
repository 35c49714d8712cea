"""A measured space: a space with its table, and the quality of each point.

The best point of a table was selected by its time among hundreds, so it was also lucky, and must not be judged by the
samples that selected it (the winner's curse). So the visits are split into two halves, and there are two sides: on
each, a search sees one half and is judged by the other. Quality is speed relative to what an exhaustive search of the
half seen would find; it may exceed 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from heapq import nsmallest
from math import sqrt
from statistics import median

from benchmarks.search.table import Entry, Table, Visit, key, key_of
from microkernels.cached import cached_property
from poly.autoschedule.spaces.space import Point, Space, Structure, Values
from poly.errors import SearchError
from poly.model.cost import Cost

LOOK_BEST = 3
"""The bar is the time of a half's best point, or the median of this many if it is less: a burst must not lower it."""


@dataclass(frozen=True)
class Side:
    """One half of the visits to each point that could be measured, and the qualities by the other half."""

    visits: Mapping[Point, list[Visit]]
    qualities: Mapping[Point, float]

    @cached_property
    def seconds(self) -> dict[Point, float]:
        """The typical sample of each point in the half that is seen."""
        return typical(self.visits)

    def fastest(self, points: Iterable[Point]) -> Point:
        """The fastest of some points in the half that is seen; the first if all failed."""
        known = list(points)
        return min(known, key=lambda point: self.seconds.get(point, float("inf")))


@dataclass(frozen=True)
class Landscape:
    """The measured points of a problem's space.

    `space` holds no others. Its choice is that of the whole space, or, if that could not be measured, the model's best
    of its points.
    """

    problem: str
    space: Space
    table: Table

    @cached_property
    def entries(self) -> dict[Point, Entry]:
        return {point: self.table.entries[key(self.space, point)] for point in self.space}

    @cached_property
    def seconds(self) -> dict[Point, float]:
        """The typical sample of each point that could be measured, over all visits."""
        return typical(self._visits)

    @cached_property
    def sides(self) -> tuple[Side, Side]:
        """Both sides: each half is seen on one and judges on the other."""
        first, second = halves(self._visits)
        return self._side(first, second), self._side(second, first)

    @cached_property
    def qualities(self) -> dict[Point, float]:
        """The geometric mean of both sides' qualities; 0 for a point that failed."""
        one, other = (side.qualities for side in self.sides)
        return {point: sqrt(one[point] * other[point]) for point in self.entries}

    @cached_property
    def plain(self) -> dict[Point, float]:
        """Speed relative to the least of all times, which favours lucky points; 0 for a point that failed."""
        best = min(self.seconds.values())
        return {point: best / self.seconds[point] if point in self.seconds else 0.0 for point in self.entries}

    @cached_property
    def noise(self) -> float:
        """The relative difference of two halves of the visits to a point: the median over points."""
        one, other = (side.seconds for side in self.sides)
        return median(abs(one[point] / other[point] - 1) for point in one)

    @property
    def _visits(self) -> dict[Point, list[Visit]]:
        """The samples of each visit to each point that could be measured, scaled to one level."""
        return {p: self.table.visits(key(self.space, p)) for p, entry in self.entries.items() if entry.passes}

    def _side(self, seen: Mapping[Point, list[Visit]], judged: Mapping[Point, list[Visit]]) -> Side:
        times, found = typical(judged), typical(seen)
        best = [times[point] for point in nsmallest(LOOK_BEST, found, key=found.__getitem__)]
        bar = min(best[0], median(best))
        return Side(seen, {p: bar / times[p] if p in times else 0.0 for p in self.entries})

    @cached_property
    def ranked(self) -> list[Point]:
        """The points in the model's order."""
        return self.space.ranked()

    def as_good_as(self, level: float) -> int:
        """The number of points that reach a quality."""
        return sum(quality >= level for quality in self.qualities.values())


def typical(visits: Mapping[Point, list[Visit]]) -> dict[Point, float]:
    """The first quartile of all samples of each point; the minimum of few.

    Other load comes in bursts and only ever adds time: a burst can spoil most samples of a visit, so the median of one
    or two visits may measure nothing else. All points are treated alike.
    """
    pooled = {point: sorted(s for visit in found for s in visit) for point, found in visits.items()}
    return {point: samples[(len(samples) - 1) // 4] for point, samples in pooled.items()}


def halves(visits: Mapping[Point, list[Visit]]) -> tuple[dict[Point, list[Visit]], dict[Point, list[Visit]]]:
    """Every second visit to each point, and the others; of a single visit, the earlier and the later samples."""

    def cut(found: list[Visit]) -> tuple[list[Visit], list[Visit]]:
        if len(found) > 1:
            return found[0::2], found[1::2]
        (samples,) = found
        middle = len(samples) // 2
        return [samples[:middle] or samples], [samples[middle:]]

    both = {point: cut(found) for point, found in visits.items()}
    return {point: first for point, (first, _) in both.items()}, {point: last for point, (_, last) in both.items()}


def landscape(table: Table, space: Space) -> Landscape:
    """The points in both the table and the space. Raises SearchError if fewer than two were measured."""
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
    early = {key(space, point) for point in space.steady}
    steady = tuple(point for point in points if key(cut, point) in early)
    return Landscape(table.problem, replace(cut, choice=choice, steady=steady), table)


def missing(table: Table, space: Space) -> tuple[int, int]:
    """The number of the space's points that the table lacks, and of the table's that the space no longer has."""
    points = {key(space, point) for point in space}
    return len(points - table.entries.keys()), len(table.entries.keys() - points)


def _known(structure: Structure, table: Table) -> Structure:
    """A structure with only the points of a table. Each point is predicted once, as searches ask repeatedly."""
    costs: dict[tuple[object, ...], Cost] = {}

    def allows(values: Values) -> bool:
        return key_of(structure, values) in table.entries

    def predict(values: Values) -> Cost:
        at = tuple(values.values())
        if at not in costs:
            costs[at] = structure.predict(values)
        return costs[at]

    return replace(structure, allows=allows, predict=predict)
