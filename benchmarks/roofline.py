"""The roofline bound of a problem on this machine, from peak and bandwidth."""

from __future__ import annotations

from benchmarks.case import Case
from poly.machine import Machine, Measured, nearest_level


def bound(
    case: Case, threads: int, peak: float, machine: Machine, rates: Measured, sweeps: int = 1, held: int | None = None
) -> float:
    """The bound in GFLOP/s: the minimum of the peak and of bandwidth times arithmetic intensity.

    The bandwidth is that of the smallest cache that holds all the arrays (or of memory), for reads or the triad,
    whichever is faster; each array is moved `sweeps` times. `held` is the size of the arrays in bytes, if the traffic
    counts some of them twice.
    """
    held = held or case.problem.traffic(case.dtype)
    bandwidth = rates.bandwidth(nearest_level(machine, rates, held), threads)
    return memory_bound(case, peak, max(bandwidth.read, bandwidth.triad), sweeps)


def memory_bound(case: Case, peak: float, bandwidth: float, sweeps: int = 1) -> float:
    """The bound in GFLOP/s: the minimum of the peak and of `bandwidth` in GB/s times arithmetic intensity."""
    return min(peak, bandwidth * case.problem.flop / (sweeps * case.problem.traffic(case.dtype)))
