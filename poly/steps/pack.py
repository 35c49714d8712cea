"""Copy what a part of the loops reads of an array to where it lies better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from poly.nest import Nest
from poly.packing import insert
from poly.steps.base import Arguments
from poly.tree import Node


@dataclass(frozen=True)
class Pack:
    """Each iteration of the loop `at` first copies what it reads of `array`; without a loop, all is copied once.

    `statement` says whose reads, where several statements read the array, and `role` (`left` or `right`) which operand,
    where a contraction reads it twice.
    """

    array: str
    at: str | None = None
    statement: str | None = None
    role: str | None = None
    name: ClassVar[str] = "pack"
    reorders: ClassVar[bool] = False

    def apply(self, nest: Nest, tree: Node) -> Node:
        return insert(nest, tree, self.array, self.at, self.statement, self.role)

    def arguments(self) -> Arguments:
        given = {"at": self.at, "statement": self.statement, "role": self.role}
        return (self.array,), {key: value for key, value in given.items() if value is not None}
