"""What a search knows so far: how fast each point is, on one scale, although the machine's speed drifts."""

from __future__ import annotations

from collections.abc import Iterable
from math import exp, log
from statistics import median

from poly.search.decide import gain
from poly.search.trial import Trial
from poly.spaces.space import Point


class Standing:
    """The points measured so far and their seconds; failures have none.

    A point that was timed in turn with another one is placed by their ratio, relative to where the other one stands;
    one that was timed alone is placed by its own median.
    """

    def __init__(self, trials: Iterable[Trial] = ()) -> None:
        self._logs: dict[Point, float] = {}
        for trial in trials:
            self.add(trial)

    def add(self, trial: Trial) -> None:
        """Takes a trial in; the newest trial of a point counts."""
        if trial.samples:
            self._logs[trial.point] = self._place(trial)

    def _place(self, trial: Trial) -> float:
        if trial.rival and trial.against in self._logs:
            return self._logs[trial.against] - gain(trial)
        return log(median(trial.samples))

    def __len__(self) -> int:
        return len(self._logs)

    def __contains__(self, point: object) -> bool:
        return point in self._logs

    def seconds(self, point: Point) -> float:
        return exp(self._logs[point])

    def ranked(self) -> list[Point]:
        """The points that could be measured, the fastest first."""
        return sorted(self._logs, key=lambda point: self._logs[point])

    @property
    def best(self) -> Point | None:
        """The fastest so far, by its median; whether it is really so is for a test to say."""
        return min(self._logs, key=lambda point: self._logs[point], default=None)
