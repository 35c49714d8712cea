"""The bytes moved into each cache while a schedule runs, and which lines arrive late or are evicted early.

A cache holds the footprint of one run of some part: the outermost whose footprint fits. An operand that the part's loop
does not index stays from one run to the next, as long as the data that stream past it leave room; of the others, each
run finds what it shares with the run before. Everything else is fetched again (Wolf and Lam, "A data locality
optimizing algorithm", PLDI 1991).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, inf

from poly.machine.description import LINE, PAGE
from poly.model.core import (
    ENTRIES,
    FULL,
    HASHED,
    SCATTERED,
    SECOND_ENTRIES,
    STREAMS,
    Caches,
    rooms,
    set_count,
)
from poly.model.footprint import Footprint
from poly.model.parts import NestedPart, ScheduleParts

Amount = Callable[[int, Footprint], float]
"""A measure of an operand's footprint: bytes, the space that it takes in a cache, pages."""

Moved = dict[int, float]
"""The amount of each operand that is moved into a cache."""


@dataclass(slots=True, eq=False)
class _Run:
    """What one run of a part holds in a cache: the space of each operand, and of all of them together."""

    holds: Moved
    together: float


class _Cache:
    """What the parts of a schedule hold in one cache or TLB; `unit` is that of the space in bytes."""

    def __init__(self, form: ScheduleParts, space: Amount, unit: int = 1) -> None:
        self._form, self._space, self._unit = form, space, unit
        self._runs: dict[NestedPart, _Run] = {}

    def run(self, place: NestedPart) -> _Run:
        """What one run of a part holds on average, the elements that several operands touch once."""
        known = self._runs.get(place)
        if known is None:
            touched, again = place.part.touched, self.again(place)
            holds = {operand: self._space(operand, one) for operand, one in touched.items() if operand not in again}
            for operand, share in place.part.shares.items():
                if operand in holds:
                    holds[operand] *= share / place.part.share()
            known = self._runs[place] = _Run(holds, self._together(holds))
        return known

    def again(self, place: NestedPart) -> frozenset[int]:
        """The operands of plain loops that touch what another one has touched in the same run of a part."""
        sides = self._form.sides
        return frozenset(n for n, other in place.part.same.items() if n not in sides and other not in sides)

    def kept(self, whole: NestedPart, room: float) -> Iterator[NestedPart]:
        """The outermost parts that fit, or else the innermost."""
        pending = [whole]
        while pending:
            place = pending.pop()
            if not place.below or self.run(place).together <= room:
                yield place
            else:
                pending += place.below[::-1]

    def renewed(self, place: NestedPart) -> Moved:
        """The space that the next run of a part fills anew, for each operand: less if its footprint only slides."""
        holds = self.run(place).holds
        if len(place.parts) < 2 or place.below:
            return holds
        around, trips = place.parts[-2].touched, max(1.0, place.part.trips)
        return {n: min(space, self._space(n, around[n]) / trips) for n, space in holds.items()}

    def _together(self, holds: Moved) -> float:
        """The space of all operands: those of one array take no more than the array."""
        arrays = self._form.arrays
        if not arrays:
            return sum(holds.values())
        found: dict[object, float] = {}
        most: dict[object, float] = {}
        for operand, space in holds.items():
            array, bytes = arrays.get(operand, (operand, inf))
            found[array], most[array] = found.get(array, 0.0) + space, max(space, bytes / self._unit)
        return sum(min(space, most[array]) for array, space in found.items())


