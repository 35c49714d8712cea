"""Replay of a table's measurements: strategies run on it within moments, and always on the same machine."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from benchmarks.search.landscape import Landscape, Side
from poly.autoschedule.spaces.space import Point
from poly.search.events import Ask, Trial
from poly.search.significance import next_rounds

SAMPLES = 5
"""The samples of a point that is timed alone."""
SAMPLE_SECONDS = 0.002
"""The least length of a sample: short calls are repeated within it."""


class Replay:
    """A measurer that draws from one side's visits to each point (a bootstrap), and a clock of the simulated time.

    All samples of a trial come from one visit, and its rival's from the visit of the same round, as a live measurement
    sees the machine at one time. Against an incumbent it takes as many pairs as a live measurement would: few if the
    comparison is clear. A point's first trial costs as much as its first visit, including the compiler; later ones cost
    their samples.
    """

    def __init__(self, landscape: Landscape, side: Side, random: Random) -> None:
        self._land = landscape
        self._visits = side.visits
        self._random = random
        self._compiled: set[Point] = set()
        self._seconds = 0.0

    def clock(self) -> float:
        """The seconds that all trials so far would have taken."""
        return self._seconds

    def measure(self, ask: Ask) -> list[Trial]:
        return [self._trial(point, ask.incumbent) for point in ask.points]

    def _trial(self, point: Point, incumbent: Point | None) -> Trial:
        entry = self._land.entries[point]
        if entry.failure:
            self._seconds += entry.seconds
            return Trial(point, (), failure=entry.failure)
        samples, rival = self._samples(point, incumbent)
        self._spend(point, (*samples, *rival))
        return Trial(point, samples, rival)

    def _samples(self, point: Point, incumbent: Point | None) -> tuple[tuple[float, ...], tuple[float, ...]]:
        number = self._random.randrange(len(self._visits[point]))
        ours = self._visits[point][number]
        if incumbent is None:
            return self._drawn(ours, SAMPLES), ()
        known = self._visits[incumbent]
        theirs = known[number % len(known)]
        samples, rival = self._drawn(ours, next_rounds((), ())), self._drawn(theirs, next_rounds((), ()))
        while more := next_rounds(samples, rival):
            samples, rival = samples + self._drawn(ours, more), rival + self._drawn(theirs, more)
        return samples, rival

    def _drawn(self, visit: Sequence[float], count: int) -> tuple[float, ...]:
        return tuple(self._random.choices(visit, k=count))

    def _spend(self, point: Point, samples: Sequence[float]) -> None:
        if point in self._compiled:
            self._seconds += sum(max(SAMPLE_SECONDS, sample) for sample in samples)
        else:
            self._compiled.add(point)
            self._seconds += self._land.entries[point].seconds
