"""Copy what a part of the loops reads of an array to where it lies better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from poly.ir.nest import Nest
from poly.ir.tree import Copy, Memory, Node
from poly.schedules.packing import insert
from poly.schedules.steps.base import Arguments


@dataclass(frozen=True)
class Pack:
    """Each iteration of the loop `at` first copies what it reads of `array`; without a loop, all is copied once.

    `statement` says whose reads, where several statements read the array, and `role` (`left` or `right`) which operand,
    where a contraction reads it twice. `memory` is where a box lies on an OpenCL device, `pad` how many elements lie
    unused behind each of its rows, `buffers` how many boxes are filled in turn.
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
        """The copy as a node around the whole tree."""
        return Copy(self.array, tree, self.role, self.statement, self.memory, self.pad, self.buffers)
