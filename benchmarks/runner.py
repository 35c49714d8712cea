"""The runner: all contenders in turn, round after round, with the machine's peak probed in between.

The rules are the same for all:

* Each contender works on arrays of its own with the same content, and is checked against float64 before it is timed.
* A round takes one sample of each, in rotating order; a sample is as many calls as fill a few milliseconds.
* Data are warm: a sample follows an untimed call, unless a call takes so long that a cold start makes no difference.
* The FMA peak is probed once per round, so percentages don't depend on drifts of the clock frequency.
* Medians and quartiles are reported, and ratios compare samples of the same round. No sample is discarded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from time import perf_counter, sleep

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import Array
from benchmarks.case import Case, Problem
from benchmarks.contender import Contender, Entrant, Failed, NotInstalled
from benchmarks.stats import Summary, paired_ratio, summarize
from microkernels.dtypes import DType

ALWAYS_WARM = 0.02
"""Seconds per call above which a cold start makes no difference: 32 MB from memory take a few milliseconds."""

SHORT = 20e-6
"""Seconds per call at the machine's peak below which a loop in Python would measure Python."""

SETTLE = 0.03
"""Seconds to wait before a sample on several threads, until the previous contender's threads stop spinning."""

MARGIN = 8
"""The tolerance as a multiple of sqrt(k) epsilon, by which rounding errors of k random terms grow."""


@dataclass(frozen=True)
class Rounds:
    """Rounds stop after `seconds`; there are at least `rounds[0]` and at most `rounds[1]` of them.

    `sample` is the length of a sample in seconds.
    """

    seconds: float
    rounds: tuple[int, int] = (5, 60)
    sample: float = 0.002


@dataclass(frozen=True)
class ContenderTiming:
    """A contender's samples, in seconds per call, and the error of its result relative to the largest element."""

    name: str
    version: str
    config: str
    samples: tuple[float, ...]
    error: float
    right: bool

    @property
    def seconds(self) -> Summary:
        return summarize(self.samples)


@dataclass(frozen=True)
class Result:
    """A case's results: all timings, why others have none, and the probed peak in GFLOP/s, one sample per round."""

    case: Case
    threads: int
    timings: tuple[ContenderTiming, ...]
    peaks: tuple[float, ...]
    missing: tuple[tuple[str, str], ...] = ()
    failed: tuple[tuple[str, str], ...] = ()

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
        """The fastest peer whose result is right."""
        return next((timing for timing in self.peers(ours) if timing.right), None)

    def gflops(self, timing: ContenderTiming) -> float:
        return self.case.problem.flop / timing.seconds.median / 1e9

    def ratio(self, ours: str) -> Summary | None:
        """The speed relative to the best peer, over the rounds; None if either is missing."""
        mine, best = self.timing(ours), self.best_peer(ours)
        return paired_ratio(best.samples, mine.samples) if mine and best else None


Announce = Callable[[str], None]


def measure(
    case: Case,
    threads: int,
    entrants: Sequence[Entrant],
    probe: Callable[[], float],
    budget: Rounds,
    announce: Announce = lambda _: None,
) -> Result:
    """Check and time all entrants on one case. `probe` gives the peak in GFLOP/s, for as many threads."""
    expected = case.problem.expected(case.problem.arrays(case.dtype))
    contenders: list[Contender] = []
    errors: list[float] = []
    missing, failed = [], []
    short = case.problem.flop / (probe() * 1e9) < SHORT
    for entrant in entrants:
        announce(f"{case.title}: {entrant.name}")
        try:
            contender = entrant.enter(case, threads)
            if contender is None or (short and not contender.in_c):
                continue
            errors.append(relative_error(contender.result(), expected))
            contenders.append(contender)
        except NotInstalled as error:
            missing.append((entrant.name, str(error)))
        except Failed as error:
            failed.append((entrant.name, str(error)))
    del expected
    announce(f"{case.title}: timing")
    samples, peaks = _rounds(contenders, probe, budget, SETTLE if threads > 1 else 0)
    limit = tolerance(case)
    timings = tuple(
        ContenderTiming(c.name, c.version, c.config, tuple(times), error, error <= limit)
        for c, times, error in zip(contenders, samples, errors, strict=True)
    )
    return Result(case, threads, timings, tuple(peaks), tuple(missing), tuple(failed))


def relative_error(result: Array, expected: NDArray[np.float64]) -> float:
    """The largest error, relative to the largest element; infinite if the shape is wrong or a result is not finite."""
    if result.shape != expected.shape or not np.isfinite(result).all():
        return float("inf")
    scale = float(np.abs(expected).max()) or 1.0
    return float(np.abs(result - expected).max()) / scale


def tolerance(case: Case) -> float:
    """The largest relative error that passes for a case."""
    return accuracy(case.problem, case.dtype)


def accuracy(problem: Problem, dtype: DType) -> float:
    """The largest relative error that passes for a problem, in a scalar type."""
    epsilon = float(np.finfo(dtype.numpy_name).eps)
    return float(MARGIN * epsilon * np.sqrt(problem.reduction + 1))


def _rounds(
    contenders: Sequence[Contender], probe: Callable[[], float], budget: Rounds, settle: float
) -> tuple[list[list[float]], list[float]]:
    calls = [_calls(contender, budget.sample) for contender in contenders]
    samples: list[list[float]] = [[] for _ in contenders]
    peaks: list[float] = []
    least, most = budget.rounds
    start = perf_counter()
    for turn in range(most):
        sleep(settle)
        peaks.append(probe())
        for place in range(len(contenders)):
            index = (place + turn) % len(contenders)
            sleep(settle)
            samples[index].append(_sample(contenders[index], calls[index], samples[index]))
        if turn + 1 >= least and perf_counter() - start > budget.seconds:
            break
    return samples, peaks


def _calls(contender: Contender, sample: float) -> int:
    """The number of calls that fill a sample."""
    calls = 1
    while (seconds := contender.run(calls)) < sample / 2:
        calls *= max(2, min(100, ceil(sample / max(seconds, 1e-9) / 2)))
    return max(1, round(calls * sample / seconds))


def _sample(contender: Contender, calls: int, before: Sequence[float]) -> float:
    if not before or before[-1] < ALWAYS_WARM:
        contender.run(1)
    return contender.run(calls) / calls
