"""Assign working sets to caches by the rules of PolyScientist and PolyDL.

Working sets of one element are ignored, as are repeated pairs of sizes. The pairs are placed smallest first.

    pessimistic   all working sets are live together. The maximal one takes room in the first cache with enough left,
                  or in memory if there is none. The minimal one takes room in the first cache before that one that has
                  enough left.
    optimistic    each working set is alone: minimal and maximal one are in the first cache that can hold them.

The bytes of the pessimistic rule are cumulative; PolyDL ranks schedules by them. Those of the optimistic rule are sums
over reuses, so they may exceed the caches.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from poly.model import Caches
from poly.working_sets.reuses import Reuse


@dataclass(frozen=True)
class Placement:
    """Bytes of working sets in each cache and in memory."""

    l1: int
    l2: int
    l3: int
    memory: int


def pairs(reuses: Iterable[Reuse]) -> list[tuple[int, int]]:
    """The distinct pairs of minimal and maximal working sets in bytes, smallest first."""
    return sorted({reuse.sizes for reuse in reuses if reuse.most.elements > 1})


def pessimistic(sizes: Iterable[tuple[int, int]], caches: Caches) -> Placement:
    """The placement of pairs of working sets that are all live together; `sizes` ascend."""
    room = [caches.l1, caches.l2, caches.l3]
    memory = 0
    for least, most in sizes:
        placed = False
        for level, free in enumerate(room):
            if most <= free:
                room[level] -= most
                break
            if not placed and least <= free:
                room[level] -= least
                placed = True
        else:
            memory += most
    l1, l2, l3 = (whole - free for whole, free in zip((caches.l1, caches.l2, caches.l3), room, strict=True))
    return Placement(l1, l2, l3, memory)


def optimistic(sizes: Iterable[tuple[int, int]], caches: Caches) -> Placement:
    """The placement of pairs of working sets, each alone. If both are in one cache, the larger includes the smaller."""
    room = (caches.l1, caches.l2, caches.l3)
    placed = [0, 0, 0, 0]
    for least, most in sizes:
        near, far = (next((at for at, free in enumerate(room) if size <= free), 3) for size in (least, most))
        placed[far] += most
        if near != far:
            placed[near] += least
    return Placement(*placed)
