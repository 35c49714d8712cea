"""The nodes of a schedule's tree with the operands accessed below them, and their footprints while loops are fixed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from microkernels.cached import cached_property
from poly.ir.tree import Node
from poly.model.footprint import ArrayAccesses, Counts, Footprint
from poly.model.leaf import diagonals
from poly.model.parts import CopiedOperand, LoopPart
from poly.model.view import Reference, Sizes, View


@dataclass(frozen=True)
class Accessed:
    """An operand by its number, with its reference and the statements that access it.

    `panels` tells whether the copy that serves it is one of panels for a microkernel.
    """

    number: int
    operand: ArrayAccesses
    reference: Reference
    views: tuple[View, ...]
    panels: bool

    def counts(self, known: Mapping[int, Counts]) -> Counts:
        """The values of its loops: of each, those of the statement that has most; `known` has the statements'."""
        first = known[id(self.views[0])]
        if len(self.views) == 1:
            return first
        every = [known[id(one)] for one in self.views]
        return {name: max([one.get(name, 1) for one in every]) for name in self.operand.loops if name in first}

    def touched(self, counts: Counts) -> Footprint:
        """The footprint for these counts of the loops."""
        return self.operand.copied(counts) if self.panels else self.operand.touched(counts)

    @cached_property
    def form(self) -> tuple[object, ...]:
        """What operands have in common that may touch the same elements."""
        indices = ((low, high, tuple(sorted(c for _, c in terms))) for terms, low, high in self.reference.indices)
        return (self.reference.array, *indices)

    def reached(self, depth: int, counts: Counts) -> tuple[object, ...]:
        """What operands have in common that touch the same elements while the outer `depth` loops are fixed."""
        own = self.views[0]
        indices = [frozenset([(own.values(n, depth, counts), c) for n, c in t]) for t, _, _ in self.reference.indices]
        return (self.form, *indices)


@dataclass(frozen=True)
class TreePart:
    """A node of the tree below `depth` loops, and the operands accessed in it."""

    node: Node
    depth: int
    views: tuple[View, ...]
    accessed: tuple[Accessed, ...]
    below: tuple[TreePart, ...]

    @cached_property
    def _beside(self) -> tuple[Accessed, ...]:
        """The operands that may touch what others do, of which none is a copy; those that write first."""
        plain = [one for one in self.accessed if not one.reference.copy]
        forms = [one.form for one in plain]
        found = (one for one in plain if forms.count(one.form) > 1)
        return tuple(sorted(found, key=lambda one: not one.operand.written))

    def part(
        self,
        loop: str,
        trips: tuple[float, ...],
        sizes: Sizes,
        inside: tuple[tuple[LoopPart, ...], tuple[CopiedOperand, ...]],
    ) -> LoopPart:
        """The part with what is `inside`: parts and copies; `trips` has those of all loops around it.

        It is a run for each iteration of the last of these loops, if `loop` names it, or else for a run of what is
        around it.
        """
        depth, often = len(trips), {id(one): one.share(trips, sizes) for one in self.views}
        known = {id(one): one.counts(one.widths(depth, sizes)) for one in self.views}
        counts = {one.number: one.counts(known) for one in self.accessed}
        touched = {one.number: one.touched(counts[one.number]) for one in self.accessed}
        shares: dict[int, float] = {}
        if any(share < 1 for share in often.values()):
            found = {one.number: max([often[id(user)] for user in one.views]) for one in self.accessed}
            shares = {number: share for number, share in found.items() if share < 1}
        return LoopPart(loop, trips[-1] if loop else 1.0, touched, *inside, self._same(depth, counts, shares), shares)

    def _same(self, depth: int, counts: Mapping[int, Counts], shares: Mapping[int, float]) -> dict[int, int]:
        """For operands that touch the same elements as another in as many runs, that one."""
        first: dict[tuple[object, ...], int] = {}
        found: dict[int, int] = {}
        for one in self._beside:
            reached = shares.get(one.number, 1), *one.reached(depth, counts[one.number])
            found[one.number] = first.setdefault(reached, one.number)
        return {number: other for number, other in found.items() if number != other}

    def exchanged(self, sizes: Sizes, threads: int) -> dict[int, float]:
        """The bytes of results that threads fetch from each other where they share diagonals of blocks.

        Where the parts of two threads meet, a block of the next diagonal needs what the other thread has written.
        """
        found = [(one, diagonals(one, self.depth, sizes)) for one in self.views]
        passed = [
            prod(one.widths(0, sizes)[: self.depth + 1]) * blocks.between(threads) for one, blocks in found if blocks
        ]
        results = {one.number for one in self.accessed if one.operand.written} if passed else {}
        return {n: max(passed) * one.bytes for n, one in self.touched(self.depth + 1, sizes).items() if n in results}

    def touched(self, depth: int, sizes: Sizes) -> dict[int, Footprint]:
        """The footprint of each operand while the outer `depth` loops are fixed."""
        counts = {id(one): one.counts(one.widths(depth, sizes)) for one in self.views}
        return {one.number: one.touched(one.counts(counts)) for one in self.accessed}


def regions(part: TreePart) -> Iterator[TreePart]:
    """A part and all below it, from the outermost inwards."""
    yield part
    for inner in part.below:
        yield from regions(inner)
