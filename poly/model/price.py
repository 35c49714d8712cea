"""The time of a schedule: its computation, the traffic of each level over its bandwidth, copies, threads.

    for each cache: the outermost parts that fit in it, and the data fetched again between them (poly.model.traffic)
    for each statement: its microkernel calls or its loops, with data in the nearest cache      (tiles, leaf)
    seconds: of resources that overlap in part, plus those that do not overlap

The seconds follow the execution-cache-memory model (Stengel et al., "Quantifying performance bottlenecks of stencil
computations", ICS 2015), but with partly overlapping levels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil

from poly.model.core import FORK, FULL, MISS, WALK, Target
from poly.model.cost import Cost, CostPart
from poly.model.parts import Compute, NestedPart, ScheduleParts
from poly.model.traffic import Moved, Traffic

OVERLAP = 3.0
"""The overlap of resources, as the exponent of the norm over their seconds (1: none, infinite: perfect)."""

LATE = 0.5
"""The fraction of the time of late lines that overlaps with nothing."""

COPIED, TURNED = 1.0, 1.5
"""The cost of copying besides its bytes, in vector multiply-adds: per vector, or per element of a transposed copy."""


def price(form: ScheduleParts, target: Target) -> Cost:
    """The cost of one call, with its arrays wherever the previous call has left them."""
    if not form.computed:  # nothing runs
        return Cost(0.0, (CostPart("arithmetic", 0.0),))
    traffic, share = Traffic(form), _share(form, target.threads)
    caches = {"L2": target.caches.l1, "L3": target.caches.l2, "memory": target.caches.l3 or target.caches.l2}
    fetched = {level: traffic.fetched(size) if size else {} for level, size in caches.items()}
    near, far = traffic.misses()
    unit = target.unit(form.computed[0].dtype)
    overlapping = [
        CostPart("arithmetic", arithmetic(form.computed, target)),
        *(_level(level, moved, target, share) for level, moved in fetched.items()),
        CostPart("TLB", (near * MISS + far * WALK) * unit * share),
    ]
    waiting = [
        CostPart("late lines", _late(form, traffic, fetched, target) * share),
        CostPart("copies", _copies(traffic.whole, form, target) * share),
        CostPart("threads", sum(one.starts for one in form.computed) * FORK if target.threads > 1 else 0.0),
    ]
    together = sum(part.seconds**OVERLAP for part in overlapping) ** (1 / OVERLAP)
    return Cost(together + sum(part.seconds for part in waiting), (*overlapping, *waiting))


def arithmetic(computed: Iterable[Compute], target: Target) -> float:
    """Seconds of the statements' computation, each with its own share of the threads."""
    return sum(one.time(target) * target.unit(one.dtype) * _longest(one, target.threads) for one in computed)


def _longest(one: Compute, threads: int) -> float:
    """The fraction of a statement's work that falls to the busiest thread."""
    return ceil(one.shared / threads) / ceil(one.shared)


def _share(form: ScheduleParts, threads: int) -> float:
    """The same for all statements, averaged over their instances."""
    whole = sum(one.instances for one in form.computed)
    return sum(one.instances * _longest(one, threads) for one in form.computed) / whole if whole else 1.0


def _level(level: str, moved: Moved, target: Target, share: float) -> CostPart:
    """Seconds and bytes of the traffic from L2, L3 or memory."""
    rate = {"L2": target.rates.l2, "L3": target.rates.l3, "memory": target.rates.memory}[level]
    bytes = float(sum(moved.values()))
    return CostPart(level, bytes / rate * share, bytes)


def _late(form: ScheduleParts, traffic: Traffic, fetched: Mapping[str, Moved], target: Target) -> float:
    """Seconds of lines that are not prefetched: those from memory, and results from L3.

    A call waits for its results before its first step; other lines from L3 arrive while it computes.
    """
    late, touched = traffic.lateness(), form.whole.touched
    memory = sum(bytes * late[operand] for operand, bytes in fetched["memory"].items())
    results = sum(bytes * late[operand] for operand, bytes in fetched["L3"].items() if touched[operand].written)
    return LATE * (memory / target.rates.memory + results / target.rates.l3)


def _copies(whole: NestedPart, form: ScheduleParts, target: Target) -> float:
    """Seconds of all copies: the work, the lines read, the panels written."""
    total, dtype = 0.0, form.computed[0].dtype
    for place in whole.walk() if form.copied else ():
        for copy in place.part.copies:
            touched = place.part.touched[copy.operand]
            work = touched.elements * TURNED if copy.across else touched.elements / target.isa.lanes(dtype) * COPIED
            rate = target.rates.l2 if touched.bytes <= target.caches.l2 / 2 else target.rates.l3
            once = work * target.unit(dtype) + touched.lines / _source(form, target) + touched.bytes / rate
            total += place.runs() * once
    return total


def _source(form: ScheduleParts, target: Target) -> float:
    """The bandwidth, in bytes per second, of the level that holds the arrays between calls."""
    whole = sum(touched.bytes for touched in form.whole.touched.values())
    if whole <= target.caches.l2 * FULL:
        return target.rates.l2
    return target.rates.l3 if whole <= target.caches.l3 * FULL else target.rates.memory
