"""Statistics of repeated timings: medians and quartiles, as other load only ever adds time, and adds it in bursts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import median, quantiles


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


def paired_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> Summary:
    """The ratios of samples of the same rounds: what slows down a whole round cancels out."""
    return summarize([n / d for n, d in zip(numerators, denominators, strict=True)])


def geometric_mean(values: Iterable[float]) -> float | None:
    """The geometric mean of positive values; None where there are none."""
    logs = [log(value) for value in values]
    return exp(sum(logs) / len(logs)) if logs else None
