"""How a loop runs: shared by threads, in vector lanes, or unrolled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from poly.analysis.legality import is_written_out
from poly.analysis.together import apart
from poly.errors import ScheduleError
from poly.ir.edits import edit, find_loop
from poly.ir.nest import Nest
from poly.ir.tree import Band, Leaf, Node, Sequence, bands, walk
from poly.schedules.steps.base import Arguments, check_given, check_integer

MOST_UNROLLED = 1024
"""The largest unroll factor; compilers handle no larger bodies well."""


@dataclass(frozen=True)
class Parallel:
    """Threads share the iterations of the loop."""

    loop: str
    name: ClassVar[str] = "parallel"
    reorders: ClassVar[bool] = True

    def apply(self, nest: Nest, tree: Node) -> Node:
        band = find_loop(tree, self.loop)
        return edit(tree, band, replace(band, parallel=True))

    def arguments(self) -> Arguments:
        return (self.loop,), {}


@dataclass(frozen=True)
class Vectorize:
    """The iterations of a loop run in vector lanes.

    Loops inside are written out, iteration after iteration, or all lanes go through them together.
    """

    loop: str
    name: ClassVar[str] = "vectorize"
    reorders: ClassVar[bool] = True

    def apply(self, nest: Nest, tree: Node) -> Node:
        band = find_loop(tree, self.loop)
        problem = self._problem(nest, tree, band)
        if problem:
            raise ScheduleError(f"vectorize({self.loop}): {problem}")
        return edit(tree, band, replace(band, vectorize=True))

    def _problem(self, nest: Nest, tree: Node, band: Band) -> str | None:
        """Why lanes can't go through the loops inside together; None if they can, or all are written out."""
        inside = [inner for inner in bands(band.body) if not is_written_out(nest, tree, inner)]
        if not inside:
            return None
        names = [inner.name for inner in inside]
        if not all(isinstance(part, Leaf | Band | Sequence) for part in walk(band.body)):
            return f"a microkernel or a copy is inside it, in loop {', '.join(names)}."
        marked = next((inner for inner in inside if inner.vectorize or inner.parallel), None)
        if marked is not None:
            word = "vectorized" if marked.vectorize else "parallel"
            return f"loop {marked.name} is inside it, and {word}. Remedy: leave one of the two marks out."
        own = apart(nest, tree, band)
        if own is None:
            return None
        remedy = f"order({' '.join([*names, self.loop])})"
        return f"loop {own} is inside it, and has other iterations in each lane. Remedy: {remedy} first."

    def arguments(self) -> Arguments:
        return (self.loop,), {}


@dataclass(frozen=True)
class Unroll:
    """Loops are unrolled by these factors."""

    factors: tuple[tuple[str, int], ...]
    name: ClassVar[str] = "unroll"
    reorders: ClassVar[bool] = False

    def apply(self, nest: Nest, tree: Node) -> Node:
        check_given(tree, self.name, "loops and factors, such as i=4", self.factors)
        for name, factor in self.factors:
            check_integer(f"the unroll factor of loop {name}", factor, least=1, most=MOST_UNROLLED)
            band = find_loop(tree, name)
            tree = edit(tree, band, replace(band, unroll=factor))
        return tree

    def arguments(self) -> Arguments:
        return (), dict(self.factors)
