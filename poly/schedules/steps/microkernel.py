"""Put a hand-tuned kernel in place of the innermost loops of a contraction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from poly.ir.nest import Nest
from poly.ir.tree import Node
from poly.schedules.matching import insert
from poly.schedules.steps.base import Arguments


@dataclass(frozen=True)
class Tensorize:
    """The kernel `kernel` runs the innermost loops of `statement` (the first contraction, where none is named).

    `initial` names a statement that sets the output to 0: the kernel's first visit of each element does that instead.
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
