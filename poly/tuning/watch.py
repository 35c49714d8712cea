"""Keeps the books of a tuning under way: each trial goes to the records, to the display, and into the counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from math import exp
from statistics import median

from poly.search.decide import gain
from poly.search.outcome import Progress
from poly.search.trial import Ask, Trial
from poly.spaces.space import Point
from poly.tuning.display import Display
from poly.tuning.failures import Failure, counted
from poly.tuning.history import History
from poly.tuning.status import Status, point_words


class Watch:
    """What is known of a tuning at each moment: `best` is its best point so far, `seconds` the time of a call of it.

    `known` are the trials that were in the records when it began.
    """

    def __init__(
        self, history: History, known: Iterable[Trial], display: Display, status: Status, elapsed: Callable[[], float]
    ) -> None:
        self._history = history
        self._display = display
        self._status = status
        self._elapsed = elapsed
        self._samples: dict[Point, tuple[float, ...]] = {}
        self._duels: dict[tuple[Point, Point], Trial] = {}
        self._failures: list[str] = []
        self.best: Point | None = None
        self.seconds: float | None = None
        self._tried = 0
        for trial in known:
            self._enter(trial)
        self._status = replace(status, reused=self._tried)
        self.best = history.best if history.best in self._samples else self._fastest()
        self.seconds = median(self._samples[self.best]) if self.best is not None else None
        self._show()

    def asked(self, ask: Ask) -> None:
        """A batch is about to be compiled and measured."""
        structures = self._history.space.structures
        kinds = dict.fromkeys(str(structures[point.structure]) for point in ask.points)
        self._status = replace(self._status, trying=f"{len(ask.points)} candidates ({' | '.join(kinds)})")
        self._show()

    def told(self, trial: Trial, ask: Ask) -> None:
        """A trial was made: it is stored before anything else is done."""
        self._history.keep(trial, ask.champion)
        self._enter(replace(trial, against=ask.champion if trial.rival else None))
        if self.best is None and trial.samples:
            self._crown(trial.point, median(trial.samples))
        self._show()

    def observe(self, progress: Progress) -> None:
        """The search has judged, a batch as a whole."""
        if progress.best is not None and progress.seconds is not None:
            self._crown(progress.best, progress.seconds)

    def _crown(self, best: Point, seconds: float) -> None:
        """A new best point is stored, so that it is found even if this process is killed."""
        changed, self.best, self.seconds = best != self.best, best, seconds
        if changed:
            self.keep(best, finished=False)
            self._show()

    def keep(self, best: Point, finished: bool) -> None:
        self._history.keep_best(best, self._samples, self._tried, self._elapsed(), finished)

    @property
    def failures(self) -> tuple[Failure, ...]:
        return counted(self._failures)

    def choice_seconds(self, best: Point | None, seconds: float | None) -> float | None:
        """The model's choice beside a best point of so many seconds; None where one of them was not measured.

        Their ratio is that of samples taken in turn, where there are any, else of the medians. Ratios are not chained:
        each winner's gain is a little too high, and a chain would multiply that.
        """
        choice = self._history.space.choice
        if best is None or seconds is None or best not in self._samples or choice not in self._samples:
            return None
        if (choice, best) in self._duels:
            return seconds * exp(-gain(self._duels[choice, best]))
        if (best, choice) in self._duels:
            return seconds * exp(gain(self._duels[best, choice]))
        return seconds * median(self._samples[choice]) / median(self._samples[best])

    def _fastest(self) -> Point | None:
        return min(self._samples, key=lambda point: median(self._samples[point]), default=None)

    def _enter(self, trial: Trial) -> None:
        self._tried += 1
        if trial.samples:
            self._samples[trial.point] = trial.samples
            if trial.against is not None:
                self._duels[trial.point, trial.against] = trial
        else:
            self._failures.append(trial.failure)

    def _show(self) -> None:
        self._status = replace(
            self._status,
            tried=self._tried,
            failures=self.failures,
            best=self.seconds,
            choice=self.choice_seconds(self.best, self.seconds),
            where="" if self.best is None else point_words(self._history.space, self.best),
            elapsed=self._elapsed(),
        )
        self._display.update(self._status)
