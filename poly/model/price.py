"""The time of a schedule: its computation, the lines that each level of memory moves, copies, threads.

    for each cache: the outermost parts that fit in it, and the data fetched again between them (poly.model.traffic)
    for each statement: its microkernel calls or its loops, with data in the nearest cache      (tiles, leaf)
    register tiles: their multiply-adds, and what each line takes beside them, as measured      (poly.machine.operands)
    plain loops: seconds of resources that overlap in part, plus those that do not overlap

Both follow the execution-cache-memory model (Stengel et al., "Quantifying performance bottlenecks of stencil
computations", ICS 2015): of register tiles, what does not overlap is measured; of plain loops, levels overlap in part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import NamedTuple

from poly.machine.description import LINE, PAGE
from poly.model.core import FULL, MISS, SECOND_ENTRIES, WALK, Target, missed
from poly.model.cost import Cost, CostPart
from poly.model.leaf import Loops
from poly.model.parts import Compute, NestedPart, ScheduleParts
from poly.model.tiles import SHORT, TileCalls
from poly.model.traffic import Moved, Traffic

OVERLAP = 3.0
"""The overlap of resources, as the exponent of the norm over their seconds (1: none, infinite: perfect)."""

LATE = 0.5
"""The fraction of the time of late lines that overlaps with nothing."""

WORKSPACE = 4e-7
"""Seconds by which a call takes longer that needs memory of its own for copies."""

LEVELS = ("L2", "L3", "memory")


def price(form: ScheduleParts, target: Target) -> Cost:
    """The cost of one call, with its arrays wherever the previous call has left them."""
    if not form.computed:  # nothing runs
        return Cost(0.0, (CostPart("arithmetic", 0.0),))
    traffic, share = Traffic(form), _share(form, target.threads)
    fetched, misses = _fetched(form, traffic, target), traffic.misses()
    tiles = _tiles(form, traffic, fetched, misses, target, share)
    loops = _loops(form, fetched, misses, target, share)
    alone = (
        CostPart("late lines", _late(form, traffic, fetched, target, share)),
        CostPart("copies", _copies(traffic.whole, form, target) * share + WORKSPACE * bool(form.copied)),
        CostPart("threads", sum(one.starts for one in form.computed) * target.rates.start * (target.threads > 1)),
    )
    least = max(_moving(part.bytes, part.name, target, share) for part in tiles if part.name in LEVELS)
    together = max(least, sum(part.seconds for part in tiles))
    overlapped = sum(part.seconds**OVERLAP for part in loops) ** (1 / OVERLAP)
    seconds = together + overlapped + sum(part.seconds for part in alone)
    return Cost(seconds, (*_merged(tiles, loops), *alone))


def _moving(bytes: float, level: str, target: Target, share: float) -> float:
    """Seconds in which threads move bytes from a level, of which the busiest one moves the given share.

    While it moves what is beyond its equal share, the others wait.
    """
    rates, threads = target.rates, target.threads
    beyond = (share - 1 / threads) / (1 - 1 / threads) if threads > 1 else 1.0
    together = bytes / threads / rates.bandwidth(level)
    return together + beyond * (bytes / rates.bandwidth_alone(level) - together)


def _merged(tiles: Iterable[CostPart], loops: Iterable[CostPart]) -> tuple[CostPart, ...]:
    """The parts of register tiles and of plain loops, resource by resource."""
    found: dict[str, CostPart] = {}
    for part in (*tiles, *loops):
        before = found.get(part.name, CostPart(part.name, 0.0))
        found[part.name] = CostPart(part.name, before.seconds + part.seconds, before.bytes + part.bytes)
    return tuple(found.values())


def _fetched(form: ScheduleParts, traffic: Traffic, target: Target) -> dict[str, Moved]:
    """Bytes of each operand from each level of memory; what another core has written comes as if from L3."""
    caches = target.caches
    sizes, ways = (caches.l1, caches.l2, caches.l3 or caches.l2), (*caches.ways, caches.ways[1])
    into = zip(LEVELS, sizes, ways, strict=True)
    found = {level: traffic.fetched(size, several) if size else {} for level, size, several in into}
    passed = {n: bytes for n, bytes in form.exchanged.items() if n not in form.reused}
    between = {n: max(bytes, found["L3"].get(n, 0.0)) for n, bytes in passed.items()}
    return {**found, "L3": {**found["L3"], **between}}


def _tiles(
    form: ScheduleParts,
    traffic: Traffic,
    fetched: Mapping[str, Moved],
    misses: tuple[Moved, Moved],
    target: Target,
    share: float,
) -> list[CostPart]:
    """Seconds of register tiles, which add up: multiply-adds, and what each line takes beside them."""
    calls = [one for one in form.computed if isinstance(one, TileCalls)]
    parts = [CostPart("arithmetic", arithmetic(calls, target))]
    places = {n: _place(form, n, calls, traffic.leaf(n)) for n in form.sides}
    rows = max((min(one.rows[-1], ceil(one.m)) for one in calls), default=1)
    for level, beyond in zip(LEVELS, (*LEVELS[1:], None), strict=True):
        moved = {n: bytes for n, bytes in fetched[level].items() if n in form.sides}
        further = fetched[beyond] if beyond else {}
        taken = sum(
            max(0.0, bytes - further.get(n, 0.0)) / places[n].bytes * target.line(places[n].name, level, rows)
            for n, bytes in moved.items()
        )
        seconds = taken * target.unit(form.computed[0].dtype) * share
        parts.append(CostPart(level, seconds, float(sum(moved.values()))))
    near, far = (sum(n for at, n in one.items() if at in form.sides) for one in misses)
    missed = (near - far) * target.costs.missed + far * target.costs.walked
    return [*parts, CostPart("TLB", missed * target.unit(form.computed[0].dtype) * share)]


class OperandPlace(NamedTuple):
    """How register tiles read or write an operand, and the bytes at a time of which the cost is known."""

    name: str
    bytes: float = LINE


def _place(form: ScheduleParts, operand: int, calls: Sequence[TileCalls], leaf: NestedPart) -> OperandPlace:
    """Where register tiles find an operand: in place or in panels; the output also by the steps and order of calls."""
    side, touched = form.sides[operand], leaf.part.touched[operand]
    if side != "output":
        if operand in form.copied:
            return OperandPlace(f"{side} panels")
        apart = side == "right" and touched.pitch >= PAGE
        run = max(LINE, touched.lines * touched.run / touched.bytes)
        return OperandPlace("right apart", run) if apart else OperandPlace(side)
    around = leaf.parts[-2 if len(leaf.parts) > 1 else -1].touched[operand]
    along = " along" if around.run > touched.run else ""
    return OperandPlace(("short output" if calls[0].steps_a_call <= SHORT else "output") + along, 2 * LINE)


def _loops(
    form: ScheduleParts, fetched: Mapping[str, Moved], misses: tuple[Moved, Moved], target: Target, share: float
) -> list[CostPart]:
    """Seconds of plain loops, which overlap in part."""
    plain = [one for one in form.computed if not isinstance(one, TileCalls)]
    parts = [CostPart("arithmetic", arithmetic(plain, target))]
    for level in LEVELS:
        bytes = float(sum(bytes for n, bytes in fetched[level].items() if n not in form.sides))
        parts.append(CostPart(level, _moving(bytes, level, target, share), bytes))
    near, far = (sum(n for at, n in one.items() if at not in form.sides) for one in misses)
    unit = target.unit(form.computed[0].dtype)
    return [*parts, CostPart("TLB", ((near - far) * MISS + far * WALK) * unit * share)]


def arithmetic(computed: Iterable[Compute], target: Target) -> float:
    """Seconds of the statements' computation, each with its own share of the threads."""
    bodies: dict[str, list[Loops]] = {}
    total = 0.0
    for one in computed:
        if isinstance(one, Loops):
            bodies.setdefault(one.body, []).append(one)
        else:
            total += one.time(target) * _weight(one, target)
    return total + sum(_together(body, target) for body in bodies.values())


