"""The main loop of a search: ask the strategy, have its points measured, record everything in the journal, and stop.

A point is measured once. At the end, the incumbent and the points close to it are measured again, so that luck does not
choose among them: the fastest of many measured points was also lucky.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import log
from random import Random
from time import monotonic

from poly.autoschedule.spaces.space import Point, Space
from poly.errors import SearchError
from poly.search.events import Ask, Measurer, Search, Stopped, Strategy, Trial
from poly.search.journal import Journal, Outcome, Ranking
from poly.search.stopping import Budget, ExpectedGain
from poly.search.strategies import strategy as find

IDLE = 100
"""The number of consecutive asks without a new point after which a strategy counts as finished."""
HOPELESS = 64
"""The number of failed trials, without any success, after which a search gives up."""
FINALISTS = 3
"""The most points that are measured again with the incumbent."""
CLOSE = 0.03
"""How much slower than the incumbent they may appear, in log seconds."""


def search(
    space: Space,
    strategy: str | Strategy,
    measurer: Measurer,
    *,
    start: Point | None = None,
    budget: Budget | None = None,
    random: Random | None = None,
    journal: Journal | None = None,
    clock: Callable[[], float] = monotonic,
) -> Outcome:
    """Search a space for the fastest schedule.

    Args:
        strategy: a name of `strategies()`, or a callable like them.
        start: where the strategy begins; the space's choice if not given.
        budget: when to stop; by default when the expected gain of continuing is under 1 %.
        random: the random generator, seeded with 0 if not given; the same seed and samples give the same search.
        measurer: it may return fewer trials than asked for; if it returns none, the search ends.
        journal: receives all events and notifies its listeners; a new one without listeners if not given. Points of
            trials that it already contains are not measured again; the strategy is sent these trials when it asks.
        clock: a function that gives the time in seconds.

    A point is measured once, and a second time if it is a finalist. Ctrl-C ends the search with the best so far. Raises
    `SearchError` for an unknown strategy, a start or an ask outside the space, and, with the reasons, if no point could
    be measured.
    """
    loop = _Loop(space, measurer, budget or Budget(), Journal() if journal is None else journal, clock)
    start = space.choice if start is None else start
    if next(iter(space), None) is None:
        raise SearchError(f"the space of {space.nest.name} has no legal schedule: there is nothing to search.")
    if start not in space:
        raise SearchError(f"the search cannot start at {start}: it is not a point of the space.")
    return loop.run(find(strategy)(space, start, random or Random(0)))


class _Loop:
    """One running search."""

    def __init__(
        self, space: Space, measurer: Measurer, budget: Budget, journal: Journal, clock: Callable[[], float]
    ) -> None:
        self.space, self.measurer, self.budget, self.journal, self.clock = space, measurer, budget, journal, clock
        self.began = clock()
        self.gain: ExpectedGain | None = None

    def run(self, strategy: Search) -> Outcome:
        try:
            stopped = Stopped(self.explore(strategy))
            if self.journal.measured:  # otherwise all trials, and so the winner, were known before
                self.measure_again()
        except KeyboardInterrupt:
            if self.journal.incumbent is None:
                raise
            stopped = Stopped("interrupted", interrupted=True)
        self.journal.add(stopped)
        return self.journal.outcome()

    def explore(self, strategy: Search) -> str:
        """Run the strategy until it ends or the budget is spent, and return the reason."""
        reserved = reserve(self.budget.trials)
        answered: set[Point] = set()
        idle = 0
        try:
            ask = next(strategy)
            while True:
                ask = self._checked(ask)
                idle = idle + 1 if answered.issuperset(ask.points) else 0
                if idle == IDLE:
                    return "the strategy repeats itself"
                if stopped := self._measured(ask, reserved):
                    return stopped
                answered.update(ask.points)
                ask = strategy.send([self.journal.paired(point, ask.incumbent) for point in ask.points])
        except StopIteration:
            return "the strategy has no more to ask"
        finally:
            strategy.close()

    def measure_again(self) -> None:
        """Measure the points close to the incumbent again, in turn with it; the winner becomes the incumbent."""
        incumbent, elapsed = self.journal.incumbent, self._elapsed()
        if incumbent is None or self._over(0):
            return
        left = self.budget.left(len(self.journal.measured), elapsed)
        if points := finalists(incumbent, self.journal.ranking)[:left]:
            self._enter(Ask(tuple(points), incumbent, again=True))

    def _checked(self, ask: Ask) -> Ask:
        """The ask, with the search's incumbent if it names none. Raises `SearchError` for points outside the space."""
        for point in ask.points:
            if point not in self.space:
                raise SearchError(f"the strategy asks for {point}, which is not a point of the space")
        return ask if ask.incumbent is not None else replace(ask, incumbent=self.journal.incumbent)

    def _measured(self, ask: Ask, reserved: int) -> str:
        """Measure the points that are new; return why that ended before the last one, or an empty text."""
        while fresh := tuple(point for point in dict.fromkeys(ask.points) if point not in self.journal):
            if over := self._over(reserved) or self._gains_too_little():
                return over
            left = self.budget.left(len(self.journal.measured), self._elapsed(), reserved)
            if not self._enter(Ask(fresh[:left], ask.incumbent)):
                return "nothing more was measured"
        return ""

    def _enter(self, ask: Ask) -> list[Trial]:
        """Measure points, and enter each trial into the journal as it comes."""
        return self.journal.enter(ask, self._trials(ask))

    def _trials(self, ask: Ask) -> Iterator[Trial]:
        for trial in self.measurer.measure(ask):
            yield replace(trial, against=ask.incumbent if trial.rival else None)

    def _elapsed(self) -> float:
        return self.clock() - self.began

    def _over(self, reserved: int) -> str:
        """Why no more can be measured; empty if more can."""
        trials = len(self.journal.measured)
        if trials >= HOPELESS and self.journal.incumbent is None:
            return "all trials failed"
        return self.budget.spent(trials, self._elapsed(), reserved)

    def _gains_too_little(self) -> str:
        """The reason to stop if the expected gain of continuing is too small; else, or without such a limit, empty."""
        if self.budget.gain is None or not self.journal.ranking:
            return ""
        if self.gain is None:
            self.gain = ExpectedGain(self.space)
        if self.gain.after(self.journal) >= self.budget.gain:
            return ""
        return f"going on is expected to gain less than {self.budget.gain:.1%}"


def reserve(trials: int | None) -> int:
    """How many of the trials to reserve for the finalists: none of fewer than ten, at most `FINALISTS`."""
    return 0 if trials is None else min(FINALISTS, trials // 10)


def finalists(incumbent: Point, ranking: Ranking) -> list[Point]:
    """The points close to the incumbent or apparently faster, fastest first."""
    limit = log(ranking.seconds(incumbent)) + CLOSE
    close = [point for point in ranking.points() if point != incumbent and log(ranking.seconds(point)) <= limit]
    return close[:FINALISTS]
