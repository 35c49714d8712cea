"""How a loop runs: shared by threads, in vector lanes, or unrolled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from poly.analysis.legality import is_written_out
from poly.errors import ScheduleError
from poly.ir.edits import edit, find_loop
from poly.ir.nest import Nest
from poly.ir.tree import Node, bands
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
    """The iterations of a loop run in vector lanes; loops inside are written out, iteration after iteration."""

    loop: str
    name: ClassVar[str] = "vectorize"
    reorders: ClassVar[bool] = True

    def apply(self, nest: Nest, tree: Node) -> Node:
        band = find_loop(tree, self.loop)
        inside = [inner.name for inner in bands(band.body) if not is_written_out(nest, tree, inner)]
        if inside:
            remedy = f"order({' '.join([*inside, self.loop])})"
            raise ScheduleError(
                f"vectorize({self.loop}): loop {', '.join(inside)} is inside it. Remedy: {remedy} first."
            )
        return edit(tree, band, replace(band, vectorize=True))

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
