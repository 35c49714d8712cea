"""Runs of strategies on a landscape: the quality of the best so far, and the time, after each measurement.

They replay a table's measurements, which takes moments, and gives the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from statistics import median

from benchmarks.search.landscape import Landscape, Side
from poly.autoschedule.spaces.space import Point
from poly.errors import SearchError
from poly.search.events import Ask, Decided, Event, Strategy, Trial
from poly.search.journal import Journal
from poly.search.run import search
from poly.search.significance import next_rounds
from poly.search.stopping import Budget

SAMPLES = 5
"""The samples of a point that is timed alone."""
SAMPLE_SECONDS = 0.002
"""The least length of a sample: short calls are repeated within it."""


@dataclass(frozen=True)
class SearchStep:
    """The state after a measurement: total seconds, and the quality of the incumbent (0: there is none yet)."""

    seconds: float
    quality: float


@dataclass(frozen=True)
class SearchRun:
    """One search: a step for each measurement, and the quality of its result."""

    steps: tuple[SearchStep, ...]
    quality: float

    @property
    def measurements(self) -> int:
        return len(self.steps)

    def reached(self, level: float) -> int:
        """The measurements until the incumbent first reached a quality; all of them if it never did."""
        return next((n for n, step in enumerate(self.steps, 1) if step.quality >= level), self.measurements)


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


def run(
    landscape: Landscape, strategy: str | Strategy, budget: Budget, seed: int, start: Point | None = None
) -> SearchRun:
    """A search on the table; the same seed gives the same run. Even seeds see one side, odd ones the other."""
    side = landscape.sides[seed % 2]
    replay = Replay(landscape, side, Random(f"samples {seed}"))
    steps: list[SearchStep] = []

    def observe(event: Event) -> None:
        """The quality changes only with the last trial of a batch, when the search decides."""
        match event:
            case Trial():
                steps.append(SearchStep(replay.clock(), steps[-1].quality if steps else 0.0))
            case Decided(incumbent) if incumbent is not None:
                steps[-1] = replace(steps[-1], quality=side.qualities[incumbent])

    try:
        outcome = search(
            landscape.space,
            strategy,
            replay,
            start=start,
            budget=budget,
            random=Random(seed),
            journal=Journal(listeners=[observe]),
            clock=replay.clock,
        )
    except SearchError:  # none of the requested points could be measured
        return SearchRun(tuple(steps), 0.0)
    return SearchRun(tuple(steps), side.qualities[outcome.best])


@dataclass(frozen=True)
class Runs:
    """The runs of one strategy on one problem, with different seeds."""

    runs: tuple[SearchRun, ...]

    @property
    def quality(self) -> float:
        return median(each.quality for each in self.runs)

    @property
    def measurements(self) -> float:
        return median(each.measurements for each in self.runs)

    @property
    def seconds(self) -> float:
        return median(each.steps[-1].seconds if each.steps else 0.0 for each in self.runs)

    def reached(self, level: float) -> float:
        return median(each.reached(level) for each in self.runs)


def repeated(
    landscape: Landscape, strategy: str | Strategy, budget: Budget, seeds: Sequence[int], start: Point | None = None
) -> Runs:
    return Runs(tuple(run(landscape, strategy, budget, seed, start) for seed in seeds))
