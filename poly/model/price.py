"""The seconds of a schedule: what its statements compute, the bytes of each level over its bandwidth, copies, threads.

    for each cache: the outermost parts that fit in it; what they move in is fetched again      (poly.model.traffic)
    for each statement: its calls of a microkernel, or its loops, with their data near          (tiles, loops)
    seconds: of what overlaps in part, and then of what waits

The seconds follow the execution-cache-memory model (Stengel et al., "Quantifying performance bottlenecks of stencil
computations", ICS 2015), with the levels overlapping in part.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from poly.model.core import FORK, FULL, MISS, WALK, Target
from poly.model.cost import Cost, CostPart
from poly.model.parts import Compute, NestedPart, ScheduleParts
from poly.model.traffic import Moved, Traffic

OVERLAP = 3.0
"""How resources overlap: the exponent of the norm over their seconds (1: in turn, infinite: all at once)."""

LATE = 0.5
"""The part of late lines' time that overlaps with nothing."""

COPIED, TURNED = 1.0, 1.5
"""What copying takes beside its bytes, in vector multiply-adds: a line along the panel, an element across it."""


def price(form: ScheduleParts, target: Target) -> Cost:
    """The seconds of one call whose arrays are where the call before has left them, and what they are made of."""
    if not form.computed:  # nothing runs
        return Cost(0.0, (CostPart("arithmetic", 0.0),))
    traffic, share = Traffic(form), _share(form, target.threads)
    caches = {"L2": target.caches.l1, "L3": target.caches.l2, "memory": target.caches.l3 or target.caches.l2}
    fetched = {level: traffic.fetched(size) if size else {} for level, size in caches.items()}
    near, far = traffic.misses()
    unit = target.unit(form.computed[0].dtype)
    overlapping = [
        CostPart("arithmetic", _arithmetic(form, target)),
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


def _arithmetic(form: ScheduleParts, target: Target) -> float:
    """Seconds of the statements, each shared by its own threads."""
    return sum(one.time(target) * target.unit(one.dtype) * _longest(one, target.threads) for one in form.computed)


def _longest(one: Compute, threads: int) -> float:
    """The longest thread's part of a statement's work."""
    return ceil(one.shared / threads) / ceil(one.shared)


def _share(form: ScheduleParts, threads: int) -> float:
    """The same of all work, on average over the instances."""
    whole = sum(one.instances for one in form.computed)
    return sum(one.instances * _longest(one, threads) for one in form.computed) / whole if whole else 1.0


def _level(level: str, moved: Moved, target: Target, share: float) -> CostPart:
    """Seconds and bytes from L2, L3 or memory."""
    rate = {"L2": target.rates.l2, "L3": target.rates.l3, "memory": target.rates.memory}[level]
    bytes = float(sum(moved.values()))
    return CostPart(level, bytes / rate * share, bytes)


def _late(form: ScheduleParts, traffic: Traffic, fetched: Mapping[str, Moved], target: Target) -> float:
    """Seconds that lines take which nothing fetches ahead: from memory, and results from L3 too.

    A call waits for its results before its first step; other lines from L3 arrive while it works.
    """
    late, touched = traffic.lateness(), form.whole.touched
    memory = sum(bytes * late[operand] for operand, bytes in fetched["memory"].items())
    results = sum(bytes * late[operand] for operand, bytes in fetched["L3"].items() if touched[operand].written)
    return LATE * (memory / target.rates.memory + results / target.rates.l3)


def _copies(whole: NestedPart, form: ScheduleParts, target: Target) -> float:
    """Seconds that all copies take: the work, the lines read, the panels written."""
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
    """Bytes a second from where the arrays lie between calls."""
    whole = sum(touched.bytes for touched in form.whole.touched.values())
    if whole <= target.caches.l2 * FULL:
        return target.rates.l2
    return target.rates.l3 if whole <= target.caches.l3 * FULL else target.rates.memory
