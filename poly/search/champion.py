"""The champion of a search: the point that no challenger has beaten in a test."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from poly.search.decide import winner
from poly.search.trial import Trial
from poly.spaces.space import Point


def crowned(champion: Point | None, trials: Sequence[Trial]) -> Point | None:
    """The champion after these trials: a challenger that won its test, or the old one.

    Where there was none, the fastest point by its median is the first; None if all failed.
    """
    if champion is not None:
        challenger = winner(trials)
        return champion if challenger is None else challenger.point
    timed = [trial for trial in trials if trial.samples]
    return min(timed, key=lambda trial: median(trial.samples)).point if timed else None


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
