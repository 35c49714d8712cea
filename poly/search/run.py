"""The loop of a search: asks the strategy, has its points measured, keeps the champion and the budget."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random
from time import monotonic

from poly.errors import SearchError
from poly.search.budget import Budget
from poly.search.ledger import Ledger
from poly.search.outcome import Outcome, Progress, reasons
from poly.search.playoff import finalists, fresh_seconds, reserve
from poly.search.strategies import strategy as find
from poly.search.trial import Ask, Measurer, Search, Strategy, Trial
from poly.search.worth import Worth
from poly.spaces.space import Point, Space

IDLE = 100
"""After so many asks in a row for nothing that is not known, a strategy has no more to ask."""
HOPELESS = 64
"""After so many trials that all failed, no point is expected to succeed."""


def search(
    space: Space,
    strategy: str | Strategy,
    measurer: Measurer,
    *,
    start: Point | None = None,
    budget: Budget | None = None,
    random: Random | None = None,
    observe: Callable[[Progress], None] = lambda progress: None,
    known: Iterable[Trial] = (),
    clock: Callable[[], float] = monotonic,
) -> Outcome:
    """Searches a space for the fastest schedule.

    Args:
        strategy: a name of `strategies()` or a callable of that kind.
        start: where the strategy begins; the space's choice if not given.
        budget: when to stop; by default when the expected gain of going on is under 1 %.
        random: the source of chance, seeded with 0 if not given; the same seed and samples give the same search.
        measurer: it may return fewer trials than asked for; where it returns none, the search ends.
        observe: called after each measured trial.
        known: trials from before. Their points are not measured again; the strategy is told of them when it asks.
        clock: the time in seconds.

    A point is measured once, and a second time if it is in the play-off: at the end the champion meets those that come
    close to it again, for of many points that were measured the fastest was also lucky. Ctrl-C ends the search with the
    best so far. Raises `SearchError` for an unknown strategy, a start or an ask outside the space, and when no point
    could be measured, with the reasons.
    """
    loop = _Loop(space, measurer, budget or Budget(), Ledger(known), observe, clock)
    start = space.choice if start is None else start
    if next(iter(space), None) is None:
        raise SearchError(f"the space of {space.nest.name} has no legal schedule: there is nothing to search.")
    if start not in space:
        raise SearchError(f"the search cannot start at {start}: it is no point of the space.")
    stopped, interrupted = "", False
    try:
        stopped = loop.explore(find(strategy)(space, start, random or Random(0)))
        if loop.trials:  # else all is known from before, the winner too
            loop.play_off()
    except KeyboardInterrupt:
        if loop.ledger.champion is None:
            raise
        stopped, interrupted = "interrupted", True
    return loop.outcome(stopped, interrupted)


class _Loop:
    """One search under way."""

    def __init__(
        self,
        space: Space,
        measurer: Measurer,
        budget: Budget,
        ledger: Ledger,
        observe: Callable[[Progress], None],
        clock: Callable[[], float],
    ) -> None:
        self.space, self.measurer, self.budget, self.ledger = space, measurer, budget, ledger
        self.observe, self.clock = observe, clock
        self.began = clock()
        self.trials: list[Trial] = []
        self.seconds: float | None = None
        self.worth: Worth | None = None

    def explore(self, strategy: Search) -> str:
        """Runs the strategy until it or the budget ends; says which."""
        reserved = reserve(self.budget.trials)
        told: set[Point] = set()
        idle = 0
        try:
            ask = next(strategy)
            while True:
                ask = self._checked(ask)
                idle = idle + 1 if told.issuperset(ask.points) else 0
                if idle == IDLE:
                    return "the strategy repeats itself"
                while fresh := tuple(point for point in dict.fromkeys(ask.points) if point not in self.ledger):
                    if over := self._over(reserved) or self._worthless():
                        return over
                    if not self._measure(Ask(fresh[: self._room(reserved)], ask.champion)):
                        return "nothing more was measured"
                told.update(ask.points)
                ask = strategy.send([self.ledger.paired(point, ask.champion) for point in ask.points])
        except StopIteration:
            return "the strategy has no more to ask"
        finally:
            strategy.close()

    def play_off(self) -> None:
        """Measures the champion again in turn with those that come close to it; the winner is the champion."""
        champion = self.ledger.champion
        if champion is None:
            return
        again = finalists(champion, self.ledger.standing)[: self._room(0)]
        if again and not self._over(0):
            trials = self._measure(Ask(tuple(again), champion))
            self.seconds = fresh_seconds(self.ledger.champion, trials)

    def outcome(self, stopped: str, interrupted: bool) -> Outcome:
        best = self.ledger.champion
        if best is None:
            raise SearchError(f"none of {len(self.trials)} points could be measured: {reasons(self.trials)}")
        seconds = self.ledger.seconds(best) if self.seconds is None else self.seconds
        return Outcome(best, seconds, tuple(self.trials), stopped, interrupted)

    def _checked(self, ask: Ask) -> Ask:
        """The ask with the search's champion where it names none. Raises `SearchError` for points outside the space."""
        for point in ask.points:
            if point not in self.space:
                raise SearchError(f"the strategy asks for {point}, which is no point of the space")
        return ask if ask.champion is not None else replace(ask, champion=self.ledger.champion)

    def _measure(self, ask: Ask) -> list[Trial]:
        """Has points measured and takes the trials in."""
        trials = [replace(trial, against=ask.champion if trial.rival else None) for trial in self.measurer.measure(ask)]
        self.ledger.enter(trials, ask.champion)
        for trial in trials:
            self.trials.append(trial)
            self.observe(self._progress(trial))
        return trials

    def _progress(self, trial: Trial) -> Progress:
        best = self.ledger.champion
        seconds = None if best is None else self.ledger.seconds(best)
        failed = sum(1 for each in self.trials if not each.samples)
        return Progress(trial, best, seconds, len(self.trials), failed, self.clock() - self.began)

    def _room(self, reserved: int) -> int:
        """How many points fit into what is left of the budget, at least one."""
        room = sys.maxsize if self.budget.trials is None else self.budget.trials - reserved - len(self.trials)
        if self.budget.seconds is not None and self.trials:
            elapsed = self.clock() - self.began
            if elapsed > 0:
                room = min(room, int((self.budget.seconds - elapsed) * len(self.trials) / elapsed))
        return max(1, room)

    def _over(self, reserved: int) -> str:
        """Why nothing more can be measured; empty while something can."""
        budget = self.budget
        if len(self.trials) >= HOPELESS and self.ledger.champion is None:
            return "all trials failed"
        if budget.trials is not None and len(self.trials) + reserved >= budget.trials:
            return f"the budget of {budget.trials} trials is spent"
        if budget.seconds is not None and self.clock() - self.began >= budget.seconds:
            return f"the budget of {budget.seconds:g} s is spent"
        return ""

    def _worthless(self) -> str:
        """Says that the expected gain of going on is too small; empty while it is not, or no one asks for it."""
        if self.budget.gain is None or not self.ledger.standing:
            return ""
        if self.worth is None:
            self.worth = Worth(self.space)
        if self.worth.gain(self.ledger) >= self.budget.gain:
            return ""
        return f"going on is expected to gain less than {self.budget.gain:.1%}"
