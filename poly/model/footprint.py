"""How much of an array a part of the loops touches: a closed form over loops, their strides and their counts.

    for i: for j: … A[i - 1, j] + A[i + 1, j]        dimensions i (and 2 more), j; 3 x 4 iterations touch 5 runs of 4

Everything is linear in the loops' values, so that along a dimension of the array one more than the sum of (iterations
- 1) times the coefficient is reached. These are the working sets of PolyDL (Tavarageri et al., ACM TACO 18(1), 2021,
section 4), in closed form for boxes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, inf, prod

from poly.model.core import LINE, PAGE

Counts = Mapping[str, float]
"""How many neighbouring values each loop takes, by the loop's name; a loop that is not named takes one."""

Progression = tuple[int, float]
"""Elements between neighbours, and how many there are."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """What is touched of an array: distinct elements, their bytes, the bytes of their cache lines, and pages.

    The elements lie in runs of `run` bytes next to each other, the runs `pitch` bytes apart along the loop beside them
    that counts most (0 where there is one run). `written` says that lines go back, too.
    """

    elements: float
    bytes: float
    lines: float
    pages: float
    run: float
    pitch: int
    written: bool


@dataclass(frozen=True)
class Dimension:
    """An index of an array: `loops` with their coefficients.

    `span` are the further values that accesses differ by, `stride` the elements between neighbours, and `extent` how
    many there are.
    """

    loops: tuple[tuple[str, int], ...]
    stride: int
    span: int = 0
    extent: float = inf

    def reached(self, counts: Counts) -> list[Progression]:
        """The progressions of elements that so many values of each loop reach, at most the whole extent."""
        moved = [(abs(c) * self.stride, counts.get(name, 1)) for name, c in self.loops]
        merged = joined([*moved, (self.stride, self.span + 1)])
        if len(merged) == 1:
            ((stride, count),) = merged
            return [(stride, min(count, 1 + (self.extent - 1) * self.stride // stride))]
        return merged


@dataclass(frozen=True)
class ArrayAccesses:
    """Accesses of one array that differ by constants only; `size` is an element's bytes."""

    dimensions: tuple[Dimension, ...]
    size: int
    written: bool
    _known: dict[tuple[float, ...], Footprint] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def loops(self) -> tuple[str, ...]:
        """Those that move in the array."""
        return tuple(name for dimension in self.dimensions for name, _ in dimension.loops)

    def touched(self, counts: Counts) -> Footprint:
        """What so many values of each loop touch."""
        own = tuple([counts.get(name, 1) for name in self.loops])
        known = self._known.get(own)
        if known is None:
            known = self._known[own] = self._touched(counts)
        return known

    def stride(self, name: str) -> int:
        """Elements between neighbours along a loop; 0 where it does not move in the array."""
        steps = (abs(c) * d.stride for d in self.dimensions for loop, c in d.loops if loop == name)
        return next(steps, 0)

    def _touched(self, counts: Counts) -> Footprint:
        found = joined(p for dimension in self.dimensions for p in dimension.reached(counts))
        elements = prod(count for _, count in found)
        run = found[0][1] if found and found[0][0] == 1 else 1
        beside = [(count, stride) for stride, count in found if stride > 1]
        bytes, pitch = run * self.size, (max(beside)[1] if beside else 0) * self.size
        runs = elements / run
        if pitch % LINE == 0:
            lines = runs * ceil(bytes / LINE) * LINE
        else:  # a run may begin anywhere in a line, so it nearly always touches one more
            lines = runs * min(bytes + LINE - self.size, max(bytes, pitch))
        pages = runs * ceil(bytes / PAGE) if pitch >= PAGE else ceil(runs * max(pitch, bytes) / PAGE)
        return Footprint(elements, elements * self.size, lines, pages, bytes, pitch, self.written)


def joined(progressions: Iterable[Progression]) -> list[Progression]:
    """The fewest progressions that reach the same elements, the nearest neighbours first.

    Steps that are no longer than what is reached without them make one progression of two: a row's end meets the next
    row, and the taps of a convolution the next pixel's.
    """
    found: list[Progression] = []
    for stride, count in sorted(p for p in progressions if p[1] > 1):
        if found:
            near, reached = found[-1]
            steps = stride // near
            if stride % near == 0 and steps <= reached:
                found[-1] = near, reached + steps * (count - 1)
                continue
        found.append((stride, count))
    return found


def spread(extents: Sequence[tuple[str, float]], count: float) -> dict[str, float]:
    """So many iterations of a flattened loop as iterations of each it was made of; the last is the fastest."""
    counts = {}
    for name, extent in reversed(extents):
        counts[name] = min(extent, count)
        count = ceil(count / extent)
    return counts
