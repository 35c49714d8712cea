"""The runner: all contenders in turn, round after round, with the machine's peak probed in between.

The rules are the same for all:

* Each contender works on arrays of its own with the same content, and is checked against float64 before it is timed.
* The arrays of all start at the same offsets, where NumPy's own do.
* A round takes one sample of each, in rotating order; a sample is as many calls as fill a few milliseconds.
* Data are warm: a sample follows an untimed call, unless a call takes so long that a cold start makes no difference.
* Threads are awake: on several threads, a sample or probe follows milliseconds of the same work. A cold case is the
  opposite: data are warm, but the threads slept, and one call is timed.
* The FMA peak is probed once per round, so percentages don't depend on drifts of the clock frequency; so is the issue
  rate, which tells whether the core's other hardware thread was busy.
* Medians and quartiles are reported, and ratios compare samples of the same round. No sample is discarded; if the times
  of our or the best peer's samples differ too much, all samples of the case are taken again, a few times at most. If
  they still do, the steadiest ones are reported as unreliable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import ceil, inf
from statistics import median
from time import perf_counter, sleep

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import Arrays
from benchmarks.case import Case, Problem
from benchmarks.contender import Contender, Entrant, Failed, NotInstalled, Tuned
from benchmarks.problems.mixed import MixedMatmul
from microkernels.dtypes import DType
from poly.timing.load import MachineLoad
from poly.timing.summary import Summary, is_precise, paired_ratio, summarize

ALWAYS_WARM = 0.02
"""Seconds per call above which a cold start makes no difference: 32 MB from memory take a few milliseconds."""

SHORT = 20e-6
"""Seconds per call at the machine's peak below which a loop in Python would measure Python."""

SETTLE = 0.03
"""Seconds to wait before a sample on several threads, until the previous contender's threads stop spinning.

`SPINNING` in `benchmarks/contest.py` has them stop in that time."""

AWAKE = 0.01
"""Seconds of untimed work that wake threads: the last thread of a team that slept starts a third of a ms late."""

STEADY = 0.2
"""The largest distance of the quartiles of a contender's times, relative to the median, that counts as steady."""

ATTEMPTS = 3
"""How often the samples of a case are taken at most, until they are steady."""

MARGIN = 8
"""The tolerance as a multiple of sqrt(k) epsilon, by which rounding errors of k random terms grow."""
ROUNDED = 2.0**-8
"""The tolerance where a peer rounds results of halves to bf16, once: its unit."""


@dataclass(frozen=True)
class Rounds:
    """Rounds stop after `seconds`; there are at least `rounds[0]` and at most `rounds[1]` of them.

    `sample` is the length of a sample in seconds. A peer whose first run takes more than `close` times the fastest
    right one's takes no part in the rounds, unless its name is in `always`: those are also called from Python where
    that takes longer than the work. A contender takes part in the first rounds, as many as fill `patience` seconds.
    Rounds also stop, once there are enough, when the medians of ours and of the best peer are known to `precise`: half
    the width of their 95 % intervals, relative to them. `attempts` is how often the samples of a case are taken at
    most, until they are steady.
    """

    seconds: float
    rounds: tuple[int, int] = (5, 60)
    sample: float = 0.002
    close: float = inf
    always: frozenset[str] = frozenset()
    attempts: int = ATTEMPTS
    patience: float = inf
    precise: float | None = None


@dataclass(frozen=True)
class ContenderTiming:
    """A contender's samples, in seconds per call, and the error of its result relative to the largest element."""

    name: str
    version: str
    config: str
    samples: tuple[float, ...]
    error: float
    right: bool
    building: float | None = None
    workspace: int | None = None
    tuned: Tuned | None = None

    @property
    def seconds(self) -> Summary:
        return summarize(self.samples)


