"""The bytes that come into a cache while a contraction's tiles go by, and which lines are late or lost.

A cache holds what one iteration of some loop touches: the outermost loop for which that fits. An operand that this loop
and those around it don't move in stays, as long as what streams by beside it leaves room; all else is fetched again.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, gcd, prod

from poly.grouping import Side
from poly.model.choice import LINE, PAGE, Choice
from poly.model.footprint import Operand
from poly.model.walk import SIDES, Walk

FULL = 0.75
"""The part of a cache that a working set may fill before lines are lost: replacement is not perfect."""

WAYS = 8
"""Ways of a first-level cache: lines whose addresses differ by a multiple of size / WAYS share so many places."""

SCATTERED = 512
"""Bytes of a run, together with a line, that take twice as long as their share of the bandwidth from far caches."""

HASHED = 4 << 20
"""Bytes from which on a cache is a last level: the places of its lines are spread by a hash of their addresses."""

STREAMS = 32
"""Runs that a prefetcher follows at a time."""

SHORT = 96
"""Steps of a reduction that is short (SHORT_DEPTH of microkernels/c/gemm.h)."""

ENTRIES, SECOND_ENTRIES = 54, 2048
"""Entries of a first-level TLB beside those for everything else, and of a second-level one."""


class Traffic:
    """What one choice moves; `sides` are the operands, `steps` those of the reduction in one call."""

    def __init__(self, sides: Mapping[Side, Operand], choice: Choice, walk: Walk, steps: int) -> None:
        self._sides, self._walk = sides, walk
        self._short = steps <= SHORT
        self._copied: dict[Side, int | None] = {
            "output": None,
            "left": walk.left if choice.pack_left else None,
            "right": walk.right if choice.pack_right else None,
        }
        """At which entry of the walk an operand is copied; None where it is read in place."""
        self._touched = {side: [sides[side].touched(level.counts) for level in walk.levels] for side in SIDES}
        """What each entry of the walk touches."""
        self._bytes = {
            side: [float(t.lines) if self._copied[side] is None else t.elements * sides[side].size for t in touched]
            for side, touched in self._touched.items()
        }
        """The same in bytes: whole lines, or those of a copy, which is dense."""

    def fetched(self, size: int) -> dict[Side, float]:
        """Bytes of each operand that come into a cache of `size` bytes, and go out of it."""
        room, entries = size * FULL, range(len(self._walk.levels))
        held = {side: [self._held(side, at, size) for at in entries] for side in SIDES}
        all_held = [sum(of_side[at] for of_side in held.values()) for at in entries]
        fitting = next((at for at in entries if all_held[at] <= room), entries[-1])
        moved: dict[Side, float] = {}
        for side in SIDES:
            at = fitting
            beside = all_held[at] - held[side][at]
            while at > 0 and not self._moves(side, at) and held[side][at] + 2 * beside <= room:
                at -= 1
                beside = all_held[at] - held[side][at]
            copied = self._copied[side]
            if (at or all_held[0] > room) and (copied is None or at > copied):
                moved[side] = self._bytes[side][at] * self._runs(side, at) * (2 if side == "output" else 1)
        return moved

    def lateness(self, side: Side) -> float:
        """How much longer far lines take that no prefetcher sees coming: short runs, pages apart.

        A few runs go on where the next tile is beside them.
        Tiles fetch ahead themselves: in a short reduction the next panel of the right operand, in a long one results.
        """
        outside, inside = (self._touched[side][at] for at in (-min(2, len(self._touched[side])), -1))
        few = inside.elements * self._sides[side].size <= STREAMS * inside.run
        touched = outside if few else inside
        ahead = {"right": self._short, "output": not self._short, "left": False}[side]
        if self._copied[side] is not None or touched.pitch < PAGE or ahead:
            return 0.0
        return SCATTERED / (touched.run + LINE)

    def misses(self) -> tuple[float, float]:
        """Pages that the tiles touch anew: those that the TLB's second level knows, and those that it doesn't."""
        near = far = 0.0
        for side in SIDES:
            if self._copied[side] is not None:
                continue
            pages = [touched.pages for touched in self._touched[side]]
            at = len(pages) - 1
            while at > 0 and pages[at] <= ENTRIES and pages[at - 1] == pages[at]:
                at -= 1
            if pages[at] > 1:
                missed = pages[at] * self._runs(side, at)
                again = next((i for i in range(at, 0, -1) if pages[i - 1] == pages[i]), 0)
                between = sum(touched[again].pages for touched in self._touched.values())
                near, far = (near + missed, far) if between <= SECOND_ENTRIES else (near, far + missed)
        return near, far

    def _runs(self, side: Side, at: int) -> float:
        """How often an entry's part of an operand is visited.

        The last tile may be a fraction of one; it is a whole visit to an operand that its loop doesn't move in.
        """
        moving, still = 1.0, {"rows": 1.0, "columns": 1.0, "reduce": 1.0, "batch": 1.0}
        for entry, level in enumerate(self._walk.levels[1 : at + 1], 1):
            if self._moves(side, entry):
                moving *= level.trips
            else:
                still[level.role] *= level.trips
        return moving * prod(ceil(trips - 1e-9) for trips in still.values())

    def _moves(self, side: Side, at: int) -> bool:
        """Whether the loop of an entry moves in an operand."""
        touched = self._touched[side]
        return touched[at - 1].elements != touched[at].elements

    def _held(self, side: Side, at: int, size: int) -> float:
        """Bytes of a cache that an operand's part takes: more where its lines share places and leave others empty.

        Only the first level's places follow from addresses as a program sees them; further out pages lie anywhere, but
        of rows that are whole pages apart, the same lines of each are used. The last level is hashed.
        """
        bytes, touched, sets = self._bytes[side][at], self._touched[side][at], size // (WAYS * LINE)
        if self._copied[side] is not None or not touched.pitch or touched.pitch % LINE or not sets:
            return bytes
        if sets > PAGE // LINE:
            if touched.pitch % PAGE or size > HASHED:
                return bytes
            sets = PAGE // LINE
        places = sets // gcd(touched.pitch // LINE, sets) * ceil(touched.run / LINE)
        return bytes / min(1.0, places / sets)


def crowding(pitch: int, rows: int, size: int) -> float:
    """How many rows too many, relative to its ways, begin at one place of a cache; they lie `pitch` bytes apart."""
    if not pitch or pitch % LINE:
        return 0.0
    places = max(1, size // (WAYS * LINE))
    together = ceil(rows / (places // gcd(pitch // LINE, places)))
    return max(0, together - WAYS) / WAYS
