"""One tuning from start to end: the space, the records, the search, the kernel.

The journal is the whole state of the search. Each event is stored and then shown, so that nothing is lost if the
process is killed, the time is up, or Ctrl-C ends the search, which keeps the best found so far.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from random import Random
from time import monotonic
from types import FrameType, TracebackType
from typing import Protocol

from microkernels.opencl_isa import is_gpu
from poly.analysis.work import work
from poly.autoschedule.derive import space as derive
from poly.autoschedule.spaces.space import Point, Space
from poly.compilation import compile_nest
from poly.errors import SearchError
from poly.ir.nest import Nest
from poly.machine import machine, measured
from poly.measure import LiveMeasurer
from poly.records import Store, key_for
from poly.search.events import Ask, Event, Strategy, Trial
from poly.search.journal import Journal, Outcome
from poly.search.run import reserve, search
from poly.search.strategies import strategy as find
from poly.timing.yardstick import Yardstick, gpu_yardstick, speed_text, yardstick
from poly.tuning.display import Display, Silent, Status, display
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
from poly.tuning.problem import TuningProblem, problem
from poly.tuning.report import TrialReport

logger = logging.getLogger("poly.tune")


def tuned(
    nest: Nest,
    options: Options,
    *,
    target: str = "c",
    threads: int | None = None,
    sizes: Mapping[str, int] | None = None,
    at: Mapping[str, int] | None = None,
) -> TunedKernel | TunedOpenCLKernel:
    """Search for the best schedule of a nest, and compile it. `poly.tune` documents the arguments and errors."""
    return _Session(problem(nest, target, threads, sizes or {}, at), options).run()


class _Session:
    def __init__(self, task: TuningProblem, options: Options) -> None:
        self.began = monotonic()
        self.problem, self.options = task, options
        self.space = _space(task)
        self.work = work(task.measured)
        self.store = Store.open() if options.records else None
        key = key_for(task.nest, task.isa, task.threads, task.target.device)
        if options.cold:  # a separate problem: poly.compile uses records for warm caches
            key = replace(key, target=f"{key.target}, cold")
        self.history = History(self.store, key, self.space, options.name, self.work)
        self.journal = Journal(self.history.known(), [self._heard])
        self.remembered = self.kept = self.history.remembered(self.journal)
        self.display: Display = Silent()
        self.yardstick = self._yardstick()

    def run(self) -> TunedKernel | TunedOpenCLKernel:
        logger.info("%s: tuning begins, with %d trials from the records", self.problem.title, len(self.journal.known))
        with display(self.options.show) as self.display:
            self.display.update(self._status())
            found = self._search()
            if found.trials:
                self._keep(found.best, finished=not found.interrupted)
        speed = speed_text(found.seconds, self.yardstick)
        logger.info("%s: best of %d trials: %s; %s", self.problem.title, len(self.journal.trials), speed, found.stopped)
        return self._kernel(self._tuning(found))

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
        if self.best is not None and self.best != self.kept:
            self._keep(self.best, finished=False)
        self.display.update(self._status())
        if isinstance(event, Trial):
            self._report(event)

    def _report(self, trial: Trial) -> None:
        """Tell the log and the user's function about a trial, which is stored by now."""
        best = None if self.best is None else self.journal.seconds(self.best)
        number, title = len(self.journal.trials), self.problem.title
        made = TrialReport(title, number, trial, self.space, best, self._elapsed(), self.yardstick)
        logger.debug("%s: %s", title, made)
        if self.options.on_trial is not None:
            self.options.on_trial(made)

    def _keep(self, best: Point, finished: bool) -> None:
        self.kept = best
        self.history.keep_best(best, self.journal, self._elapsed(), finished)

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
            elapsed=self._elapsed(),
            trials=self.options.trials,
            seconds=self.options.seconds,
            yardstick=self.yardstick,
        )

    def _batch_words(self, ask: Ask) -> str:
        """`4 candidates (order rows inside | as written)`."""
        kinds = dict.fromkeys(str(self.space.structures[point.structure]) for point in ask.points)
        count = len(ask.points)
        return f"{count} candidate{'s' * (count != 1)} ({' | '.join(kinds)})"

    def _search(self) -> Outcome:
        budget = self.options.budget(len(self.journal.known), self._elapsed())
        if budget is None:
            return self._without_search()
        measuring = LiveMeasurer(self.space, cold=self.options.cold, seed=self.options.seed)
        with Interrupts() as interrupts, measuring as measurer:
            found = search(
                self.space,
                self._strategy(),
                Stoppable(measurer, self._over, interrupts),
                start=self.space.origin if self.options.start == "origin" else self.space.choice,
                budget=budget,
                random=Random(self.options.seed),
                journal=self.journal,
                clock=monotonic,
            )
        if interrupts.came:
            return replace(found, stopped="interrupted", interrupted=True)
        return found if found.interrupted else replace(found, stopped=self._why(found))

    def _why(self, found: Outcome) -> str:
        """Why the search ended, in terms of the user's budget: the search itself only knew the remainder."""
        most, seconds, tried = self.options.most, self.options.seconds, len(self.journal.trials)
        if most is not None and tried + reserve(most) >= most:
            return f"the budget of {most} trials is spent"
        if seconds is not None and self._over():
            return f"the budget of {seconds:g} s is spent"
        return found.stopped

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
            elapsed=self._elapsed(),
            yardstick=self.yardstick,
            store=self.store.path if self.store else None,
        )

    def _kernel(self, tuning: Tuning) -> TunedKernel | TunedOpenCLKernel:
        """The kernel from the record, or from the schedule if there is no record or it has another schedule."""
        task, target = self.problem, str(self.problem.target)
        kernel = compile_nest(task.nest, target=target, threads=task.threads, records=self.options.records)
        if kernel.record is None or kernel.schedule.steps != tuning.schedule.steps:
            kernel = compile_nest(task.nest, schedule=tuning.schedule, target=target, threads=task.threads)
        return with_tuning(kernel, tuning)

    def _yardstick(self) -> Yardstick | None:
        here, task = machine(), self.problem
        if self.work is None:
            return None
        if is_gpu(task.isa):
            return gpu_yardstick(self.work)
        dtype = next((a.dtype.name for a in task.nest.arguments if a.name in task.nest.written), "")
        return yardstick(self.work, here, measured(here), dtype, task.threads)

    def _elapsed(self) -> float:
        return monotonic() - self.began

    def _over(self) -> bool:
        seconds = self.options.seconds
        return seconds is not None and self._elapsed() >= seconds


