"""The bytes moved into each cache while a schedule runs, and which lines arrive late or are evicted early.

A cache holds the footprint of one run of some part: the outermost whose footprint fits. An operand that the part's loop
does not index stays from one run to the next, as long as the data that stream past it leave room; of the others, each
run finds what it shares with the run before. Everything else is fetched again (Wolf and Lam, "A data locality
optimizing algorithm", PLDI 1991).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil, inf

from poly.machine.description import LINE, PAGE
from poly.model.core import (
    ENTRIES,
    FULL,
    HASHED,
    ROOMY,
    SCATTERED,
    SECOND_ENTRIES,
    STREAMS,
    Caches,
    overfull,
    set_count,
)
from poly.model.footprint import Footprint
from poly.model.parts import NestedPart, ScheduleParts

Held = Callable[[int, Footprint], float]
"""The space that an operand's footprint takes in a cache."""

Moved = dict[int, float]
"""The amount of each operand that is moved into a cache."""


class Traffic:
    """The traffic of one schedule."""

    def __init__(self, form: ScheduleParts) -> None:
        self._form, self.whole = form, NestedPart.of(form.whole)

    def leaf(self, operand: int) -> NestedPart:
        """The last of the innermost parts that touch an operand."""
        return [one for one in self.whole.walk() if not one.below and operand in one.part.touched][-1]

    def fetched(self, size: int, ways: int) -> Moved:
        """Bytes of each operand moved into and out of a cache of `size` bytes; what a part writes is moved twice."""

        def moved(room: float) -> Moved:
            return self._moved(
                lambda operand, touched: self._held(operand, touched, size, ways), room, self._lines, written=2
            )

        found = moved(size * FULL)
        if ways * PAGE < size <= HASHED:
            part = overfull(ways)
            found = {n: (1 - part) * found.get(n, 0.0) + part * more for n, more in moved(size * ROOMY).items()}
        stays = {n for n, memory in self._form.reused.items() if memory <= size * FULL / 2}
        return {**found, **dict.fromkeys(stays, 0.0)}

    def misses(self) -> tuple[Moved, Moved]:
        """TLB misses of each operand: those in the first level, and those of them that miss in the second, too."""
        near = self._moved(self._pages, ENTRIES, self._pages, PAGE)
        return near, self._moved(self._pages, SECOND_ENTRIES, self._pages, PAGE) if any(near.values()) else {}

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

    def _moved(self, held: Held, room: float, amount: Held, unit: int = 1, written: int = 1) -> Moved:
        """The amounts moved by one of many runs of the whole: nothing if all data stay from one run to the next.

        `unit` is that of `held` in bytes. The amount of an operand counts `written` times in parts that write it.
        """
        found: Moved = {}
        for place, holds in self._kept(held, room, unit):
            together = self._together(holds, unit)
            passing = sum(
                self._renewed(place, operand, space, held)
                for operand, space in holds.items()
                if operand not in self._form.reused
            )
            if place is self.whole and together <= room:
                return {}
            for operand, mine in holds.items():
                if operand not in self._form.copied or operand in place.copied:
                    others = passing - self._renewed(place, operand, mine, held)
                    fetched = self._fetched(place, operand, together + others <= room, amount)
                    times = written if place.part.touched[operand].written else 1
                    found[operand] = found.get(operand, 0.0) + times * fetched
        return found

    def _renewed(self, place: NestedPart, operand: int, space: float, held: Held) -> float:
        """The part of an operand's space that the next run of a part fills anew: less if its footprint only slides."""
        if len(place.parts) < 2 or place.below:
            return space
        return min(space, held(operand, place.parts[-2].touched[operand]) / max(1.0, place.part.trips))

    def _together(self, holds: Moved, unit: int) -> float:
        """The space of all operands: those of one array take no more than the array."""
        found: dict[object, float] = {}
        most: dict[object, float] = {}
        for operand, space in holds.items():
            array, bytes = self._form.arrays.get(operand, (operand, inf))
            found[array], most[array] = found.get(array, 0.0) + space, max(space, bytes / unit)
        return sum(min(space, most[array]) for array, space in found.items())

    def _kept(self, held: Held, room: float, unit: int) -> Iterator[tuple[NestedPart, Moved]]:
        """The outermost parts that fit, or else the innermost, with the space that each operand takes."""
        pending = [self.whole]
        while pending:
            place = pending.pop()
            holds = {operand: held(operand, touched) for operand, touched in place.part.touched.items()}
            if not place.below or self._together(holds, unit) <= room:
                yield place, holds
            else:
                pending += place.below[::-1]

    def _fetched(self, place: NestedPart, operand: int, stays: bool, amount: Held) -> float:
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
        return touched.bytes if operand in self._form.copied else touched.lines

    def _pages(self, operand: int, touched: Footprint) -> float:
        return 0.0 if operand in self._form.copied else touched.pages

    def _held(self, operand: int, touched: Footprint, size: int, ways: int) -> float:
        """The bytes that a footprint takes in a cache: more if its lines share sets and leave others empty.

        Virtual addresses determine only the sets of the first level, and the class among a page's lines in the second,
        whose pages may lie anywhere. The last level is hashed. What a right operand in place costs in the first level
        is measured.
        """
        sets = size // (ways * LINE)
        if operand in self._form.copied:
            return touched.bytes
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
