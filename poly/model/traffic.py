"""The bytes that come into a cache while a schedule runs, and which lines are late or lost.

A cache holds what one run of some part touches: the outermost for which that fits. What its loop does not move in stays
from one run to the next, as long as what streams by beside it leaves room; of what it moves in, each run finds what it
shares with the one before. All else is fetched again (Wolf and Lam, "A data locality optimizing algorithm", PLDI 1991).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil

from poly.model.core import ENTRIES, FULL, HASHED, LINE, PAGE, SCATTERED, SECOND_ENTRIES, STREAMS, WAYS, places
from poly.model.footprint import Footprint
from poly.model.parts import NestedPart, ScheduleParts

Held = Callable[[int, Footprint], float]
"""What of a cache an operand's part takes."""

Moved = dict[int, float]
"""For each operand how much comes into a cache."""


class Traffic:
    """What one schedule moves."""

    def __init__(self, form: ScheduleParts) -> None:
        self._form, self.whole = form, NestedPart.of(form.whole)

    def fetched(self, size: int) -> Moved:
        """Bytes of each operand that come into a cache of `size` bytes, and go out of it."""
        moved = self._moved(lambda operand, touched: self._held(operand, touched, size), size * FULL, self._lines)
        return {n: bytes * (2 if self._form.whole.touched[n].written else 1) for n, bytes in moved.items()}

    def misses(self) -> tuple[float, float]:
        """Pages that are touched anew: those that the TLB's second level knows, and those that it doesn't."""
        near = sum(self._moved(self._pages, ENTRIES, self._pages).values())
        far = sum(self._moved(self._pages, SECOND_ENTRIES, self._pages).values()) if near else 0.0
        return near - far, far

    def lateness(self) -> dict[int, float]:
        """How much longer far lines of each operand take that no prefetcher sees coming: short runs, pages apart.

        A few runs go on where the next call is beside them. Microkernels fetch ahead themselves.
        """
        found: dict[int, float] = {}
        for leaf in self.whole.walk():
            if leaf.below:
                continue
            outside, inside = leaf.parts[-min(2, len(leaf.parts))], leaf.part
            for operand, near in inside.touched.items():
                touched = outside.touched[operand] if near.bytes <= STREAMS * near.run else near
                late = touched.pitch >= PAGE and operand not in self._form.copied and operand not in self._form.ahead
                found.setdefault(operand, SCATTERED / (touched.run + LINE) if late else 0.0)
        return found

    def _moved(self, held: Held, room: float, amount: Held) -> Moved:
        """What comes in, over many runs of the whole: nothing where that stays from one to the next."""
        found: Moved = {}
        for place, holds in self._kept(held, room):
            together = sum(holds.values())
            if place is self.whole and together <= room:
                return {}
            for operand, mine in holds.items():
                if operand not in self._form.copied or operand in place.copied:
                    brought = self._brought(place, operand, 2 * together - mine <= room, amount)
                    found[operand] = found.get(operand, 0.0) + brought
        return found

    def _kept(self, held: Held, room: float) -> Iterator[tuple[NestedPart, Moved]]:
        """The outermost parts that fit, with what each operand takes; or those that nothing is below."""
        pending = [self.whole]
        while pending:
            place = pending.pop()
            holds = {operand: held(operand, touched) for operand, touched in place.part.touched.items()}
            if not place.below or sum(holds.values()) <= room:
                yield place, holds
            else:
                pending += place.below[::-1]

    def _brought(self, place: NestedPart, operand: int, stays: bool, amount: Held) -> float:
        """What all runs of a part bring in of an operand; `stays` says that a run finds what the one before has left.

        That is all of what the loop doesn't move in, and what the two have in common of anything else. The ends of long
        runs are taken to be fetched by both, though they may lie on one line.
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
            return 0.0  # what was just copied is there
        return amount(operand, around) * place.visits(operand, at - 1)

    def _lines(self, operand: int, touched: Footprint) -> float:
        """Bytes that are moved: whole lines, or those of a copy, which is dense."""
        return touched.bytes if operand in self._form.copied else touched.lines

    def _pages(self, operand: int, touched: Footprint) -> float:
        return 0.0 if operand in self._form.copied else touched.pages

    def _held(self, operand: int, touched: Footprint, size: int) -> float:
        """Bytes of a cache that a part takes: more where its lines share places and leave others empty.

        Only the first level's places follow from addresses as a program sees them; further out pages lie anywhere, but
        of rows that are whole pages apart, the same lines of each are used. The last level is hashed.
        """
        if operand in self._form.copied:
            return touched.bytes
        bytes, sets = touched.lines, size // (WAYS * LINE)
        if not touched.pitch or touched.pitch % LINE or not sets:
            return bytes
        if sets > PAGE // LINE:
            if touched.pitch % PAGE or size > HASHED:
                return bytes
            size = PAGE * WAYS
        used = places(touched.pitch, size) * ceil(touched.run / LINE)
        return bytes / min(1.0, used / (size // (WAYS * LINE)))


def crowding(pitch: int, rows: int, size: int) -> float:
    """How many rows too many, relative to its ways, begin at one place of a cache; they lie `pitch` bytes apart."""
    if not pitch or pitch % LINE:
        return 0.0
    return max(0, ceil(rows / places(pitch, size)) - WAYS) / WAYS
