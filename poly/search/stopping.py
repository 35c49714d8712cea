"""When a search stops: its budget is spent, or the expected gain of continuing is too small.

For an untried point, `Surrogate` predicts a normally distributed log time with some mean m and deviation s. On average
it improves on the best time so far, t, by the expected improvement (Jones, Schonlau and Welch, "Efficient Global
Optimization of Expensive Black-Box Functions", J. Global Optimization 13, 1998, section 4.1)

    E[max(0, t - Y)] = (t - m) Phi((t - m) / s) + s phi((t - m) / s),    Y ~ N(m, s^2), t and m in log seconds

The `AHEAD` points of largest expected improvement are those that a search could try next. The expected gain of the best
of them, estimated by draws from their joint distribution, is the promise. Promises may not be kept: the model may err
in ways unknown to the surrogate, or the strategy may look elsewhere. So the promise is multiplied by the kept fraction
of earlier ones,

    (CREDIT + gained) / (CREDIT + promised)

in which old gains and promises fade, by half every `MEMORY` trials. The search stops when the product falls below the
gain that the budget asks for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from math import log
from random import Random
from time import monotonic

import numpy as np

from poly.autoschedule.spaces.space import Space
from poly.errors import SearchError
from poly.search.journal import Journal
from poly.search.proposals import MOST, sampled
from poly.search.surrogate import Surrogate, Vector

AHEAD = 8
"""The number of measurements that the promise looks ahead, and the least number it is based on: a batch or two."""
CREDIT = 0.02
"""The initial trust in promises, as a gain in log seconds; that much in broken promises halves it."""
MEMORY = 16
"""The half-life of promises and gains, in trials."""
DRAWS = 256
"""The number of draws averaged for the promise, which gives it an accuracy of a few percent."""
FINALISTS = 3
"""The most points of a search that are measured again with the incumbent at its end."""


@dataclass(frozen=True)
class Budget:
    """Limits of a search; the first one reached ends it.

    `trials` is the number of measurements, including those of the finalists; `seconds` is wall-clock time; `gain` is
    the expected gain (`ExpectedGain`) below which continuing is not worthwhile, 0.01 for 1 %. None means no limit.
    Raises `SearchError` for a limit of zero or less.
    """

    trials: int | None = None
    seconds: float | None = None
    gain: float | None = 0.01

    def __post_init__(self) -> None:
        for name in ("trials", "seconds", "gain"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise SearchError(
                    f"a budget of {name}={value} allows no search: give more than 0, or None for no limit."
                )

    def spent(self, trials: int, elapsed: float, reserved: int = 0) -> str:
        """Why no more can be measured after these trials and seconds; empty if more can.

        `reserved` trials are kept for later.
        """
        if self.trials is not None and trials + reserved >= self.trials:
            return f"the budget of {self.trials} trials is spent"
        if self.seconds is not None and elapsed >= self.seconds:
            return f"the budget of {self.seconds:g} s is spent"
        return ""

    def left(self, trials: int, elapsed: float, reserved: int = 0) -> int:
        """The number of points that fit into the remaining budget at the rate so far; at least one."""
        left = sys.maxsize if self.trials is None else self.trials - reserved - trials
        if self.seconds is not None and trials and elapsed > 0:
            left = min(left, int((self.seconds - elapsed) * trials / elapsed))
        return max(1, left)


class Purse:
    """What is left of a budget that one search spends, or that several spend together.

    `trials` counts the measurements so far. Of a budget of trials, each search keeps a share for its finalists until it
    has measured them: none of fewer than ten trials, at most `FINALISTS`.
    """

    def __init__(self, budget: Budget, clock: Callable[[], float] = monotonic, searches: int = 1) -> None:
        self.budget, self.trials = budget, 0
        self._clock, self._began = clock, clock()
        self._share = reserve(budget.trials, searches)
        self._searches = searches

    @property
    def elapsed(self) -> float:
        """The seconds since the budget was given."""
        return self._clock() - self._began

    def spent(self) -> str:
        """Why no search may measure more new points; empty if it may."""
        return self.budget.spent(self.trials, self.elapsed, self._share * self._searches)

    def left(self) -> int:
        """The number of new points that still fit; at least one."""
        return self.budget.left(self.trials, self.elapsed, self._share * self._searches)

    def reserved_left(self) -> int:
        """The number of finalists that a search may measure now that it has come to its end."""
        others = self._share * (self._searches - 1)
        if self.budget.spent(self.trials, self.elapsed, others):
            return 0
        return min(FINALISTS, self.budget.left(self.trials, self.elapsed, others))

    def release(self) -> None:
        """A search has ended: its share for finalists is free again."""
        self._searches -= 1


def reserve(trials: int | None, searches: int = 1) -> int:
    """How many of the trials each of some searches reserves for its finalists."""
    return 0 if trials is None else min(FINALISTS, trials // (10 * searches))


class ExpectedGain:
    """The expected gain of continuing a search, as a fraction of the best time, updated as trials come in."""

    def __init__(self, space: Space) -> None:
        self._surrogate = Surrogate(space)
        self._points = sampled(space, MOST, Random(0))
        self._promise = self._promised = self._gained = 0.0
        self._best: float | None = None
        self._tried = 0

    def after(self, journal: Journal) -> float:
        """The expected gain of continuing; 0 if no point is left, infinite before `AHEAD` points were measured."""
        early = len(journal.ranking) < AHEAD and any(point not in journal for point in self._points)
        return float("inf") if early else self.guess(journal)

    def guess(self, journal: Journal) -> float:
        """The same from fewer points, to compare searches; infinite only before the first success."""
        ranking = journal.ranking
        left = [point for point in self._points if point not in journal]
        if not left:
            return 0.0
        if ranking.best is None:
            return float("inf")
        best = log(ranking.seconds(ranking.best))
        self._settle(best, len(ranking))
        self._surrogate.learn(ranking)
        improvement = expected_improvement(best, *self._surrogate.expect(left))
        ahead = [left[i] for i in np.argsort(-improvement)[:AHEAD]]
        self._promise = float(np.maximum(0.0, best - self._surrogate.draws(ahead, DRAWS).min(axis=1)).mean())
        return self._promise * (CREDIT + self._gained) / (CREDIT + self._promised)

    def _settle(self, best: float, tried: int) -> None:
        """Record the promise of the last call and the gain that came of it."""
        if self._best is not None:
            trials = tried - self._tried
            fading = 0.5 ** (trials / MEMORY)
            self._gained = fading * self._gained + max(0.0, self._best - best)
            self._promised = fading * self._promised + self._promise * trials / AHEAD
        self._best, self._tried = best, tried


def expected_improvement(best: float, mean: Vector, deviation: Vector) -> Vector:
    """E[max(0, best - Y)] for normal Y, in the unit of `best`."""
    from scipy.special import ndtr

    margin = best - mean
    z = margin / np.maximum(deviation, 1e-12)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    improvement: Vector = margin * ndtr(z) + deviation * density
    return improvement
