"""When a search has gone on for long enough: by trials, by seconds, or when going on is not worth it.

The expected gain (Jones, Schonlau and Welch, "Efficient Global Optimization of Expensive Black-Box Functions", J.
Global Optimization 13, 1998, section 4.1, with the analytical model in the place of their fitted one). For every trial
so far the error of the model is e = log(measured / predicted). Their mean b and standard deviation s say what to expect
of a point not yet tried: a log time that is normal with mean log(predicted) + b and deviation s. By how much it would
beat the best time so far, t, is then, in parts of t and on average, with m = log t - log(predicted) - b,

    E[max(0, m + s Z)] = m Phi(m / s) + s phi(m / s)

What counts is what a search could still win, not the next point alone: of the `AHEAD` most promising points, with their
errors independent of each other, the expected gain of the best is

    E[max(0, max_i(m_i + s Z_i))] = integral over g > 0 of (1 - prod_i Phi((g - m_i) / s)) dg

Neighbours err alike in truth, so this is rather too high, and the search goes on rather too long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from math import log
from random import Random

import numpy as np
import numpy.typing

from poly.errors import SearchError
from poly.search.ledger import Ledger
from poly.spaces.space import Space

FloatArray = np.typing.NDArray[np.float64]
AHEAD = 16
"""How many measurements the expected gain looks ahead."""
SPREAD = 0.1
"""The deviation of the model's error before anything is known of it: an analytical model is off by a tenth."""
WEIGHT = 4
"""For how many trials that prior stands."""
MOST = 1000
"""Of how many points at most the gain is expected; of a larger space a sample of so many."""


@dataclass(frozen=True)
class Budget:
    """What a search may cost; whichever limit is reached first ends it.

    `trials` is the number of measurements, those of the play-off among them; `seconds` is time on the clock; `gain` is
    the expected gain below which going on is not worth it, 0.01 for 1 %. None is no limit.
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
                    f"a budget of {name}={value} allows no search: give more than 0, or None for no limit"
                )


class Expectation:
    """The gain that is to be expected of going on, as the trials come in."""

    def __init__(self, space: Space) -> None:
        self._log = cache(lambda point: log(space.predict(point).seconds))
        self._points = sorted(space.sample(MOST, Random(0)), key=self._log)

    def gain(self, ledger: Ledger) -> float:
        """The expected gain of the `AHEAD` most promising points not yet tried; 0 where none is left."""
        standing = ledger.standing
        left = list(islice((point for point in self._points if point not in ledger), AHEAD))
        if standing.best is None or not left:
            return 0.0
        bias, spread = moments([log(standing.seconds(point)) - self._log(point) for point in standing.ranked()])
        margins = log(standing.seconds(standing.best)) - bias - np.array([self._log(point) for point in left])
        return expected_gain(margins, spread)


def moments(errors: Sequence[float]) -> tuple[float, float]:
    """The mean of the errors and their deviation, which starts from `SPREAD` and moves to what is seen."""
    if not errors:
        return 0.0, SPREAD
    mean = float(np.mean(errors))
    squares = sum((error - mean) ** 2 for error in errors)
    return mean, float(np.sqrt((WEIGHT * SPREAD**2 + squares) / (WEIGHT + len(errors) - 1)))


def expected_gain(margins: FloatArray, spread: float) -> float:
    """E[max(0, max_i(m_i + s Z_i))] for margins m and deviation s, by the trapezoidal rule."""
    from scipy.special import ndtr

    top = max(float(np.max(margins)), 0.0) + 6 * spread
    gains = np.linspace(0.0, top, 241)
    below = np.prod(ndtr((gains[:, None] - margins[None, :]) / spread), axis=1)
    return float(np.trapezoid(1.0 - below, gains))
