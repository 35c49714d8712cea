"""A schedule as the model prices it: nested loops, what each of their iterations touches, and what they compute.

    for j_tile:                  a part: `trips` runs; in each, so much is touched of A, of B, of C; B is copied
      pack B
      for i_tile:                a part in it
        microkernel              what it computes: calls of a register tile

A point of a contraction's space becomes such a tree without a question to isl (`poly.model.contraction`), any other
schedule by its loops' functions (`poly.model.schedules`). Nothing else is priced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil, prod
from typing import Protocol

from microkernels.dtypes import DType
from poly.model.core import Target
from poly.model.footprint import Footprint


@dataclass(frozen=True)
class CopiedOperand:
    """An operand that is copied, by its number; `across` where the copy's rows lie across the operand's."""

    operand: int
    across: bool = False


@dataclass(frozen=True)
class LoopPart:
    """A part of the loops: an iteration of `loop`, of which each run of the part around it makes `trips`.

    `loop` is the same for loops over blocks of each other, and empty for a part of a sequence. `touched` is what one
    run touches of each operand, by number. `copies` are made in each run, before what is below. A part with nothing
    below is a call of a microkernel, or a run of an innermost loop.
    """

    loop: str
    trips: float
    touched: Mapping[int, Footprint]
    below: tuple[LoopPart, ...] = ()
    copies: tuple[CopiedOperand, ...] = ()


@dataclass(slots=True, eq=False)
class NestedPart:
    """A part with those around it, outermost first, of which it is the last, and the places of those below.

    `copied` are the operands that copies around it serve.
    """

    part: LoopPart
    parts: tuple[LoopPart, ...]
    copied: frozenset[int]
    below: tuple[NestedPart, ...]

    @staticmethod
    def of(part: LoopPart, around: tuple[LoopPart, ...] = (), copied: frozenset[int] = frozenset()) -> NestedPart:
        """The place of a part."""
        parts = (*around, part)
        inside = copied.union([copy.operand for copy in part.copies]) if part.copies else copied
        return NestedPart(part, parts, copied, tuple([NestedPart.of(inner, parts, inside) for inner in part.below]))

    def walk(self) -> Iterator[NestedPart]:
        """The place and all below it."""
        yield self
        for inner in self.below:
            yield from inner.walk()

    def runs(self) -> float:
        """How often the part runs."""
        return prod(ceil(part.trips) for part in self.parts)

    def visits(self, operand: int, at: int) -> float:
        """How often a part's share of an operand is visited.

        The last block may be a fraction of one; it is a whole visit to an operand that its loop doesn't move in.
        """
        moving, still, around = 1.0, dict[str, float](), self.parts[0].touched[operand].elements
        for part in self.parts[1 : at + 1]:
            here = part.touched[operand].elements
            if here != around:
                moving *= part.trips
            else:
                still[part.loop] = still.get(part.loop, 1.0) * part.trips
            around = here
        for trips in still.values():
            moving *= ceil(trips - 1e-9)
        return moving


class Compute(Protocol):
    """What a statement computes while its data are near, in all of its instances."""

    @property
    def dtype(self) -> DType: ...

    @property
    def instances(self) -> float: ...

    @property
    def shared(self) -> float:
        """The iterations of the loop that threads share; 1 where they share none."""

    @property
    def starts(self) -> float:
        """How often threads are started."""

    def time(self, target: Target) -> float:
        """In vector multiply-adds, on one core."""


@dataclass(frozen=True)
class ScheduleParts:
    """A schedule: its parts, and what is computed. Copied operands are dense; some lines are fetched ahead.

    `ahead` are the operands whose next lines a microkernel asks for before it needs them.
    """

    whole: LoopPart
    computed: tuple[Compute, ...]
    copied: frozenset[int] = frozenset()
    ahead: frozenset[int] = frozenset()
