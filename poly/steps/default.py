"""The model's schedule as one step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from microkernels.isa import ISAS
from poly.default import default_tree
from poly.model import Caches
from poly.nest import Nest
from poly.steps.base import Arguments
from poly.tree import Node


@dataclass(frozen=True)
class Default:
    """All loops as poly.compile takes them without a schedule, for an instruction set, a number of threads and caches."""

    isa: str
    threads: int
    caches: tuple[int, int, int]
    name: ClassVar[str] = "default"
    reorders: ClassVar[bool] = True

    def apply(self, nest: Nest, tree: Node) -> Node:
        """The model's tree; whatever steps came before are forgotten."""
        return default_tree(nest, ISAS[self.isa], Caches(*self.caches), self.threads)

    def arguments(self) -> Arguments:
        return (self.isa,), {"threads": self.threads, "caches": self.caches}