def _together(body: Sequence[Loops], target: Target) -> float:
    """Seconds of the statements in one loop: while some wait for earlier iterations, others compute."""
    weighed = [(one.parts(target), _weight(one, target)) for one in body]
    busy = sum(time.busy * weight for time, weight in weighed)
    waiting = sum(time.waiting * weight for time, weight in weighed)
    return max(busy, waiting) + max(time.starts * weight for time, weight in weighed)


def _weight(one: Compute, target: Target) -> float:
    """Seconds of a vector multiply-add of a statement, of which threads share all."""
    return target.unit(one.dtype) * _longest(one, target.threads)


def _longest(one: Compute, threads: int) -> float:
    """The fraction of a statement's work that falls to the busiest thread; the last iteration may be a partial one."""
    return sum(min(n, ceil(n / threads)) for n in one.shared) / sum(one.shared)


def _share(form: ScheduleParts, threads: int) -> float:
    """The same for all statements, averaged over their instances."""
    whole = sum(one.instances for one in form.computed)
    return sum(one.instances * _longest(one, threads) for one in form.computed) / whole if whole else 1.0


def _late(form: ScheduleParts, traffic: Traffic, fetched: Mapping[str, Moved], target: Target, share: float) -> float:
    """Seconds of lines that are not prefetched: those from memory, and results from L3.

    A call waits for its results before its first step; other lines from L3 arrive while it computes.
    """
    late, touched = traffic.lateness(), form.whole.touched
    memory = sum(bytes * late[operand] for operand, bytes in fetched["memory"].items())
    results = sum(bytes * late[operand] for operand, bytes in fetched["L3"].items() if touched[operand].written)
    return LATE * (_moving(memory, "memory", target, share) + _moving(results, "L3", target, share))


def _copies(whole: NestedPart, form: ScheduleParts, target: Target) -> float:
    """Seconds of all copies: from and to the second level, and more for each line that comes from further away.

    Copies beside each other share the lines between them. What no longer fits in the second level goes to the last one.
    What was measured has pages that the first-level TLB does not hold, but the second one does.
    """
    total, level, unit = 0.0, _source(form, target), target.unit(form.computed[0].dtype)
    for place in whole.walk() if form.copied else ():
        for copy in place.part.copies:
            touched = place.part.touched[copy.operand]
            name = "turned copy" if copy.across else "copy"
            near = target.line(name, "L2")
            time = touched.bytes / LINE * near
            time += _lines_of_their_own(place, copy.operand) * (target.line(name, level) - near)
            time += touched.pages * target.costs.walked * (touched.pages > SECOND_ENTRIES)
            evicted = touched.bytes * missed(touched.bytes / (target.caches.l2 or 1), target.caches.ways[1])
            total += place.runs() * (time * unit + evicted / target.rates.l3)
    return total


def _lines_of_their_own(place: NestedPart, operand: int) -> float:
    """The lines that each run of a part fetches and the one before has not."""
    touched, around = place.part.touched[operand], place.parts[-2:][0].touched[operand]
    beside = around.lines / place.part.trips if around.elements > touched.elements else touched.lines
    return min(touched.lines, beside) / LINE


def _source(form: ScheduleParts, target: Target) -> str:
    """The level that holds the arrays between calls."""
    whole = sum(touched.bytes for touched in form.whole.touched.values())
    if whole <= target.caches.l2 * FULL:
        return "L2"
    return "L3" if whole <= target.caches.l3 * FULL else "memory"
