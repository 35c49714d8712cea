"""What was measured is not measured again: a measurer that remembers, and hands on what it learns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Protocol

from poly.search.standing import Standing
from poly.search.trial import Ask, Trial
from poly.spaces.space import Point


class Source(Protocol):
    """Measures points one after the other."""

    def trials(self, ask: Ask) -> Iterator[Trial]:
        """A trial for each point asked for, in order, each as soon as it is there."""


class Memory:
    """A measurer that asks `source` for what it does not know from before.

    `known` are trials of an earlier search, in their order. `learnt` is called with each trial that is new, and
    `recalled` with each that is not, as soon as it is there. When `over` says that time is up, no further point is
    measured: `measure` then gives fewer trials than were asked for, the first ones.
    """

    def __init__(
        self,
        source: Source,
        known: Iterable[Trial],
        learnt: Callable[[Trial], None],
        recalled: Callable[[Trial], None],
        over: Callable[[], bool],
    ) -> None:
        self._source = source
        self._learnt = learnt
        self._recalled = recalled
        self._over = over
        self._latest: dict[Point, Trial] = {}
        self._duels: dict[tuple[Point, Point], Trial] = {}
        self._standing = Standing()
        for trial in known:
            self._remember(trial)

    def measure(self, ask: Ask) -> list[Trial]:
        remembered = {point: self._recall(point, ask.champion) for point in ask.points}
        unknown = tuple(point for point, trial in remembered.items() if trial is None)
        fresh = self._source.trials(Ask(unknown, ask.champion))
        found: list[Trial] = []
        for point in ask.points:
            trial = remembered[point]
            if trial is not None:
                self._recalled(trial)
            elif self._over():
                break
            else:
                told = next(fresh)
                trial = replace(told, against=ask.champion if told.rival else None)
                self._remember(trial)
                self._learnt(trial)
            found.append(trial)
        return found

    def _remember(self, trial: Trial) -> None:
        self._latest[trial.point] = trial
        if trial.against is not None:
            self._duels[trial.point, trial.against] = trial
        self._standing.add(trial)

    def _recall(self, point: Point, champion: Point | None) -> Trial | None:
        """What is known of a point, if it answers the question.

        A failure does, and samples taken in turn with the same champion. Other samples may only show that the point is
        the slower one: whether it is faster is for a test on samples taken in turn.
        """
        latest = self._latest.get(point)
        if latest is None or latest.failure:
            return latest
        if champion is None:
            return Trial(point, latest.samples)
        duel = self._duels.get((point, champion))
        if duel is not None:
            return duel
        slower = champion in self._standing and self._standing.seconds(point) >= self._standing.seconds(champion)
        return Trial(point, latest.samples) if slower else None
