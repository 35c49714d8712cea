"""The work of one call of a nest, which turns a time into a rate: operations, and the least bytes that it must move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from poly.display import time_text
from poly.machine import Machine, Measured, nearest_level

if TYPE_CHECKING:
    from poly.analysis.work import Work


@dataclass(frozen=True)
class Yardstick:
    """Turns seconds per call into a rate: GFLOP/s, or GB/s for a memory-bound nest.

    `amount` is flop or bytes per call; `peak` is the machine's rate in the same unit, None if it is not known.
    """

    unit: str
    amount: float
    peak: float | None = None

    def rate(self, seconds: float) -> float:
        return self.amount / seconds / 1e9

    def headroom(self, seconds: float) -> float:
        """The share of this time that is above the least possible one; 1 if that is not known.

        The FMA peak bounds it; a bandwidth does not, since caches may hold more than expected.
        """
        if self.unit != "GFLOP/s" or self.peak is None:
            return 1.0
        return max(0.0, 1 - self.rate(seconds) / self.peak)

    def text(self, seconds: float) -> str:
        """`98.3 GFLOP/s (84 % of peak)`."""
        share = f" ({100 * self.rate(seconds) / self.peak:.0f} % of peak)" if self.peak else ""
        return f"{self.rate(seconds):.4g} {self.unit}{share}"


def yardstick(done: Work, machine: Machine, rates: Measured, dtype: str, threads: int) -> Yardstick:
    """The limiting rate by the roofline model: the FMA peak, or the bandwidth of the level that holds all arrays."""
    bandwidth = rates.bandwidth(nearest_level(machine, rates, done.bytes), threads)
    peak = rates.peak(dtype, threads) if dtype in {known.dtype for known in rates.peaks} else None
    stream = max(bandwidth.read, bandwidth.triad)
    if peak is None or done.flop * stream < done.bytes * peak:
        return Yardstick("GB/s", done.bytes, stream)
    return Yardstick("GFLOP/s", done.flop, peak)


INTENSE = 8
"""Operations per byte from which a nest counts as compute-bound on a GPU: less than GPUs of the last ten years need."""


def gpu_yardstick(done: Work) -> Yardstick:
    """The unit without a peak, since the rates of GPUs are not measured."""
    if done.flop < INTENSE * done.bytes:
        return Yardstick("GB/s", done.bytes)
    return Yardstick("GFLOP/s", done.flop)


def speed_text(seconds: float, yardstick: Yardstick | None) -> str:
    """`107 GFLOP/s (91 % of peak)`, or the time if the work of a call is not known."""
    return yardstick.text(seconds) if yardstick else time_text(seconds)
