"""The tuning of one nest: the space, the records, the search, the kernel.

The journal is the whole state of the search. Each event is stored and then shown, so that nothing is lost if the
process is killed, the time is up, or Ctrl-C ends the search, which keeps the best found so far.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from time import monotonic
from typing import Protocol

from microkernels.opencl_isa import is_gpu
from poly.analysis.work import work
from poly.autoschedule.derive import space as derive
from poly.autoschedule.spaces.space import Point, Space
from poly.compilation import compile_nest
from poly.errors import SearchError
from poly.machine import machine, measured
from poly.measure.live import LiveMeasurer
from poly.records import Store
from poly.search.allocation import Standing
from poly.search.events import Ask, Event, Strategy, Trial
from poly.search.journal import Journal, Outcome
from poly.search.run import Running
from poly.search.stopping import Purse, reserve
from poly.search.strategies import strategy as find
from poly.timing.yardstick import Yardstick, gpu_yardstick, speed_text, yardstick
from poly.tuning.display import Display, Silent, Status
from poly.tuning.history import History, seeded
from poly.tuning.options import Options
from poly.tuning.outcome import (
    TunedKernel,
    TunedOpenCLKernel,
    Tuning,
    counted,
    in_words,
    point_words,
    with_tuning,
)
from poly.tuning.problem import TuningProblem, problem_key
from poly.tuning.report import TrialReport
from poly.tuning.stoppable import Interrupts, PointSource, Stoppable

logger = logging.getLogger("poly.tune")


class Closable(PointSource, Protocol):
    """Measures points, until it is closed; a pause gives memory back until the next one."""

    def pause(self) -> None: ...

    def close(self) -> None: ...


MakeMeasurer = Callable[[Space, Options], Closable]
"""Makes the measurer of a space."""


def local(space: Space, options: Options) -> Closable:
    """Measures on this machine."""
    return LiveMeasurer(space, cold=options.cold, seed=options.seed)


@dataclass
class Together:
    """What the sessions of one call have in common: the options, the time, the display, and the count of trials."""

    options: Options
    searches: int
    measurer: MakeMeasurer = local
    display: Display = field(default_factory=Silent)
    interrupts: Interrupts = field(default_factory=Interrupts)
    tried: int = 0
    began: float = field(default_factory=lambda: monotonic())

    @property
    def elapsed(self) -> float:
        return monotonic() - self.began

    def over(self) -> bool:
        """Whether the time is up."""
        return self.options.seconds is not None and self.elapsed >= self.options.seconds

    def why(self, stopped: str) -> str:
        """Why a search ended, in terms of the user's budget: the search itself only knew the remainder."""
        most, seconds = self.options.most, self.options.seconds
        if most is not None and self.tried + self.searches * reserve(most, self.searches) >= most:
            return f"the budget of {most} trials is spent"
        if seconds is not None and self.over():
            return f"the budget of {seconds:g} s is spent"
        return stopped


