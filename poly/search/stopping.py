"""When a search stops: its budget is spent, or going on is expected to gain too little.

For a point not yet tried, `Surrogate` expects a log time that is normal with some mean m and deviation s. Below the
best time so far, t, it then lies on average by the expected improvement (Jones, Schonlau and Welch, "Efficient Global
Optimization of Expensive Black-Box Functions", J. Global Optimization 13, 1998, section 4.1)

    E[max(0, t - Y)] = (t - m) Phi((t - m) / s) + s phi((t - m) / s),    Y ~ N(m, s^2), t and m in log seconds

The `AHEAD` points with the most of it are what a search could try next. What the best of them would gain, by draws
from their common distribution, is the promise. Promises may be empty: the model errs in ways that the surrogate does
not know, or the strategy looks elsewhere. So the promise is multiplied with the part that was kept of earlier ones,

    (CREDIT + gained) / (CREDIT + promised)

where what was gained and promised long ago counts less: half after `MEMORY` trials. Going on ends when that is less
than the budget asks for.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import log
from random import Random

import numpy as np

from poly.autoschedule.spaces.space import Space
from poly.errors import SearchError
from poly.search.journal import Journal
from poly.search.proposals import MOST, sampled
from poly.search.surrogate import Surrogate, Vector

AHEAD = 8
"""How many measurements the promise looks ahead, and back at least: a batch or two."""
CREDIT = 0.02
"""Promises are believed at first; so much that was not kept halves that."""
MEMORY = 16
"""After so many trials a promise counts half."""
DRAWS = 256
"""The draws that the promise is averaged over; it is then known to some percent of itself."""


@dataclass(frozen=True)
class Budget:
    """Limits of a search; whichever is reached first ends it.

    `trials` is the number of measurements, those of the finalists among them; `seconds` is time on the clock; `gain` is
    the expected gain below which going on is not worth it (`ExpectedGain`), 0.01 for 1 %. None is no limit.
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
        """Why nothing more can be measured after so many trials and seconds; empty while something can.

        So many trials are `reserved` for later.
        """
        if self.trials is not None and trials + reserved >= self.trials:
            return f"the budget of {self.trials} trials is spent"
        if self.seconds is not None and elapsed >= self.seconds:
            return f"the budget of {self.seconds:g} s is spent"
        return ""

    def left(self, trials: int, elapsed: float, reserved: int = 0) -> int:
        """How many points fit into what is left then, at the rate so far; at least one."""
        left = sys.maxsize if self.trials is None else self.trials - reserved - trials
        if self.seconds is not None and trials and elapsed > 0:
            left = min(left, int((self.seconds - elapsed) * trials / elapsed))
        return max(1, left)


class ExpectedGain:
    """The gain to be expected of going on, in parts of the best time, as the trials of a search come in."""

    def __init__(self, space: Space) -> None:
        self._surrogate = Surrogate(space)
        self._points = sampled(space, MOST, Random(0))
        self._promise = self._promised = self._gained = 0.0
        self._best: float | None = None
        self._tried = 0

    def after(self, journal: Journal) -> float:
        """What going on is expected to gain; 0 where no point is left, infinite before `AHEAD` were measured."""
        ranking = journal.ranking
        left = [point for point in self._points if point not in journal]
        if not left:
            return 0.0
        if ranking.best is None or len(ranking) < AHEAD:
            return float("inf")
        best = log(ranking.seconds(ranking.best))
        self._settle(best, len(ranking))
        self._surrogate.learn(ranking)
        improvement = expected_improvement(best, *self._surrogate.expect(left))
        ahead = [left[i] for i in np.argsort(-improvement)[:AHEAD]]
        self._promise = float(np.maximum(0.0, best - self._surrogate.draws(ahead, DRAWS).min(axis=1)).mean())
        return self._promise * (CREDIT + self._gained) / (CREDIT + self._promised)

    def _settle(self, best: float, tried: int) -> None:
        """Books what was promised at the last call, and what has come of it."""
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
