"""The representation of a schedule for the cost model: nested loops, their footprints, and what they compute.

    for j_tile:                  a part: `trips` runs, each with its footprints in A, B and C; B is copied
      pack B
      for i_tile:                a part inside it
        microkernel              the computation: calls of a register tile

A point of a contraction's space is converted without querying isl (`poly.model.contraction`), any other schedule from
the functions of its loops (`poly.model.schedules`). The model prices only this representation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil, prod
from typing import Literal, Protocol

from microkernels.dtypes import DType
from poly.model.core import Target
from poly.model.footprint import Footprint

Side = Literal["output", "left", "right"]
"""The operands of a contraction."""


@dataclass(frozen=True)
class CopiedOperand:
    """A copied operand, by its number; `across` if the copy is transposed with respect to the operand."""

    operand: int
    across: bool = False


@dataclass(frozen=True)
class LoopPart:
    """A part of the loops: an iteration of `loop`, run `trips` times in each run of the part around it.

    `loop` is the same for a loop and the loops over its blocks, and empty for a part of a sequence. `touched` is one
    run's footprint in each operand, by number; `same` has the operand that touches the same elements there, of those
    that others touch by loops of their own. `shares` has the part of the runs that touch an operand, where not all do.
    `copies` are made in each run, before the parts below. A part without parts below is a call of a microkernel, or a
    run of an innermost loop.
    """

    loop: str
    trips: float
    touched: Mapping[int, Footprint]
    below: tuple[LoopPart, ...] = ()
    copies: tuple[CopiedOperand, ...] = ()
    same: Mapping[int, int] = field(default_factory=dict)
    shares: Mapping[int, float] = field(default_factory=dict)

    def share(self) -> float:
        """The part of the runs in which anything is done."""
        every = len(self.shares) == len(self.touched)
        return max(self.shares.values()) if every and self.shares else 1.0


@dataclass(slots=True, eq=False)
class NestedPart:
    """A part in its place in the tree: `parts` lead to it from the outermost to itself, `below` are those inside it.

    `copied` are the operands copied by the parts around it.
    """

    part: LoopPart
    parts: tuple[LoopPart, ...]
    copied: frozenset[int]
    below: tuple[NestedPart, ...]

    @staticmethod
    def of(part: LoopPart, around: tuple[LoopPart, ...] = (), copied: frozenset[int] = frozenset()) -> NestedPart:
        """The part and all below it, each in its place."""
        parts = (*around, part)
        inside = copied.union([copy.operand for copy in part.copies]) if part.copies else copied
        return NestedPart(part, parts, copied, tuple([NestedPart.of(inner, parts, inside) for inner in part.below]))

    def walk(self) -> Iterator[NestedPart]:
        """This part and all below it."""
        yield self
        for inner in self.below:
            yield from inner.walk()

    def runs(self) -> float:
        """The number of runs of the part."""
        return prod(ceil(part.trips) for part in self.parts) * self.part.share()

    def visits(self, operand: int, at: int) -> float:
        """The number of visits to an operand's footprint in the part at position `at` of `parts`.

        A partial last block counts as a fraction of a visit, but as a whole one if its loop does not index the operand.
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
        share = self.parts[at].shares.get(operand)
        return moving if share is None else max(1.0, moving * share)


class Compute(Protocol):
    """The computation of all instances of a statement, with its data in the nearest cache."""

    @property
    def dtype(self) -> DType: ...

    @property
    def instances(self) -> float: ...

    @property
    def shared(self) -> tuple[float, ...]:
        """The iterations of the parallel loop in each of its runs that differ; 1 if there is none."""

    @property
    def starts(self) -> float:
        """The number of times that threads are started."""

    def time(self, target: Target) -> float:
        """The time on one core, in vector multiply-adds."""


@dataclass(frozen=True)
class ScheduleParts:
    """A schedule: its parts, and what it computes.

    `copied` are the operands that are copies, which are dense; `sides` are those of register tiles; `reused` has the
    bytes of memory of locals, which is used again and again; `arrays` has the name and the bytes of the array of each
    operand that is none of these copies. `exchanged` are the bytes of results in all blocks on shared diagonals, which
    a core may have to fetch from another.
    """

    whole: LoopPart
    computed: tuple[Compute, ...]
    copied: frozenset[int] = frozenset()
    sides: Mapping[int, Side] = field(default_factory=dict)
    reused: Mapping[int, float] = field(default_factory=dict)
    arrays: Mapping[int, tuple[str, float]] = field(default_factory=dict)
    exchanged: Mapping[int, float] = field(default_factory=dict)
