"""How many bytes of an operand a part of a contraction's loops touches: a closed form over loops and their strides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
class Operand:
    """One array of a contraction, as its loops walk through it.

    `strides` are the elements between neighbours along each loop that moves in it, the nearest first; `extents` how
    long those loops are; `size` an element's bytes.
    """

    strides: tuple[tuple[str, int], ...]
    extents: tuple[tuple[str, int], ...]
    size: int

    @staticmethod
    def of(axes: Sequence[Axis], side: Side, size: int) -> Operand:
        found = [(axis, _stride(axis, side)) for axis in axes]
        moving = sorted(((axis, step) for axis, step in found if step), key=lambda pair: pair[1])
        return Operand(
            tuple((axis.iterator, step) for axis, step in moving),
            tuple((axis.iterator, axis.guess) for axis, _ in moving),
            size,
        )

    def elements(self, counts: Counts) -> int:
        """Distinct elements touched.

        Loops with one stride overlap (the pixels and the taps of a convolution): they touch 1 + sum(count - 1).
        """
        reach: dict[int, int] = {}
        for name, step in self.strides:
            reach[step] = reach.get(step, 1) + counts.get(name, 1) - 1
        return prod(reach.values())

    def run(self, counts: Counts) -> int:
        """How many of the touched elements lie next to each other."""
        run = 1
        for (name, step), (_, extent) in zip(self.strides, self.extents, strict=True):
            if step == run:
                run *= counts.get(name, 1)
                if counts.get(name, 1) < extent:
                    break
        return run

    def lines(self, counts: Counts) -> float:
        """Bytes of the cache lines touched; runs that begin anywhere touch one line more, nearly."""
        run, apart = self.run(counts) * self.size, self.pitch(counts) * self.size
        touched = self.elements(counts) * self.size
        if apart % LINE == 0:
            return touched / run * ceil(run / LINE) * LINE
        return touched / run * min(run + LINE - self.size, max(run, apart))

    def pitch(self, counts: Counts) -> int:
        """Elements between neighbours along the loop beside the runs that counts most; 0 where there is none."""
        beside = [(counts.get(name, 1), step) for name, step in self.strides if step > 1 and counts.get(name, 1) > 1]
        return max(beside)[1] if beside else 0

    def pages(self, counts: Counts) -> int:
        """Pages touched."""
        run, apart = self.run(counts), self.pitch(counts) * self.size
        pieces = self.elements(counts) // run
        each = ceil(run * self.size / PAGE)
        return pieces * each if apart >= PAGE else ceil(pieces * max(apart, run * self.size) / PAGE)

    def moves(self, name: str) -> bool:
        """Whether a loop moves in the array."""
        return any(name == iterator for iterator, _ in self.strides)


def _stride(axis: Axis, side: Side) -> int:
    polynomial = {"output": axis.output, "left": axis.left, "right": axis.right}[side]
    constant = polynomial.constant
    return ASSUMED_STRIDE if constant is None else constant
