"""The default schedule of loops that are no contraction, from their dependences, strides and the caches alone."""

from __future__ import annotations

from microkernels.isa import ISA
from microkernels.opencl_isa import DeviceISA
from poly.autoschedule.defaults.blocks import blocked
from poly.autoschedule.defaults.contiguous import contiguous
from poly.autoschedule.defaults.fusion import fused
from poly.autoschedule.defaults.grain import grained
from poly.autoschedule.defaults.marks import shared_out, vectorized
from poly.autoschedule.defaults.solves import blocked_solve
from poly.autoschedule.defaults.time_tiles import tiled_in_time
from poly.autoschedule.defaults.wavefront import overlapped
from poly.ir.nest import Nest
from poly.model import Caches
from poly.schedules.schedule import Schedule, schedule

__all__ = ["dependence_schedule", "vectorized"]


def dependence_schedule(nest: Nest, isa: ISA, caches: Caches, threads: int) -> Schedule:
    """The loops of a nest made contiguous, tiled over time steps, overlapped, in vector lanes and parallel.

    Each rule is a few steps, proven legal against the nest's dependences; where they are not, it is left out.
    """
    solve = blocked_solve(nest, isa)
    if solve is not None:
        return vectorized(shared_out(solve) if threads > 1 else solve)
    written = fused(contiguous(schedule(nest)))
    shared = shared_out(written) if threads > 1 else written
    made = tiled_in_time(written, caches) if shared is written else shared
    marked = vectorized(overlapped(blocked(made)))
    return grained(marked, isa.units) if isinstance(isa, DeviceISA) else marked
