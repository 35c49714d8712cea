"""Copy the part of an array that some loops read to a buffer with a better layout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from poly.ir.nest import Nest
from poly.ir.tree import Copy, Memory, Node
from poly.schedules.packing import insert
from poly.schedules.steps.base import Arguments


@dataclass(frozen=True)
class Pack:
    """Each iteration of the loop `at` first copies the part of `array` that it reads; without a loop, one copy is made.

    `statement` selects the reads of one statement, `role` (`left` or `right`) those of one operand of a contraction
    that reads the array twice. `memory` is a box's memory on an OpenCL device, `pad` the number of unused elements
    after each of its rows, `buffers` the number of boxes that are filled in turn.
    """

    array: str
    at: str | None = None
    statement: str | None = None
    role: str | None = None
    memory: Memory = "global"
    pad: int = 0
    buffers: int = 1
    name: ClassVar[str] = "pack"
    reorders: ClassVar[bool] = False

    def apply(self, nest: Nest, tree: Node) -> Node:
        return insert(nest, tree, self._node(tree), self.at)

    def arguments(self) -> Arguments:
        given = {"at": self.at, "statement": self.statement, "role": self.role}
        placed = {"memory": self.memory, "pad": self.pad, "buffers": self.buffers}
        usual = {"memory": "global", "pad": 0, "buffers": 1}
        named = {key: value for key, value in given.items() if value is not None}
        return (self.array,), {**named, **{key: value for key, value in placed.items() if value != usual[key]}}

    def _node(self, tree: Node) -> Copy:
        """The copy as a node, with the whole tree as its body."""
        return Copy(self.array, tree, self.role, self.statement, self.memory, self.pad, self.buffers)
