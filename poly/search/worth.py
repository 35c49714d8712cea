"""Whether it is worth going on: how much faster the best point is expected to become.

For a point not yet tried, `Belief` expects a log time that is normal with some mean m and deviation s. Below the best
time so far, t, it then lies on average by the expected improvement (Jones, Schonlau and Welch, "Efficient Global
Optimization of Expensive Black-Box Functions", J. Global Optimization 13, 1998, section 4.1)

    E[max(0, t - Y)] = (t - m) Phi((t - m) / s) + s phi((t - m) / s),    Y ~ N(m, s^2), t and m in log seconds

The `AHEAD` points with the most of it are what a search could try next. What the best of them would gain, by draws
from their common distribution, is the promise. Promises may be empty: the model errs in ways that the belief does not
know, or the strategy looks elsewhere. So the promise is multiplied with the part that was kept of those made before,

    (CREDIT + gained) / (CREDIT + promised)

where what was gained and promised long ago counts less: half after `MEMORY` trials. Going on ends when that is less
than the budget asks for.
"""

from __future__ import annotations

from math import log
from random import Random

import numpy as np

from poly.search.belief import Belief, Vector
from poly.search.ledger import Ledger
from poly.search.ranking import MOST, sampled
from poly.spaces.space import Space

AHEAD = 8
"""How many measurements the promise looks ahead, and back at least: a batch or two."""
CREDIT = 0.02
"""Promises are believed at first; so much that was not kept halves that."""
MEMORY = 16
"""After so many trials a promise counts half."""
DRAWS = 256
"""The draws that the promise is averaged over; it is then known to some percent of itself."""


class Worth:
    """The gain to be expected of going on, in parts of the best time, as the trials of a search come in."""

    def __init__(self, space: Space) -> None:
        self._belief = Belief(space)
        self._points = sampled(space, MOST, Random(0))
        self._promise = self._promised = self._gained = 0.0
        self._best: float | None = None
        self._tried = 0

    def gain(self, ledger: Ledger) -> float:
        """What going on is expected to gain; 0 where no point is left, infinite before `AHEAD` were measured."""
        standing = ledger.standing
        left = [point for point in self._points if point not in ledger]
        if not left:
            return 0.0
        if standing.best is None or len(standing) < AHEAD:
            return float("inf")
        best = log(standing.seconds(standing.best))
        self._settle(best, len(standing))
        self._belief.learn(standing)
        improvement = expected_improvement(best, *self._belief.expect(left))
        ahead = [left[i] for i in np.argsort(-improvement)[:AHEAD]]
        self._promise = float(np.maximum(0.0, best - self._belief.draws(ahead, DRAWS).min(axis=1)).mean())
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
