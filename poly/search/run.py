"""The main loop of a search: ask the strategy, have its points measured, record everything in the journal, and stop.

A point is measured once. At the end, the incumbent and the points close to it are measured again, so that luck does not
choose among them: the fastest of many measured points was also lucky.

The loop advances batch by batch, so that several searches can take turns and spend one budget.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from math import log
from random import Random
from time import monotonic

from poly.autoschedule.spaces.space import Point, Space
from poly.errors import SearchError
from poly.search.events import Ask, Measurer, Search, Stopped, Strategy, Trial
from poly.search.journal import Journal, Outcome, Ranking
from poly.search.stopping import FINALISTS, Budget, ExpectedGain, Purse
from poly.search.strategies import strategy as find

IDLE = 100
"""The number of consecutive asks without a new point after which a strategy counts as finished."""
HOPELESS = 64
"""The number of failed trials, without any success, after which a search gives up."""
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
    running = Running(
        space,
        strategy,
        measurer,
        Purse(budget or Budget(), clock),
        start=start,
        random=random,
        journal=journal,
    )
    try:
        while running.step():
            pass
    except KeyboardInterrupt:
        running.interrupt()
    return running.journal.outcome()


class Running:
    """A search under way, which advances by one batch with each `step`.

    The arguments are those of `search`, which is one that takes all steps at once; several of them may spend one
    `purse`. A search without a trial measures its first batch even if nothing is left in the purse, so that each has a
    result. Raises `SearchError` for a space without a legal point, and for a start outside of it.
    """

    def __init__(
        self,
        space: Space,
        strategy: str | Strategy,
        measurer: Measurer,
        purse: Purse,
        *,
        start: Point | None = None,
        random: Random | None = None,
        journal: Journal | None = None,
    ) -> None:
        start = space.choice if start is None else start
        if next(iter(space), None) is None:
            raise SearchError(f"the space of {space.nest.name} has no legal schedule: there is nothing to search.")
        if start not in space:
            raise SearchError(f"the search cannot start at {start}: it is not a point of the space.")
        self.space, self.measurer, self.purse = space, measurer, purse
        self.journal = Journal() if journal is None else journal
        self._gain: ExpectedGain | None = None
        self._batches = self._run(find(strategy)(space, start, random or Random(0)))

    def step(self) -> bool:
        """Measure the next batch; False if there was none, and the search has ended.

        A KeyboardInterrupt passes through, after which `interrupt` ends the search.
        """
        return next(self._batches, None) is not None

    def interrupt(self) -> None:
        """End the search with the best so far. Raises KeyboardInterrupt if there is none."""
        self._batches.close()
        if self.journal.incumbent is None:
            raise KeyboardInterrupt
        self.journal.add(Stopped("interrupted", interrupted=True))

    @property
    def gain(self) -> ExpectedGain:
        """What going on is expected to gain."""
        if self._gain is None:
            self._gain = ExpectedGain(self.space)
        return self._gain

    def _run(self, strategy: Search) -> Generator[Ask, None, None]:
        """The batches, each given once it is measured."""
        stopped = Stopped((yield from self.explore(strategy)))
        if self.journal.measured:  # otherwise all trials, and so the winner, were known before
            yield from self.measure_again()
        self.purse.release()
        self.journal.add(stopped)

    def explore(self, strategy: Search) -> Generator[Ask, None, str]:
        """Run the strategy until it ends or the budget is spent, and return the reason."""
        answered: set[Point] = set()
        idle = 0
        try:
            ask = next(strategy)
            while True:
                ask = self._checked(ask)
                idle = idle + 1 if answered.issuperset(ask.points) else 0
                if idle == IDLE:
                    return "the strategy repeats itself"
                if stopped := (yield from self._measured(ask)):
                    return stopped
                answered.update(ask.points)
                ask = strategy.send([self.journal.paired(point, ask.incumbent) for point in ask.points])
        except StopIteration:
            return "the strategy has no more to ask"
        finally:
            strategy.close()

    def measure_again(self) -> Iterator[Ask]:
        """Measure the points close to the incumbent again, in turn with it; the winner becomes the incumbent."""
        incumbent, left = self.journal.incumbent, self.purse.reserved_left()
        if incumbent is not None and (points := finalists(incumbent, self.journal.ranking)[:left]):
            ask = Ask(tuple(points), incumbent, again=True)
            self._enter(ask)
            yield ask

    def _checked(self, ask: Ask) -> Ask:
        """The ask, with the search's incumbent if it names none. Raises `SearchError` for points outside the space."""
        for point in ask.points:
            if point not in self.space:
                raise SearchError(f"the strategy asks for {point}, which is not a point of the space")
        return ask if ask.incumbent is not None else replace(ask, incumbent=self.journal.incumbent)

    def _measured(self, ask: Ask) -> Generator[Ask, None, str]:
        """Measure the points that are new; return why that ended before the last one, or an empty text."""
        while fresh := tuple(point for point in dict.fromkeys(ask.points) if point not in self.journal):
            if over := self._over() or self._gains_too_little():
                return over
            if not self._enter(part := Ask(fresh[: self.purse.left()], ask.incumbent)):
                return "nothing more was measured"
            yield part
        return ""

    def _enter(self, ask: Ask) -> list[Trial]:
        """Measure points, and enter each trial into the journal as it comes."""
        return self.journal.enter(ask, self._trials(ask))

    def _trials(self, ask: Ask) -> Iterator[Trial]:
        for trial in self.measurer.measure(ask):
            self.purse.trials += 1
            yield replace(trial, against=ask.incumbent if trial.rival else None)

    def _over(self) -> str:
        """Why no more can be measured; empty if more can."""
        if not self.journal.trials:
            return ""
        if len(self.journal.measured) >= HOPELESS and self.journal.incumbent is None:
            return "all trials failed"
        return self.purse.spent()

    def _gains_too_little(self) -> str:
        """The reason to stop if the expected gain of continuing is too small; else, or without such a limit, empty."""
        least = self.purse.budget.gain
        if least is None or not self.journal.ranking or self.gain.after(self.journal) >= least:
            return ""
        return f"going on is expected to gain less than {least:.1%}"


def finalists(incumbent: Point, ranking: Ranking) -> list[Point]:
    """The points close to the incumbent or apparently faster, fastest first."""
    limit = log(ranking.seconds(incumbent)) + CLOSE
    close = [point for point in ranking.points() if point != incumbent and log(ranking.seconds(point)) <= limit]
    return close[:FINALISTS]