def _space(task: TuningProblem) -> Space:
    """The space of a problem. Raises SearchError if it has no point."""
    made = derive(task.nest, target=str(task.target), threads=task.threads)
    if next(iter(made), None) is None:
        raise SearchError(f"{task.title}: no schedule of its space is legal, so there is nothing to search.")
    return replace(made, sizes=task.at)


class PointSource(Protocol):
    """Measures points one by one."""

    def trials(self, ask: Ask) -> Iterator[Trial]:
        """A trial for each point asked for, in order, each as soon as it is available."""


class Stoppable:
    """A measurer that ends a batch when time is up, and raises KeyboardInterrupt again if Ctrl-C got lost."""

    def __init__(self, source: PointSource, over: Callable[[], bool], interrupts: Interrupts) -> None:
        self._source, self._over, self._interrupts = source, over, interrupts

    def measure(self, ask: Ask) -> Iterator[Trial]:
        self._interrupts.check()
        for trial in self._source.trials(ask):
            yield trial
            self._interrupts.check()
            if self._over():
                return


class Interrupts:
    """Inside this context, `came` tells whether Ctrl-C was pressed; KeyboardInterrupt is raised as usual.

    An exception raised inside a callback from C is lost there; `check` raises it again. Nothing is done outside the
    main thread, or in a program that handles the signal itself.
    """

    def __init__(self) -> None:
        self.came = False
        self._installed = False

    def __enter__(self) -> Interrupts:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)
            self._installed = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed."""
        if self.came:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        signal.default_int_handler(number, frame)
