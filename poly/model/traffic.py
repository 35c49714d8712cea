"""The bytes that come into a cache while a contraction's tiles go by, and which lines are late or lost.

A cache holds what one iteration of some loop touches: the outermost loop for which that fits. An operand that this loop
and those around it don't move in stays, as long as what streams by beside it leaves room; all else is fetched again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, gcd

from poly.grouping import Side
from poly.model.choice import LINE, PAGE, Choice
from poly.model.footprint import Operand
from poly.model.walk import SIDES, Walk

FULL = 0.75
"""The part of a cache that a working set may fill before lines are lost: replacement is not perfect."""

WAYS = 8
"""Ways of the first two levels: lines whose addresses differ by a multiple of size / WAYS share so many places."""

SCATTERED = 512
"""Bytes of a run, together with a line, that take twice as long as their share of the bandwidth from far caches."""

ENTRIES = 64
"""Entries of a first-level TLB."""


class Traffic:
    """What one choice moves; `sides` are the operands."""

    def __init__(self, sides: Mapping[Side, Operand], choice: Choice, walk: Walk) -> None:
        self._sides, self._walk = sides, walk
        self._copied: dict[Side, int | None] = {
            "output": None,
            "left": walk.left if choice.pack_left else None,
            "right": walk.right if choice.pack_right else None,
        }
        """At which entry of the walk an operand is copied; None where it is read in place."""

    def fetched(self, size: int) -> dict[Side, float]:
        """Bytes of each operand that come into a cache of `size` bytes, and go out of it."""
        room, levels = size * FULL, self._walk.levels
        held = [{side: self._held(side, level.counts, size) for side in SIDES} for level in levels]
        fitting = next((i for i, sides in enumerate(held) if sum(sides.values()) <= room), len(levels) - 1)
        moved: dict[Side, float] = {}
        for side in SIDES:
            at = fitting
            while at > 0 and self._stays(side, held, at, room):
                at -= 1
            copied = self._copied[side]
            if (at or sum(held[0].values()) > room) and (copied is None or at > copied):
                ways = 2 if side == "output" else 1
                moved[side] = self._bytes(side, levels[at].counts) * self._walk.runs(at) * ways
        return moved

    def lateness(self, side: Side) -> float:
        """How much longer far lines take that no prefetcher sees coming: short runs, pages apart."""
        touched = self._sides[side].touched(self._walk.levels[-1].counts)
        if self._copied[side] is not None or touched.pitch < PAGE:
            return 0.0
        return SCATTERED / (touched.run + LINE)

    def pages(self) -> float:
        """Pages that the register tiles touch anew: misses in the first-level TLB."""
        levels = self._walk.levels
        misses = 0.0
        for side, operand in self._sides.items():
            if self._copied[side] is not None:
                continue
            at = len(levels) - 1
            pages = operand.touched(levels[at].counts).pages
            while at > 0 and pages <= ENTRIES / 2 and operand.touched(levels[at - 1].counts).pages == pages:
                at -= 1
            misses += pages * self._walk.runs(at) if pages > 1 else 0.0
        return misses

    def _stays(self, side: Side, held: Sequence[Mapping[Side, float]], at: int, room: float) -> bool:
        """Whether an operand's part stays while the loop of this entry runs, which doesn't move in it."""
        operand, levels = self._sides[side], self._walk.levels
        if operand.touched(levels[at - 1].counts).elements != operand.touched(levels[at].counts).elements:
            return False
        others = sum(touched for other, touched in held[at].items() if other != side)
        return held[at][side] + 2 * others <= room

    def _bytes(self, side: Side, counts: Mapping[str, int]) -> float:
        """Bytes of an operand that so many iterations touch; a copy is dense."""
        touched = self._sides[side].touched(counts)
        return touched.lines if self._copied[side] is None else touched.elements * self._sides[side].size

    def _held(self, side: Side, counts: Mapping[str, int], size: int) -> float:
        """Bytes of a cache that an operand's part takes: more where its lines share places and leave others empty."""
        bytes, touched = self._bytes(side, counts), self._sides[side].touched(counts)
        if self._copied[side] is not None or not touched.pitch or touched.pitch % LINE:
            return bytes
        sets = max(1, size // (WAYS * LINE))
        places = sets // gcd(touched.pitch // LINE, sets) * ceil(touched.run / LINE)
        return bytes / min(1.0, places / sets)


def crowded(pitch: int, rows: int, size: int) -> bool:
    """Whether more rows, `pitch` bytes apart, than there are ways begin at the same place of a cache."""
    if not pitch or pitch % LINE:
        return False
    places = max(1, size // (WAYS * LINE))
    return ceil(rows / (places // gcd(pitch // LINE, places))) > WAYS
