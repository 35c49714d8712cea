"""The footprint of a part of the loops in an array, in closed form over the loops, their strides and their counts.

    for i: for j: … A[i - 1, j] + A[i + 1, j]        dimensions i (and 2 more), j; 3 x 4 iterations touch 5 runs of 4

All indices are linear in the loops, so the extent reached along a dimension is one plus the sum of (iterations - 1)
times coefficient over the loops. These are the working sets of PolyDL (Tavarageri et al., ACM TACO 18(1), 2021,
section 4), in closed form for boxes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import ceil, inf, prod

from microkernels.cached import cached_property
from poly.machine.description import LINE, PAGE

Counts = Mapping[str, float]
"""The number of consecutive values that each loop takes, by name; a loop not listed takes one."""

Progression = tuple[int, float]
"""A stride in elements, and the number of elements."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """The footprint in an array: distinct elements, their bytes, the bytes of their cache lines, and pages.

    The elements lie in runs of `run` bytes, which have an element in each line, with the runs `pitch` bytes apart along
    the dimension with the most of them (0 if there is one run). `written` tells that lines are also written back.
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

    `span` is the range of the constants by which accesses differ, `stride` the elements between neighbours, and
    `extent` their number.
    """

    loops: tuple[tuple[str, int], ...]
    stride: int
    span: int = 0
    extent: float = inf

    def reached(self, counts: Counts) -> list[Progression]:
        """The progressions of elements that these counts of the loops reach, at most the whole extent."""
        moved = [(abs(c) * self.stride, counts.get(name, 1)) for name, c in self.loops]
        merged = joined([*moved, (self.stride, self.span + 1)])
        if len(merged) == 1:
            ((stride, count),) = merged
            return [(stride, min(count, 1 + (self.extent - 1) * self.stride // stride))]
        return merged


@dataclass(frozen=True)
class ArrayAccesses:
    """Accesses of one array that differ only by constants; `size` is the size of an element in bytes.

    `box` has a dimension for each index alone where a loop occurs in several: it reaches no fewer elements, but those
    of a skewed loop, such as A[j - 2*i, i], may lie on fewer lines than its diagonals seem to.
    """

    dimensions: tuple[Dimension, ...]
    size: int
    written: bool
    box: tuple[Dimension, ...] = ()
    _known: dict[tuple[float, ...], Footprint] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def loops(self) -> tuple[str, ...]:
        """The loops that index the array."""
        return tuple(name for dimension in self.dimensions for name, _ in dimension.loops)

    def touched(self, counts: Counts) -> Footprint:
        """The footprint for these counts of the loops."""
        own = tuple([counts.get(name, 1) for name in self.loops])
        known = self._known.get(own)
        if known is None:
            ways = (self.dimensions, self.box) if self.box else (self.dimensions,)
            found = (self._touched(dimensions, counts) for dimensions in ways)
            known = self._known[own] = min(found, key=lambda one: (one.lines, one.elements))
        return known

    def copied(self, counts: Counts) -> Footprint:
        """The footprint of a copy, which has an element for each iteration: windows that overlap are apart in it.

        Its lines are those that it is made from.
        """
        found = self.touched(counts)
        again = prod(counts.get(name, 1) for name in self.loops) / found.elements
        return replace(found, elements=again * found.elements, bytes=again * found.bytes)

    def stride(self, name: str) -> int:
        """The stride along a loop in elements; 0 if it does not index the array."""
        steps = (abs(c) * d.stride for d in self.dimensions for loop, c in d.loops if loop == name)
        return next(steps, 0)

    def is_even(self, loops: Sequence[tuple[str, int]]) -> bool:
        """Whether a loop flattened from these, with their extents, outermost first, goes on by one stride."""
        return all(self.stride(outer) == self.stride(name) * extent for (outer, _), (name, extent) in pairwise(loops))

    def _touched(self, dimensions: Iterable[Dimension], counts: Counts) -> Footprint:
        found = joined(p for dimension in dimensions for p in dimension.reached(counts))
        elements = prod(count for _, count in found)
        near, along = found[0] if found and found[0][0] * self.size < LINE else (1, 1.0)
        beside = [(count, stride) for stride, count in found if (stride, count) != (near, along)]
        bytes, pitch = (near * (along - 1) + 1) * self.size, (max(beside)[1] if beside else 0) * self.size
        runs = elements / along
        if pitch % LINE == 0:
            lines = runs * ceil(bytes / LINE) * LINE
        else:  # a run may begin anywhere in a line, so it nearly always touches one more
            lines = runs * min(bytes + LINE - self.size, max(bytes, pitch))
        pages = runs * ceil(bytes / PAGE) if pitch >= PAGE else ceil(runs * max(pitch, bytes) / PAGE)
        return Footprint(elements, elements * self.size, lines, pages, bytes, pitch, self.written)


def joined(progressions: Iterable[Progression]) -> list[Progression]:
    """The fewest progressions that reach the same elements, by ascending stride.

    Two progressions merge if a step of the second is no longer than the reach of the first: the end of a row meets the
    next row, or the taps of a convolution those of the next pixel.
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
    """`count` iterations of a flattened loop as iterations of the loops it was made of; the last varies fastest."""
    counts = {}
    for name, extent in reversed(extents):
        counts[name] = min(extent, count)
        count = ceil(count / extent)
    return counts
