"""How many bytes of an operand a part of a contraction's loops touches: a closed form over loops and their strides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, prod

from poly.grouping import Side
from poly.model.choice import ASSUMED_STRIDE, LINE, PAGE
from poly.roles import Axis

Counts = Mapping[str, int]
"""How many neighbouring iterations of each loop, by iterator; a loop that is not named has one."""


def spread(axes: Sequence[Axis], count: int) -> dict[str, int]:
    """So many iterations of the loop that `axes` were flattened to, as iterations of each; the last is the fastest."""
    counts = {}
    for axis in reversed(axes):
        counts[axis.iterator] = min(axis.guess, count)
        count = ceil(count / axis.guess)
    return counts


@dataclass(frozen=True)
class Touched:
    """What iterations touch of an array: distinct elements, the bytes of their cache lines, and pages.

    They lie in runs of `run` bytes next to each other, the runs `pitch` bytes apart along the loop beside them that
    counts most (0 where there is one run).
    """

    elements: int
    lines: float
    pages: int
    run: int
    pitch: int


@dataclass(frozen=True)
class Operand:
    """One array of a contraction, as its loops walk through it.

    `loops` are those that move in it, with the elements between neighbours and the extent, the nearest first; `size` is
    an element's bytes.
    """

    loops: tuple[tuple[str, int, int], ...]
    size: int
    _known: dict[tuple[int, ...], Touched] = field(default_factory=dict, compare=False, repr=False)

    @staticmethod
    def of(axes: Sequence[Axis], side: Side, size: int) -> Operand:
        found = [(axis.iterator, _stride(axis, side), axis.guess) for axis in axes]
        return Operand(tuple(sorted((loop for loop in found if loop[1]), key=lambda loop: loop[1])), size)

    def touched(self, counts: Counts) -> Touched:
        """What so many iterations of each loop touch."""
        own = tuple(counts.get(name, 1) for name, _, _ in self.loops)
        if own not in self._known:
            self._known[own] = self._touched(own)
        return self._known[own]

    def stride(self, name: str) -> int:
        """Elements between neighbours along a loop; 0 where it does not move in the array."""
        return next((step for loop, step, _ in self.loops if loop == name), 0)

    def _touched(self, counts: tuple[int, ...]) -> Touched:
        elements = self._elements(counts)
        run = self._run(counts)
        beside = [(n, step) for n, (_, step, _) in zip(counts, self.loops, strict=True) if step > 1 and n > 1]
        bytes, pitch = run * self.size, (max(beside)[1] if beside else 0) * self.size
        runs = elements // run
        if pitch % LINE == 0:
            lines = float(runs * ceil(bytes / LINE) * LINE)
        else:  # a run may begin anywhere in a line, so it nearly always touches one more
            lines = elements * self.size / bytes * min(bytes + LINE - self.size, max(bytes, pitch))
        pages = runs * ceil(bytes / PAGE) if pitch >= PAGE else ceil(runs * max(pitch, bytes) / PAGE)
        return Touched(elements, lines, pages, bytes, pitch)

    def _elements(self, counts: tuple[int, ...]) -> int:
        """Loops with one stride overlap (the pixels and the taps of a convolution): they touch 1 + sum(count - 1)."""
        reach: dict[int, int] = {}
        for n, (_, step, _) in zip(counts, self.loops, strict=True):
            reach[step] = reach.get(step, 1) + n - 1
        return prod(reach.values())

    def _run(self, counts: tuple[int, ...]) -> int:
        """How many of the touched elements lie next to each other."""
        run = 1
        for n, (_, step, extent) in zip(counts, self.loops, strict=True):
            if step == run:
                run *= n
                if n < extent:
                    break
        return run


def _stride(axis: Axis, side: Side) -> int:
    stride = {"output": axis.output, "left": axis.left, "right": axis.right}[side].number
    return ASSUMED_STRIDE if stride is None else stride
