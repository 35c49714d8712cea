"""The default schedule of loops that are no contraction, from their dependences, strides and the caches alone."""

from __future__ import annotations

from poly.defaults.contiguous import contiguous
from poly.defaults.marks import shared_out, vectorized
from poly.defaults.time_tiles import tiled_in_time
from poly.defaults.wavefront import overlapped
from poly.model import Caches
from poly.nest import Nest
from poly.schedule import Schedule, schedule


def dependence_schedule(nest: Nest, caches: Caches, threads: int) -> Schedule:
    """The loops of a nest made contiguous, tiled over time steps, overlapped, in vector lanes and parallel, each where legal.

    Every step is proven legal against the nest's dependences; a rule whose steps are not is left out.
    """
    made = contiguous(schedule(nest))
    shared = shared_out(made) if threads > 1 else made
    made = tiled_in_time(made, caches) if shared is made else shared
    return vectorized(overlapped(made))
