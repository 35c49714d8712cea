"""Replace the innermost loops of a contraction by a hand-tuned kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from poly.ir.nest import Nest
from poly.ir.tree import Node
from poly.schedules.matching import insert
from poly.schedules.steps.base import Arguments


@dataclass(frozen=True)
class Tensorize:
    """The microkernel `kernel` runs the innermost loops of `statement` (by default, the first free contraction).

    `initial` is a statement that sets the output to 0; the kernel takes this over at its first visit to each element.
    """

    kernel: str
    statement: str | None = None
    initial: str | None = None
    name: ClassVar[str] = "microkernel"
    reorders: ClassVar[bool] = False

    def apply(self, nest: Nest, tree: Node) -> Node:
        return insert(nest, tree, self.kernel, self.statement, self.initial)

    def arguments(self) -> Arguments:
        given = {"statement": self.statement, "initial": self.initial}
        return (self.kernel,), {key: value for key, value in given.items() if value is not None}
