"""The bound of a problem on this machine: what peak and bandwidth allow at most."""

from __future__ import annotations

from benchmarks.case import Case
from poly.machine import Machine, Measured


def bound(
    case: Case, threads: int, peak: float, machine: Machine, rates: Measured, sweeps: int = 1, held: int | None = None
) -> float:
    """GFLOP/s: the peak, or bandwidth times flop a byte where that is less.

    The bandwidth is that of the smallest cache that holds all the arrays (of memory where none does), reading or triad,
    whichever is faster; each array is moved once, or as often as `sweeps` says. `held` are the arrays' bytes, where
    those that are moved count some of them twice.
    """
    held = held or case.problem.traffic(case.dtype)
    level = next((f"L{c.level}" for c in machine.caches if held <= machine.share(c)), "memory")
    bandwidth = rates.bandwidth(level, threads)
    return memory_bound(case, peak, max(bandwidth.read, bandwidth.triad), sweeps)


def memory_bound(case: Case, peak: float, bandwidth: float, sweeps: int = 1) -> float:
    """GFLOP/s: the peak, or GB/s times flop a byte where that is less."""
    return min(peak, bandwidth * case.problem.flop / (sweeps * case.problem.traffic(case.dtype)))
