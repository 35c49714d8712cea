"""Runs of strategies on a landscape: the quality of the best so far, and the time, after each measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from statistics import median

from benchmarks.search.landscape import Landscape
from benchmarks.search.replay import Replay
from poly.autoschedule.spaces.space import Point
from poly.errors import SearchError
from poly.search.events import Decided, Event, Strategy, Trial
from poly.search.journal import Journal
from poly.search.run import search
from poly.search.stopping import Budget


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
