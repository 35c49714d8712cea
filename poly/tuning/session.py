"""One tuning from its beginning to its end: the space, what is known, the search, the kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from time import monotonic

from microkernels.opencl_isa import is_gpu
from poly.compilation import compile_nest
from poly.errors import SearchError
from poly.machine import machine, measured
from poly.measure import LiveMeasurer
from poly.nest import Nest
from poly.records import Store, key_for
from poly.search.outcome import Outcome
from poly.search.playoff import reserve
from poly.search.run import search
from poly.search.strategies import strategy as find
from poly.search.trial import Strategy
from poly.spaces.derive import space as derive
from poly.spaces.space import Space
from poly.tuning.display import display
from poly.tuning.failures import in_words
from poly.tuning.history import History
from poly.tuning.how import How
from poly.tuning.interrupts import Interrupts
from poly.tuning.outcome import TunedKernel, TunedOpenCLKernel, Tuning, with_tuning
from poly.tuning.problem import Problem, problem
from poly.tuning.status import Status
from poly.tuning.transfer import seeded
from poly.tuning.watch import Watch
from poly.tuning.watched import Watched
from poly.tuning.work import Yardstick, gpu_yardstick, work, yardstick


def tuned(
    nest: Nest,
    how: How,
    *,
    target: str = "c",
    threads: int | None = None,
    sizes: Mapping[str, int] | None = None,
    at: Mapping[str, int] | None = None,
) -> TunedKernel | TunedOpenCLKernel:
    """Search for the best schedule of a nest, and compile it. `poly.tune` has the arguments and what is raised."""
    return _Session(problem(nest, target, threads, sizes or {}, at), how).run()


class _Session:
    def __init__(self, told: Problem, how: How) -> None:
        self.began = monotonic()
        self.problem, self.how = told, how
        self.space = _space(told)
        self.work = work(told.measured)
        self.store = Store.open() if how.records else None
        key = key_for(told.nest, told.isa, told.threads, told.target.device)
        if how.cold:  # a problem of its own: poly.compile takes what is fast with warm caches
            key = replace(key, target=f"{key.target}, cold")
        self.history = History(self.store, key, self.space, how.name, self.work)
        self.known = self.history.known()
        self.yardstick = self._yardstick()

    def run(self) -> TunedKernel | TunedOpenCLKernel:
        limits = self.how.limits
        status = Status(self.problem.title, trials=limits.trials, seconds=limits.seconds, yardstick=self.yardstick)
        with display(self.how.show) as shown:
            watch = Watch(self.history, self.known, shown, status, self._elapsed)
            found = self._search(watch)
            if found.trials:
                watch.keep(found.best, finished=not found.interrupted)
        return self._kernel(self._tuning(found, watch))

    def _search(self, watch: Watch) -> Outcome:
        budget = self.how.limits.left(len(self.known), self._elapsed())
        if budget is None:
            return self._remembered(watch)
        measuring = LiveMeasurer(self.space, cold=self.how.cold, seed=self.how.seed)
        with Interrupts() as interrupts, measuring as measurer:
            watched = Watched(measurer, watch.asked, watch.told, self._over, lambda: interrupts.came)
            found = search(
                self.space,
                self._strategy(),
                watched,
                start=self.space.origin if self.how.start == "origin" else self.space.choice,
                budget=budget,
                random=Random(self.how.seed),
                observe=watch.observe,
                known=self.known,
                clock=monotonic,
            )
        if watched.interrupted:
            return replace(found, stopped="interrupted", interrupted=True)
        return replace(found, stopped=self._why(found))

    def _why(self, found: Outcome) -> str:
        """Why the search ended, in the numbers that the user gave: it only knew what was left of them."""
        limits, tried = self.how.limits, len(self.known) + len(found.trials)
        if limits.most is not None and tried + reserve(limits.most) >= limits.most:
            return f"the budget of {limits.most} trials is spent"
        if limits.seconds is not None and self._over():
            return f"the budget of {limits.seconds:g} s is spent"
        return found.stopped

    def _strategy(self) -> Strategy:
        """The strategy; from the model's choice it also looks at what the records say of other sizes."""
        strategy = find(self.how.strategy)
        seeds = self.history.seeds() if self.how.start == "model" else ()
        return seeded(strategy, seeds) if seeds else strategy

    def _remembered(self, watch: Watch) -> Outcome:
        """What the records know, where they hold as many trials as may be made."""
        if watch.best is None or watch.seconds is None:
            reasons = in_words(watch.failures)
            raise SearchError(f"{self.problem.title}: none of {len(self.known)} trials could be measured: {reasons}.")
        return Outcome(watch.best, watch.seconds, (), f"the records hold {len(self.known)} trials")

    def _tuning(self, found: Outcome, watch: Watch) -> Tuning:
        return Tuning(
            title=self.problem.title,
            space=self.space,
            best=found.best,
            schedule=self.space.schedule(found.best),
            seconds=found.seconds,
            choice_seconds=watch.choice_seconds(found.best, found.seconds),
            trials=len(self.known) + len(found.trials),
            reused=len(self.known),
            failures=watch.failures,
            stopped=found.stopped,
            interrupted=found.interrupted,
            elapsed=self._elapsed(),
            yardstick=self.yardstick,
            store=self.store.path if self.store else None,
        )

    def _kernel(self, tuning: Tuning) -> TunedKernel | TunedOpenCLKernel:
        """The kernel by the record, or by the schedule alone where there is no record or another one is better."""
        told, target = self.problem, str(self.problem.target)
        kernel = compile_nest(told.nest, target=target, threads=told.threads, records=self.how.records)
        if kernel.record is None or kernel.schedule.steps != tuning.schedule.steps:
            kernel = compile_nest(told.nest, schedule=tuning.schedule, target=target, threads=told.threads)
        return with_tuning(kernel, tuning)

    def _yardstick(self) -> Yardstick | None:
        here, told = machine(), self.problem
        if self.work is None:
            return None
        if is_gpu(told.isa):
            return gpu_yardstick(self.work)
        dtype = next((a.dtype.name for a in told.nest.arguments if a.name in told.nest.written), "")
        return yardstick(self.work, here, measured(here), dtype, told.threads)

    def _elapsed(self) -> float:
        return monotonic() - self.began

    def _over(self) -> bool:
        seconds = self.how.limits.seconds
        return seconds is not None and self._elapsed() >= seconds


def _space(told: Problem) -> Space:
    """The space of a problem. Raises SearchError where it has no point."""
    made = derive(told.nest, target=str(told.target), threads=told.threads)
    if next(iter(made), None) is None:
        raise SearchError(f"{told.title}: no schedule of its space is legal, so there is nothing to search.")
    return replace(made, sizes=told.at)
