"""Runs of strategies on a landscape: how good the best so far was after each measurement, and what it had taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from statistics import median

from benchmarks.search.landscape import Landscape
from benchmarks.search.replay import Replay
from poly.errors import SearchError
from poly.search.budget import Budget
from poly.search.outcome import Progress
from poly.search.run import search
from poly.search.trial import Strategy
from poly.spaces.space import Point


@dataclass(frozen=True)
class Step:
    """After a measurement: seconds spent in all, and the quality of the champion (0: there is none yet)."""

    seconds: float
    quality: float


@dataclass(frozen=True)
class Run:
    """One search: a step for each measurement, and the quality of what it found."""

    steps: tuple[Step, ...]
    quality: float

    @property
    def measurements(self) -> int:
        return len(self.steps)

    def reached(self, level: float) -> int:
        """The measurements until the champion first had a quality; all of them where it never had."""
        return next((n for n, step in enumerate(self.steps, 1) if step.quality >= level), self.measurements)


def run(landscape: Landscape, strategy: str | Strategy, budget: Budget, seed: int, start: Point | None = None) -> Run:
    """A search on the table; the same seed gives the same run. Even seeds see one side, odd ones the other."""
    side = landscape.sides[seed % 2]
    replay = Replay(landscape, side, Random(f"samples {seed}"))
    seen: list[tuple[int, Step]] = []

    def observe(progress: Progress) -> None:
        quality = 0.0 if progress.best is None else side.qualities[progress.best]
        seen.append((replay.batches, Step(replay.clock(), quality)))

    try:
        outcome = search(
            landscape.space,
            strategy,
            replay,
            start=start,
            budget=budget,
            random=Random(seed),
            observe=observe,
            clock=replay.clock,
        )
    except SearchError:  # no point that was asked for could be measured
        return Run(tuple(_by_batches(seen)), 0.0)
    return Run(tuple(_by_batches(seen)), side.qualities[outcome.best])


def _by_batches(seen: Sequence[tuple[int, Step]]) -> Iterator[Step]:
    """The steps, where the champion changes with the last of a batch: that is when the search knows of it."""
    before = 0.0
    for n, (batch, step) in enumerate(seen):
        if n + 1 == len(seen) or seen[n + 1][0] != batch:
            before = step.quality
        yield Step(step.seconds, before)


@dataclass(frozen=True)
class Runs:
    """The runs of one strategy on one problem, with different seeds."""

    runs: tuple[Run, ...]

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
