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
from poly.model.core import Core
from poly.model.footprint import Footprint


@dataclass(frozen=True)
class Copy:
    """An operand that is copied, by its number; `across` where the copy's rows lie across the operand's."""

    operand: int
    across: bool = False


@dataclass(frozen=True)
class Part:
    """A part of the loops: an iteration of `loop`, of which each run of the part around it makes `trips`.

    `loop` is the same for loops over blocks of each other, and empty for a part of a sequence. `touched` is what one
    run touches of each operand, by number. `copies` are made in each run, before what is below. A part with nothing
    below is a call of a microkernel, or a run of an innermost loop.
    """

    loop: str
    trips: float
    touched: Mapping[int, Footprint]
    below: tuple[Part, ...] = ()
    copies: tuple[Copy, ...] = ()


@dataclass(frozen=True)
class Place:
    """A part with those around it, outermost first; the last is the part itself. Some operands are served by copies."""

    parts: tuple[Part, ...]
    copied: frozenset[int] = frozenset()

    @property
    def part(self) -> Part:
        return self.parts[-1]

    def inside(self) -> Iterator[Place]:
        """Those directly below."""
        copied = self.copied.union(copy.operand for copy in self.part.copies) if self.part.copies else self.copied
        return (Place((*self.parts, part), copied) for part in self.part.below)

    def moves(self, operand: int, at: int) -> bool:
        """Whether the loop of a part moves in an operand."""
        return self.parts[at - 1].touched[operand].elements != self.parts[at].touched[operand].elements

    def runs(self) -> float:
        """How often the part runs."""
        return prod(ceil(part.trips) for part in self.parts)

    def visits(self, operand: int, at: int) -> float:
        """How often a part's share of an operand is visited.

        The last block may be a fraction of one; it is a whole visit to an operand that its loop doesn't move in.
        """
        moving, still = 1.0, dict[str, float]()
        for depth in range(1, at + 1):
            part = self.parts[depth]
            if self.moves(operand, depth):
                moving *= part.trips
            else:
                still[part.loop] = still.get(part.loop, 1.0) * part.trips
        return moving * prod(ceil(trips - 1e-9) for trips in still.values())


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

    def time(self, core: Core) -> float:
        """In vector multiply-adds, on one core."""


@dataclass(frozen=True)
class Form:
    """A schedule: its parts, and what is computed. Copied operands are dense; some lines are fetched ahead.

    `ahead` are the operands whose next lines a microkernel asks for before it needs them.
    """

    whole: Part
    computed: tuple[Compute, ...]
    copied: frozenset[int] = frozenset()
    ahead: frozenset[int] = frozenset()

    def leaves(self) -> Iterator[Place]:
        """The calls and innermost loops."""
        pending = [Place((self.whole,))]
        while pending:
            place = pending.pop()
            pending += reversed(list(place.inside()))
            if not place.part.below:
                yield place
