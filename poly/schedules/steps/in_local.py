"""What steps share that keep an array in a local, with copies between them."""

from __future__ import annotations

from typing import ClassVar

from microkernels.errors import plain
from poly.errors import ScheduleError
from poly.ir.lookups import index_reads
from poly.ir.nest import Nest, Statement
from poly.ir.strides import accesses
from poly.ir.tree import Copy, Node, walk
from poly.schedules.steps.base import Arguments


class InLocal:
    """A step after which statements access a local called `into` instead of `array`."""

    array: str
    into: str | None
    name: ClassVar[str]
    ending: ClassVar[str]
    """The end of the local's usual name."""

    @property
    def local(self) -> str:
        """The name of the local."""
        return f"{self.array}_{self.ending}" if self.into is None else self.into

    @property
    def behind(self) -> tuple[str | int, ...]:
        """The arguments behind the array."""
        raise NotImplementedError

    def rewritten(self, nest: Nest, tree: Node) -> tuple[Nest, Node]:
        """The nest with the local, and the tree with the copies; both are unchanged if they have them."""
        raise NotImplementedError

    def apply(self, nest: Nest, tree: Node) -> Node:
        return self.rewritten(nest, tree)[1]

    def arguments(self) -> Arguments:
        return (self.array, *self.behind), {} if self.into is None else {"into": self.into}

    def refused(self, reason: str, remedy: str) -> ScheduleError:
        text = ", ".join(map(plain, (self.array, *self.behind)))
        return ScheduleError(f"{self.name}({text}): {reason}. Remedy: {remedy}.")

    def name_is_taken(self) -> ScheduleError:
        return self.refused(f"there is an array {self.local} already", "another name, into=…")

    def check_accesses(self, nest: Nest, tree: Node) -> None:
        """Refuse a nest or a tree whose accesses to the array can't be changed."""
        if index_reads(nest):
            raise self.refused(f"{nest.name} looks up indices", "leave it as it is")
        if any(isinstance(node, Copy) and node.array == self.array for node in walk(tree)):
            raise self.refused("it is packed", f"{self.name} first, then pack")


def accesses_array(statement: Statement, array: str) -> bool:
    return any(load.array == array for load in accesses(statement))
