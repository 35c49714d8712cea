"""Run many cases in several processes, for some seconds or pairs; failures are reduced and printed as tests."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.connection import wait

from fuzz.cases import SHARES, Report
from fuzz.pairs import Failure, Pair
from fuzz.reduce import group, reduced
from fuzz.report import as_test
from fuzz.workers import Worker


@dataclass(frozen=True)
class Plan:
    """The plan: try cases until a number of pairs or seconds is reached, or one case alone."""

    seed: int
    seconds: float | None = None
    pairs: int | None = None
    case: int | None = None
    routes: tuple[str, ...] = tuple(SHARES)
    workers: int = 2
    first: int = 0
    """The number of the first case."""


@dataclass
class Found:
    """A fault: the first case that showed it, and the number of cases that did."""

    case: int
    failure: Failure
    times: int = 1


@dataclass
class Total:
    """The outcome of all cases."""

    counts: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    found: dict[str, Found] = field(default_factory=dict)
    cases: int = 0
    started: float = field(default_factory=time.monotonic)

    @property
    def pairs(self) -> int:
        return sum(self.counts[route] for route in SHARES)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    def add(self, case: int, report: Report | Failure) -> None:
        self.cases += 1
        if isinstance(report, Failure):
            report = Report(Counter({"crashes": 1}), Counter(), [report])
        self.counts += report.counts
        self.seconds += report.seconds
        for failure in report.failures:
            known = self.found.setdefault(group(failure), Found(case, failure, 0))
            known.times += 1

    def line(self) -> str:
        """One line of counts."""
        routes = ", ".join(f"{self.counts[route]} {route}" for route in SHARES if self.counts[route])
        steps = f"{self.counts['steps']} steps taken, {self.counts['refused steps']} refused"
        slow = sum(self.counts[f"slow {what}"] for what in ("nests", "schedules", "pairs"))
        speed = f"{self.elapsed:.0f} s, {self.pairs / max(self.elapsed, 1e-9):.1f} a second"
        return (
            f"{self.pairs} pairs ({routes}) of {self.cases} nests in {speed}; {steps}, "
            f"{self.counts['refused pairs']} pairs refused, {slow} too slow, {len(self.found)} faults"
        )


def run(plan: Plan, say: Callable[[Total], None] = lambda _: None) -> Total:
    """Try cases; `say` is called with the counts so far. Ctrl-C ends the run early."""
    total = Total()
    numbers = iter([plan.case]) if plan.case is not None else count(plan.first)
    workers = [Worker() for _ in range(1 if plan.case is not None else plan.workers)]
    try:
        for case, answer in _answers(workers, plan, numbers, total):
            total.add(case, answer)
            say(total)
    except KeyboardInterrupt:
        pass
    finally:
        for worker in workers:
            worker.stop()
    return total


def _answers(
    workers: list[Worker], plan: Plan, numbers: Iterator[int], total: Total
) -> Iterator[tuple[int, Report | Failure]]:
    """The answers of the cases as they arrive."""
    at: dict[int, int] = {}

    def next_case(worker: Worker) -> None:
        over = plan.seconds is not None and total.elapsed > plan.seconds
        over = over or (plan.pairs is not None and total.pairs >= plan.pairs)
        number = None if over else next(numbers, None)
        if number is not None:
            at[id(worker)] = number
            worker.ask("case", plan.seed, number, plan.routes)

    for worker in workers:
        next_case(worker)
    while any(worker.asked for worker in workers):
        busy = [worker for worker in workers if worker.asked]
        ready = wait([worker.connection for worker in busy], timeout=1.0)
        for worker in busy:
            answer = worker.read() if worker.connection in ready else worker.give_up() if worker.overdue else None
            if answer is not None:
                yield at[id(worker)], answer
                next_case(worker)


def shrink(found: Found, seed: int, seconds: float = 120.0) -> str:
    """The fault's pair, reduced, as a test."""
    failure = found.failure
    if failure.pair is None:
        return f"# case {found.case} of seed {seed}: {failure}\n"
    if not seconds:
        return as_test(failure, f"fuzz_{seed}_{found.case}")
    worker = Worker()

    def attempt(pair: Pair) -> Failure | None:
        worker.ask("pair", pair)
        answer = worker.wait()
        return answer if isinstance(answer, Failure) else None

    try:
        if attempt(failure.pair) is None:
            head = f"# case {found.case} of seed {seed} fails only in its case: {failure}\n"
            return head + as_test(failure, f"fuzz_{seed}_{found.case}")
        _, smallest = reduced(failure.pair, failure, attempt, seconds)
    finally:
        worker.stop()
    return as_test(smallest, f"fuzz_{seed}_{found.case}")
