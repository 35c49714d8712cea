"""Parts of a loop tree, what they touch, and the bytes that they bring into a cache.

    for i:                    what a run of `for j` touches: three rows of A, one of B
      for j:                  what a run of `for i` touches: all of both
        B[i, j] = A[i-1, j] + A[i, j] + A[i+1, j]

A part that fits in a cache brings in what it touches, once. A loop whose body fits brings in what it touches too: each
iteration finds what it shares with the one before. Otherwise every iteration brings in its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, gcd, prod

from poly.model.choice import PAGE
from poly.model.view import Dimension, Group, View
from poly.nest import Nest
from poly.tree import Band, Micro, Node, children, statements

FULL = 0.5
"""The part of a cache that a working set may fill before lines are lost: replacement is not perfect."""

WAYS = 8
"""Lines of a cache that have one place in common."""


@dataclass(frozen=True)
class Level:
    """What is kept near: `capacity` bytes in lines of `line` bytes.

    Lines that are written count `written` times when moved; each run of neighbours that lies a page or more from the
    one before takes as long as `start` bytes more, since no prefetcher sees it coming.
    """

    capacity: float
    line: int
    written: int = 1
    start: float = 0.0


@dataclass(frozen=True)
class Layout:
    """How an array lies in memory: extents, elements between neighbours along each dimension, bytes of an element."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    size: int

    @staticmethod
    def of(nest: Nest) -> dict[str, Layout]:
        """Of each array of a nest whose sizes are known."""
        found = {}
        for array in nest.arrays:
            shape = tuple(extent.constant for extent in array.shape)
            strides = tuple(prod(shape[dimension + 1 :]) for dimension in range(len(shape)))
            found[array.name] = Layout(shape, strides, array.dtype.size)
        return found


@dataclass(frozen=True)
class Region:
    """A node of the tree below `depth` loops; `groups` has each access in it, with a statement that makes it."""

    node: Node
    depth: int
    views: tuple[View, ...]
    groups: tuple[tuple[View, Group], ...]
    below: tuple[Region, ...]


def region(node: Node, depth: int, views: Mapping[str, View]) -> Region:
    """The node and all below it."""
    here = tuple(views[name] for name in statements(node))
    inner = depth + isinstance(node, Band)
    below = () if isinstance(node, Micro) else tuple(region(child, inner, views) for child in children(node))
    joined: dict[tuple[object, ...], tuple[View, Group]] = {}
    for view in here:
        for group in view.groups:
            known = joined.get(group.key)
            joined[group.key] = (known[0], known[1].joined(group)) if known else (view, group)
    return Region(node, depth, here, tuple(joined.values()), below)


@dataclass(frozen=True)
class Lines:
    """What one group of accesses touches: bytes of lines, those of one row, and the bytes from one row to the next."""

    bytes: float
    row: float
    apart: int
    written: bool

    def moved(self, level: Level) -> float:
        """The bytes that it takes as long as to move them."""
        starting = level.start / (self.row + level.line) if self.apart >= PAGE else 0.0
        return self.bytes * (level.written if self.written else 1) * (1 + starting)

    def held(self, level: Level) -> float:
        """The bytes of a cache that they take: more where rows share places, while others stay empty."""
        if not self.apart or self.apart % level.line:
            return self.bytes
        places = max(1, int(level.capacity) // (WAYS * level.line))
        used = places // gcd(self.apart // level.line, places) * ceil(self.row / level.line)
        return self.bytes * max(1.0, places / used)


class Traffic:
    """The bytes that regions move, for one set of sizes of blocks; what several levels ask is worked out once."""

    def __init__(self, layouts: Mapping[str, Layout], sizes: Mapping[str, int]) -> None:
        self.layouts, self.sizes = layouts, sizes
        self._widths: dict[tuple[int, int], list[float]] = {}
        self._lines: dict[tuple[int, int], list[Lines]] = {}

    def widths(self, view: View, depth: int) -> list[float]:
        """Those of `View.widths`."""
        key = id(view), depth
        if key not in self._widths:
            self._widths[key] = view.widths(depth, self.sizes)
        return self._widths[key]

    def lines(self, part: Region, line: int) -> list[Lines]:
        """What each group of a region touches in one run."""
        key = id(part), line
        if key not in self._lines:
            self._lines[key] = [
                lines_of(group, self.layouts[group.array], self.widths(view, part.depth), line)
                for view, group in part.groups
            ]
        return self._lines[key]

    def moved(self, whole: Region, level: Level) -> float:
        """Bytes that come in over many runs of the whole: none where it stays from one to the next."""
        return 0.0 if self._fits(whole, level) else self._moved(whole, level)

    def _moved(self, part: Region, level: Level) -> float:
        touched = sum(lines.moved(level) for lines in self.lines(part, level.line))
        if not part.below or self._fits(part, level):
            return touched
        if not isinstance(part.node, Band):
            return sum(self._moved(child, level) for child in part.below)
        (body,) = part.below
        if self._fits(body, level):
            return touched
        trips = max(self.widths(view, part.depth)[part.depth] for view in part.views)
        return max(touched, trips * self._moved(body, level))

    def _fits(self, part: Region, level: Level) -> bool:
        """Whether all that a run of a part touches stays near."""
        return sum(lines.held(level) for lines in self.lines(part, level.line)) <= level.capacity * FULL


def lines_of(group: Group, layout: Layout, widths: Sequence[float], line: int) -> Lines:
    """What a group of accesses touches while its loops take so many values."""
    reach = [min(float(n), _reach(d, widths)) for d, n in zip(group.dimensions, layout.shape, strict=True)]
    row = reach[-1] * layout.size
    points = prod(widths[at] for at in {at for d in group.dimensions for at, _ in d.terms})
    points *= prod(d.high - d.low + 1 for d in group.dimensions)
    span = sum((r - 1) * stride for r, stride in zip(reach, layout.strides, strict=True)) * layout.size
    full = reach[-1] >= layout.shape[-1] - 2
    each = max(1.0, row / line) if full else 1 + (row - layout.size) / line
    apart = next((s for r, s in zip(reach[-2::-1], layout.strides[-2::-1], strict=True) if r > 1), 0)
    touched = min(prod(reach[:-1]) * each, points, 1 + span / line) * line
    return Lines(touched, row, apart * layout.size, group.written)


def _reach(dimension: Dimension, widths: Sequence[float]) -> float:
    return 1 + dimension.high - dimension.low + sum(abs(c) * (widths[at] - 1) for at, c in dimension.terms)