class TuningSession:
    """The tuning of one nest, alone or as one of several that spend a common budget.

    `place` and `weight` are this nest's place in the list and the number of its calls.
    """

    def __init__(self, task: TuningProblem, shared: Together, place: int = 0, weight: float = 1.0) -> None:
        self.problem, self.shared, self.options = task, shared, shared.options
        self.place, self.weight = place, weight
        self.failure: SearchError | None = None
        self._clock = Stopwatch()
        self._paid: list[tuple[int, float]] = []
        self._running: Running | None = None
        self._measurer: Closable | None = None
        self._outcome: Outcome | None = None
        with self._clock:
            self.space = _space(task)
            self.work = work(task.measured)
            self.store = Store.open() if self.options.records else None
            self.history = History(
                self.store, problem_key(task, self.options.cold), self.space, self.options.name, self.work
            )
            self.journal = Journal(self.history.known(), [self._heard])
            self.remembered = self.kept = self.history.remembered(self.journal)
            self.yardstick = self._yardstick()
        shared.tried += len(self.journal.known)

    def begin(self, purse: Purse) -> None:
        """Prepare to spend the common budget; nothing is measured yet."""
        logger.info("%s: tuning begins, with %d trials from the records", self.problem.title, len(self.journal.known))
        self._measurer = self.shared.measurer(self.space, self.options)
        self._running = Running(
            self.space,
            self._strategy(),
            Stoppable(self._measurer, self.shared.over, self.shared.interrupts),
            purse,
            start=self.space.origin if self.options.start == "origin" else self.space.choice,
            random=Random(self.options.seed),
            journal=self.journal,
        )

    def step(self) -> bool:
        """Measure the next batch; False if there was none: the search has ended.

        A nest that cannot be measured ends with its `failure`.
        """
        before, spent = len(self.journal.trials), self._clock.seconds
        try:
            with self._clock:
                if self._running is not None and self._running.step():
                    return True
                self.end()
        except SearchError as error:
            self.failure = error
            self.close()
        finally:
            self._paid.append((len(self.journal.trials) - before, self._clock.seconds - spent))
        return False

    def end(self, interrupted: bool = False) -> None:
        """End with the best so far, which becomes the record.

        Raises KeyboardInterrupt if it was interrupted without a result, and SearchError if no point could be measured.
        """
        self.close()
        if interrupted and self._running is not None:
            self._running.interrupt()
        found = self._without_search() if self._running is None else self.journal.outcome()
        if interrupted or self.shared.interrupts.came:
            found = replace(found, stopped="interrupted", interrupted=True)
        elif self._running is not None:
            found = replace(found, stopped=self.shared.why(found.stopped))
        if found.trials:
            self._keep(found.best, finished=not found.interrupted)
        self._outcome = found
        speed = speed_text(found.seconds, self.yardstick)
        logger.info("%s: best of %d trials: %s; %s", self.problem.title, len(self.journal.trials), speed, found.stopped)

    def pause(self) -> None:
        """Give the memory of the arrays back until the next step."""
        if self._measurer is not None:
            self._measurer.pause()

    def close(self) -> None:
        """End the processes that measure."""
        if self._measurer is not None:
            self._measurer.close()
            self._measurer = None

    def kernel(self, task: TuningProblem) -> TunedKernel | TunedOpenCLKernel:
        """The kernel, after the end, of a problem with this session's key. Raises the session's failure."""
        if self.failure is not None:
            raise self.failure
        assert self._outcome is not None, "the session has ended"
        return _kernel(task, self._tuning(self._outcome), self.options.records)

    @property
    def standing(self) -> Standing:
        """What the next second of this search is worth."""
        best, later = self.best, self._paid[1:]  # the first batch also prepares the arrays
        trials, seconds = sum(count for count, _ in later), sum(spent for _, spent in later)
        each = self.space.predict(self.space.choice).seconds if best is None else self.journal.seconds(best)
        gain = self._running.gain.guess(self.journal) if self._running is not None else 0.0
        headroom = 1.0 if best is None or self.yardstick is None else self.yardstick.headroom(each)
        return Standing(
            seconds=self.weight * each,
            gain=min(gain, headroom) if self.journal.samples else gain,
            cost=seconds / trials if trials else None,
            trials=len(self.journal.trials),
        )

    @property
    def best(self) -> Point | None:
        """The best point so far: the incumbent once there was a decision, until then the best one from the records.

        If these have none, it is the first successfully measured point, which is better than nothing.
        """
        if self.journal.decided and self.journal.incumbent is not None:
            return self.journal.incumbent
        return self.remembered or next(iter(self.journal.samples), None)

    def _heard(self, event: Event) -> None:
        """Handle an event of the search: first store it and a new best point, then update the display."""
        if isinstance(event, Trial):
            self.history.keep(event)
            self.shared.tried += 1
        if self.best is not None and self.best != self.kept:
            self._keep(self.best, finished=False)
        self.show()
        if isinstance(event, Trial):
            self._report(event)

    def _report(self, trial: Trial) -> None:
        """Tell the log and the user's function about a trial, which is stored by now."""
        best = None if self.best is None else self.journal.seconds(self.best)
        number, title = len(self.journal.trials), self.problem.title
        made = TrialReport(title, number, trial, self.space, best, self._clock.seconds, self.yardstick)
        logger.debug("%s: %s", title, made)
        if self.options.on_trial is not None:
            self.options.on_trial(made)

    def _keep(self, best: Point, finished: bool) -> None:
        self.kept = best
        self.history.keep_best(best, self.journal, self._clock.seconds, finished)

    def show(self) -> None:
        """Update the display."""
        self.shared.display.update(self._status())

    def _status(self) -> Status:
        """The current status of the journal for the display."""
        journal, best = self.journal, self.best
        seconds = None if best is None else journal.seconds(best)
        return Status(
            title=self.problem.title,
            tried=len(journal.trials),
            reused=len(journal.known),
            failures=counted(journal.failures),
            best=seconds,
            choice=journal.seconds_beside(self.space.choice, best, seconds),
            where="" if best is None else point_words(self.space, best),
            trying="" if journal.batch is None else self._batch_words(journal.batch),
            elapsed=self.shared.elapsed,
            trials=self.options.trials,
            seconds=self.options.seconds,
            yardstick=self.yardstick,
            place=self.place,
            weight=self.weight,
            others=self.shared.tried - len(journal.trials),
        )

    def _batch_words(self, ask: Ask) -> str:
        """`4 candidates (order rows inside | as written)`."""
        kinds = dict.fromkeys(str(self.space.structures[point.structure]) for point in ask.points)
        count = len(ask.points)
        return f"{count} candidate{'s' * (count != 1)} ({' | '.join(kinds)})"

    def _strategy(self) -> Strategy:
        """The strategy; if it starts from the model's choice, it also tries the best points of other sizes."""
        strategy = find(self.options.strategy)
        seeds = self.history.seeds() if self.options.start == "model" else ()
        return seeded(strategy, seeds) if seeds else strategy

    def _without_search(self) -> Outcome:
        """The outcome from the records alone, if they have as many trials as the budget allows."""
        best, count = self.remembered, len(self.journal.known)
        if best is None:
            reasons = in_words(counted(self.journal.failures))
            raise SearchError(f"{self.problem.title}: none of {count} trials could be measured: {reasons}.")
        return Outcome(best, self.journal.seconds(best), (), f"the records hold {count} trials")

    def _tuning(self, found: Outcome) -> Tuning:
        return Tuning(
            title=self.problem.title,
            space=self.space,
            best=found.best,
            schedule=self.space.schedule(found.best),
            seconds=found.seconds,
            choice_seconds=self.journal.seconds_beside(self.space.choice, found.best, found.seconds),
            trials=len(self.journal.trials),
            reused=len(self.journal.known),
            failures=counted(self.journal.failures),
            stopped=found.stopped,
            interrupted=found.interrupted,
            elapsed=self._clock.seconds,
            yardstick=self.yardstick,
            store=self.store.path if self.store else None,
        )

    def _yardstick(self) -> Yardstick | None:
        here, task = machine(), self.problem
        if self.work is None:
            return None
        if is_gpu(task.isa):
            return gpu_yardstick(self.work)
        dtype = next((a.dtype.name for a in task.nest.arguments if a.name in task.nest.written), "")
        return yardstick(self.work, here, measured(here), dtype, task.threads)


