"""PolyDL's ranking, for comparison: working sets weighted by the latency of the cache that holds them.

After Tavarageri et al., "PolyDL" (ACM TACO 18(1), 2021): pairs of minimal and maximal working sets, placed by the
pessimistic rule; the weights are those of the released code. That code breaks further ties by measured speed; here
they stay in the order of the space.
"""

from __future__ import annotations

from benchmarks.search import origins
from benchmarks.search.landscape import Landscape
from poly.autoschedule.spaces.space import Point
from poly.model import Caches
from poly.working_sets import Placement, pairs, pessimistic, working_sets

LATENCIES = (4, 14, 60, 84)
"""Latencies of L1, L2, L3 and memory, in cycles."""
BANDWIDTHS = (192, 96, 16, 55)
"""Their bandwidths in bytes per cycle, as in the released code; they decide between equal latencies."""


def ranked(land: Landscape) -> list[Point]:
    """The points by increasing cost. It takes about a tenth of a second per point."""
    caches = origins.described(land.table.origin.machine).caches(land.table.threads)
    return sorted(land.space, key=lambda point: _cost(land, point, caches))


def _cost(land: Landscape, point: Point, caches: Caches) -> tuple[float, float]:
    return cost(pessimistic(pairs(working_sets(land.space.schedule(point))), caches))


def cost(placed: Placement) -> tuple[float, float]:
    """The cost in cycles: of latency, then of bandwidth."""
    sizes = (placed.l1, placed.l2, placed.l3, placed.memory)
    return (
        float(sum(size * latency for size, latency in zip(sizes, LATENCIES, strict=True))),
        sum(size / bandwidth for size, bandwidth in zip(sizes, BANDWIDTHS, strict=True)),
    )
