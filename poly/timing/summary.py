"""Statistics of repeated timings: medians and quartiles, as other load only ever adds time, and adds it in bursts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import geometric_mean as mean
from statistics import median, quantiles

CONFIDENCE = 0.95
"""The probability with which the interval of a median contains it."""


@dataclass(frozen=True)
class Summary:
    """The median of some samples, and their lower and upper quartile."""

    median: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """Half the distance of the quartiles, relative to the median."""
        return (self.high - self.low) / (2 * self.median) if self.median else 0.0


def summarize(samples: Sequence[float]) -> Summary:
    """Median and quartiles. Raises ValueError without samples."""
    if not samples:
        raise ValueError("no samples to summarize")
    if len(samples) == 1:
        return Summary(samples[0], samples[0], samples[0])
    low, _, high = quantiles(samples, n=4, method="inclusive")
    return Summary(median(samples), low, high)


def interval(samples: Sequence[float]) -> tuple[float, float] | None:
    """The bounds between which the true median lies with a probability of 95 %; None of too few samples (under six).

    The bounds are samples themselves, so the interval assumes no distribution, but independent samples.
    """
    from scipy.stats import quantile_test

    found = quantile_test(samples, p=0.5).confidence_interval(CONFIDENCE)
    low, high = float(found.low), float(found.high)
    return (low, high) if low == low and high == high else None


def precision(samples: Sequence[float]) -> float | None:
    """Half the width of the median's interval, relative to the median; None of too few samples."""
    found = interval(samples)
    return None if found is None else (found[1] - found[0]) / (2 * median(samples))


def is_precise(samples: Sequence[float], wanted: float) -> bool:
    """Whether half the width of the median's interval, relative to the median, is at most this."""
    found = precision(samples)
    return found is not None and found <= wanted


def paired_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> Summary:
    """The ratios of samples of the same rounds: what slows down a whole round cancels out."""
    return summarize([n / d for n, d in zip(numerators, denominators, strict=True)])


def geometric_mean(values: Iterable[float]) -> float | None:
    """The geometric mean of positive values; None where there are none."""
    given = list(values)
    return mean(given) if given else None
