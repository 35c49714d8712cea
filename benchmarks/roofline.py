"""The bound of a problem on this machine: what peak and bandwidth allow at most."""

from __future__ import annotations

from benchmarks.case import Case
from poly.machine import Machine, Measured


def bound(case: Case, threads: int, peak: float, machine: Machine, rates: Measured) -> float:
    """GFLOP/s: the peak, or bandwidth times flop a byte where that is less.

    The bandwidth is that of the smallest cache that holds all the arrays (of memory where none does), reading or triad,
    whichever is faster; each array is moved once.
    """
    bytes_moved = case.problem.traffic(case.dtype)
    level = next((f"L{c.level}" for c in machine.caches if bytes_moved <= machine.share(c)), "memory")
    bandwidth = rates.bandwidth(level, threads)
    return min(peak, max(bandwidth.read, bandwidth.triad) * case.problem.flop / bytes_moved)