class Traffic:
    """The traffic of one schedule."""

    def __init__(self, form: ScheduleParts) -> None:
        self._form, self.whole = form, NestedPart.of(form.whole)

    def leaf(self, operand: int) -> NestedPart:
        """The last of the innermost parts that touch an operand."""
        return [one for one in self.whole.walk() if not one.below and operand in one.part.touched][-1]

    def fetched(self, size: int, ways: int) -> Moved:
        """Bytes of each operand moved into and out of a cache of `size` bytes; what a part writes is moved twice.

        Of plain loops, whose far lines arrive while they compute, a few more that miss hardly matter.
        """
        cache = _Cache(self._form, lambda operand, touched: self._held(operand, touched, size, ways))
        found: Moved = {}
        second = self._form.sides and ways * PAGE < size <= HASHED
        for room, part in rooms(ways) if second else ((FULL, 1.0),):
            for n, amount in self._moved(cache, size * room, self._lines, written=2).items():
                found[n] = found.get(n, 0.0) + part * amount
        return {**found, **self._staying(size * FULL)}

    def misses(self) -> tuple[Moved, Moved]:
        """TLB misses of each operand: those in the first level, and those of them that miss in the second, too."""
        pages = _Cache(self._form, self._pages, PAGE)

        def missing(entries: int) -> Moved:
            return {**self._moved(pages, entries, self._pages), **self._staying(entries * PAGE)}

        near = missing(ENTRIES)
        return near, missing(SECOND_ENTRIES) if any(near.values()) else {}

    def _staying(self, room: float) -> Moved:
        """The locals whose memory takes at most half of the room, so that none of it is moved."""
        return {n: 0.0 for n, memory in self._form.reused.items() if memory <= room / 2}

    def lateness(self) -> dict[int, float]:
        """The relative delay of far lines of each operand that no prefetcher predicts: short runs, pages apart.

        If the runs are few, prefetchers follow them into the next call.
        """
        found: dict[int, float] = {}
        for leaf in self.whole.walk():
            if leaf.below:
                continue
            outside, inside = leaf.parts[-min(2, len(leaf.parts))], leaf.part
            for operand, near in inside.touched.items():
                touched = outside.touched[operand] if near.bytes <= STREAMS * near.run else near
                late = touched.pitch >= PAGE and operand not in self._form.copied and operand not in self._form.sides
                found.setdefault(operand, SCATTERED / (touched.run + LINE) if late else 0.0)
        return found

    def _moved(self, cache: _Cache, room: float, amount: Amount, written: int = 1) -> Moved:
        """The amounts moved by one of many runs of the whole: nothing if all data stay from one run to the next.

        The amount of an operand counts `written` times in parts that write it.
        """
        found: Moved = {}
        for place in cache.kept(self.whole, room):
            together, renewed = cache.run(place).together, cache.renewed(place)
            if place is self.whole and together <= room:
                return {}
            passing = sum(space for operand, space in renewed.items() if operand not in self._form.reused)
            for operand, space in renewed.items():
                if operand not in self._form.copied or operand in place.copied:
                    fetched = self._fetched(place, operand, together + (passing - space) <= room, amount)
                    times = written if place.part.touched[operand].written else 1
                    found[operand] = found.get(operand, 0.0) + times * fetched
        return found

    def _fetched(self, place: NestedPart, operand: int, stays: bool, amount: Amount) -> float:
        """The amount of an operand that all runs of a part bring in; `stays` if a run finds the data of the one before.

        That is the whole footprint if the loop does not index the operand, else the overlap of the two footprints. The
        ends of long runs are assumed to be fetched by both, even if they lie on one line.
        """
        at = len(place.parts) - 1
        if not (at and stays):
            return amount(operand, place.part.touched[operand]) * place.visits(operand, at)
        here, around = (place.parts[depth].touched[operand] for depth in (at, at - 1))
        if here.elements != around.elements:
            each = amount(operand, here) * place.visits(operand, at)
            if here.run > LINE:
                return each * min(1.0, around.elements / (here.elements * place.part.trips))
            return min(each, amount(operand, around) * place.visits(operand, at - 1))
        if any(copy.operand == operand for copy in place.parts[at - 1].copies):
            return 0.0  # it has just been copied
        return amount(operand, around) * place.visits(operand, at - 1)

    def _lines(self, operand: int, touched: Footprint) -> float:
        """The bytes moved: whole lines, or only the elements of a copy, which is dense."""
        dense = self._dense(operand, touched)
        return touched.lines if dense is None else dense

    def _pages(self, operand: int, touched: Footprint) -> float:
        if operand in self._form.copied:
            return 0.0
        dense = self._dense(operand, touched)
        return touched.pages if dense is None else ceil(dense / PAGE)

    def _dense(self, operand: int, touched: Footprint) -> float | None:
        """The bytes of memory of a copy, or of a local, which uses its own again; None for any other operand."""
        if operand in self._form.copied:
            return touched.bytes
        memory = self._form.reused.get(operand)
        return None if memory is None else min(touched.bytes, memory)

    def _held(self, operand: int, touched: Footprint, size: int, ways: int) -> float:
        """The bytes that a footprint takes in a cache: more if its lines share sets and leave others empty.

        Virtual addresses determine only the sets of the first level, and the class among a page's lines in the second,
        whose pages may lie anywhere. The last level is hashed. What a right operand in place costs in the first level
        is measured.
        """
        sets, dense = size // (ways * LINE), self._dense(operand, touched)
        if dense is not None:
            return dense
        if not touched.pitch or touched.pitch % LINE or size > HASHED or not sets:
            return touched.lines
        if sets > PAGE // LINE:
            sets = PAGE // LINE
        elif self._form.sides.get(operand) == "right":
            return touched.lines
        used = set_count(touched.pitch, sets * ways * LINE, ways) * ceil(touched.run / LINE)
        return touched.lines / min(1.0, used / sets)


def crowding(pitch: int, rows: int, caches: Caches) -> float:
    """How far rows that are `pitch` bytes apart and begin in one set of L1 exceed its ways, relative to them."""
    ways = caches.ways[0]
    if not pitch or pitch % LINE:
        return 0.0
    return max(0, ceil(rows / set_count(pitch, caches.l1, ways)) - ways) / ways