class Stopwatch:
    """The seconds spent inside of its contexts, up to now."""

    def __init__(self) -> None:
        self._before = 0.0
        self._since: float | None = None

    def __enter__(self) -> Stopwatch:
        self._since = monotonic()
        return self

    def __exit__(self, *of_exit: object) -> None:
        self._before, self._since = self.seconds, None

    @property
    def seconds(self) -> float:
        return self._before + (0.0 if self._since is None else monotonic() - self._since)


def _space(task: TuningProblem) -> Space:
    """The space of a problem. Raises SearchError if it has no point."""
    made = derive(task.nest, target=str(task.target), threads=task.threads)
    if next(iter(made), None) is None:
        raise SearchError(f"{task.title}: no schedule of its space is legal, so there is nothing to search.")
    return replace(made, sizes=task.at)


def _kernel(task: TuningProblem, tuning: Tuning, records: bool) -> TunedKernel | TunedOpenCLKernel:
    """The kernel from the record, or from the schedule if there is no record or it has another schedule."""
    target = str(task.target)
    kernel = compile_nest(task.nest, target=target, threads=task.threads, records=records)
    if kernel.record is None or kernel.schedule.steps != tuning.schedule.steps:
        kernel = compile_nest(task.nest, schedule=tuning.schedule, target=target, threads=task.threads)
    return with_tuning(kernel, tuning)