@dataclass(frozen=True)
class Result:
    """A case's results: all timings, why others have none, and the probed peak in GFLOP/s, one sample per round.

    `issues` are the issue rates of the rounds, if they are known; `attempts` is how often all samples were taken.
    `date` is when that began, and `load` what else the machine did meanwhile.
    """

    case: Case
    threads: int
    timings: tuple[ContenderTiming, ...]
    peaks: tuple[float, ...]
    missing: tuple[tuple[str, str], ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    issues: tuple[float, ...] = ()
    attempts: int = 1
    date: datetime | None = None
    load: MachineLoad | None = None

    @property
    def peak(self) -> Summary:
        return summarize(self.peaks)

    @property
    def wrong(self) -> tuple[ContenderTiming, ...]:
        """The contenders whose result is wrong."""
        return tuple(timing for timing in self.timings if not timing.right)

    def timing(self, name: str) -> ContenderTiming | None:
        return next((timing for timing in self.timings if timing.name == name), None)

    def peers(self, ours: str) -> tuple[ContenderTiming, ...]:
        """The other contenders, the fastest first."""
        return tuple(sorted((t for t in self.timings if t.name != ours), key=lambda t: t.seconds.median))

    def best_peer(self, ours: str) -> ContenderTiming | None:
        """The fastest peer whose result is right: of those that took part in all rounds, or if none did, of all."""
        rounds = max((len(timing.samples) for timing in self.timings), default=0)
        right = [timing for timing in self.peers(ours) if timing.right]
        return next((t for t in right if len(t.samples) == rounds), next(iter(right), None))

    def gflops(self, timing: ContenderTiming) -> float:
        return self.case.problem.flop / timing.seconds.median / 1e9

    def ratio(self, ours: str) -> Summary | None:
        """The speed relative to the best peer, over the rounds; None if either is missing."""
        mine, best = self.timing(ours), self.best_peer(ours)
        return self.ratio_to(best, mine) if mine and best else None

    def ratio_to(self, peer: ContenderTiming, mine: ContenderTiming) -> Summary:
        """The speed relative to a peer, over the rounds in which it took part: the first ones."""
        rounds = min(len(peer.samples), len(mine.samples))
        return paired_ratio(peer.samples[:rounds], mine.samples[:rounds])

    def unsteadiness(self, ours: str) -> float:
        """The distance of the quartiles relative to the median: of our times or the best peer's, whichever is more."""
        judged = (self.timing(ours), self.best_peer(ours))
        return max((2 * timing.seconds.spread for timing in judged if timing), default=0.0)

    def reliable(self, ours: str) -> bool:
        """Whether the times are steady."""
        return self.unsteadiness(ours) <= STEADY


Announce = Callable[[str], None]


def measure(
    case: Case,
    threads: int,
    entrants: Sequence[Entrant],
    probe: Callable[[], float],
    budget: Rounds,
    announce: Announce = lambda _: None,
    issue: Callable[[], float] | None = None,
) -> Result:
    """Check and time all entrants on one case; the first of them is ours.

    `probe` gives the peak in GFLOP/s for as many threads, `issue` their issue rate.
    """
    expected = case.problem.expected(case.problem.arrays(case.dtype))
    contenders: list[Contender] = []
    errors: list[float] = []
    missing, failed = [], []
    short = case.problem.flop / (probe() * 1e9) < SHORT
    for entrant in entrants:
        announce(f"{case.title}: {entrant.name}")
        try:
            contender = entrant.enter(case, threads)
            if contender is None or (short and not contender.in_c and entrant.name not in budget.always):
                continue
            errors.append(relative_error(contender.result(), expected))
            contenders.append(contender)
        except NotInstalled as error:
            missing.append((entrant.name, str(error)))
        except Failed as error:
            failed.append((entrant.name, str(error)))
    del expected
    limit = tolerance(case)

    def timed(attempt: int) -> Result:
        announce(f"{case.title}: timing" + ", again" * (attempt > 1))
        right = [error <= limit for error in errors]
        taken = _take(contenders, right, Conditions(probe, issue, threads, case.cold), budget)
        timings = tuple(
            _timing(c, times, error, limit) for c, times, error in zip(contenders, taken.times, errors, strict=True)
        )
        peaks, issues = tuple(taken.peaks), tuple(taken.issues)
        return Result(case, threads, timings, peaks, tuple(missing), tuple(failed), issues)

    return _steadiest(timed, entrants[0].name, budget.attempts)


def _timing(contender: Contender, times: Sequence[float], error: float, limit: float) -> ContenderTiming:
    return ContenderTiming(
        contender.name,
        contender.version,
        contender.config,
        tuple(times),
        error,
        error <= limit,
        contender.building,
        contender.workspace,
        contender.tuned,
    )


def _steadiest(timed: Callable[[int], Result], ours: str, attempts: int) -> Result:
    """The first steady result, or the steadiest of a few, with the number of all attempts."""
    results: list[Result] = []
    while len(results) < attempts and not (results and results[-1].reliable(ours)):
        results.append(timed(len(results) + 1))
    return replace(min(results, key=lambda result: result.unsteadiness(ours)), attempts=len(results))


def relative_error(result: Arrays, expected: NDArray[np.float64] | tuple[NDArray[np.float64], ...]) -> float:
    """The largest error, relative to the largest element; infinite if the shape is wrong or a result is not finite.

    Of several results the largest one's, each relative to its own elements.
    """
    if isinstance(expected, tuple):
        return max((relative_error(one, other) for one, other in zip(result, expected, strict=True)), default=0.0)
    assert not isinstance(result, tuple), "one result is expected"
    if result.shape != expected.shape or not np.isfinite(result).all():
        return float("inf")
    scale = float(np.abs(expected).max()) or 1.0
    return float(np.abs(result - expected).max()) / scale


def tolerance(case: Case) -> float:
    """The largest relative error that passes for a case."""
    return accuracy(case.problem, case.dtype)


def accuracy(problem: Problem, dtype: DType) -> float:
    """The largest relative error that passes for a problem, in a scalar type."""
    if not dtype.is_float:
        return 0.0
    if isinstance(problem, MixedMatmul) and problem.operands.is_float:
        return ROUNDED
    epsilon = float(np.finfo(dtype.numpy_name).eps)
    return float(MARGIN * epsilon * np.sqrt(problem.reduction + 1))


@dataclass(frozen=True)
class Conditions:
    """What all samples of a case share: the probes of peak and issue rate, the threads, and whether these slept."""

    probe: Callable[[], float]
    issue: Callable[[], float] | None
    threads: int
    cold: bool

    @property
    def settle(self) -> float:
        return SETTLE if self.threads > 1 else 0.0

    @property
    def awake(self) -> float:
        return AWAKE if self.threads > 1 else 0.0


@dataclass(frozen=True)
class Samples:
    """The samples of each contender, in seconds per call, and those of the probes: one each in every round."""

    times: list[list[float]]
    peaks: list[float] = field(default_factory=list)
    issues: list[float] = field(default_factory=list)


def _take(contenders: Sequence[Contender], right: Sequence[bool], conditions: Conditions, budget: Rounds) -> Samples:
    paces = [_pace(contender, budget.sample) for contender in contenders]
    taking_part = _taking_part(contenders, right, [pace.seconds for pace in paces], budget)
    taken = Samples([[] if n in taking_part else [pace.seconds] for n, pace in enumerate(paces)])
    limits = [pace.rounds(budget.patience) for pace in paces]
    judged = [n for n in taking_part if n == 0 or right[n]]
    least, most = budget.rounds
    look = least
    start = perf_counter()
    for turn in range(most):
        sleep(conditions.settle)
        _work(conditions.probe, conditions.awake)
        taken.peaks.append(conditions.probe())
        if conditions.issue:
            taken.issues.append(conditions.issue())
        for place in range(len(taking_part)):
            index = taking_part[(place + turn) % len(taking_part)]
            if turn >= limits[index]:
                continue
            times = taken.times[index]
            if conditions.cold:
                times.append(_cold_sample(contenders[index]))
            else:
                long = (times or [paces[index].seconds])[-1] >= ALWAYS_WARM
                times.append(_sample(contenders[index], paces[index].calls, long, conditions))
        if turn + 1 >= least and perf_counter() - start > budget.seconds:
            break
        if budget.precise is not None and turn + 1 >= look:
            look = ceil(1.5 * look)
            if _known([taken.times[n] for n in judged], budget.precise):
                break
    return taken


def _known(times: Sequence[Sequence[float]], precise: float) -> bool:
    """Whether the medians of ours, which are the first, and of the fastest of the others are known well enough."""
    ours, others = times[0], sorted((t for t in times[1:] if len(t) == len(times[0])), key=median)
    return all(is_precise(samples, precise) for samples in (ours, *others[:1]))


def _taking_part(
    contenders: Sequence[Contender], right: Sequence[bool], seconds: Sequence[float], budget: Rounds
) -> list[int]:
    """The places of those that take part in the rounds: we, the peers that are close, and the chosen ones."""
    fastest = min((s for s, fine in list(zip(seconds, right, strict=True))[1:] if fine), default=inf)
    return [
        n
        for n, (contender, fine) in enumerate(zip(contenders, right, strict=True))
        if n == 0
        or contender.name in budget.always
        or budget.close == inf
        or (fine and seconds[n] <= budget.close * fastest)
    ]


@dataclass(frozen=True)
class Pace:
    """The number of calls that fill a sample, and the seconds of a call."""

    calls: int
    seconds: float

    def rounds(self, patience: float) -> float:
        """The most rounds that take no longer than `patience`: at least one."""
        return max(1.0, patience // (self.calls * self.seconds)) if patience < inf else inf


def _pace(contender: Contender, sample: float) -> Pace:
    if contender.first is not None and contender.first >= ALWAYS_WARM:
        return Pace(1, contender.first)
    calls = 1
    while (seconds := contender.run(calls)) < sample / 2:
        calls *= max(2, min(100, ceil(sample / max(seconds, 1e-9) / 2)))
    return Pace(max(1, round(calls * sample / seconds)), seconds / calls)


def _sample(contender: Contender, calls: int, long: bool, conditions: Conditions) -> float:
    sleep(conditions.settle)
    if not long:
        contender.run(1)
        _work(lambda: contender.run(calls), conditions.awake)
    return contender.run(calls) / calls


def _cold_sample(contender: Contender) -> float:
    contender.run(1)
    sleep(SETTLE)
    return contender.run(1)


def _work(work: Callable[[], object], seconds: float) -> None:
    """Repeat untimed work for so long."""
    start = perf_counter()
    while perf_counter() - start < seconds:
        work()
