"""The mapping of loops to the work-groups of an OpenCL device and to the work-items of a group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from poly.errors import ScheduleError
from poly.ir.edits import edit, find_loop
from poly.ir.nest import Nest
from poly.ir.tree import Node
from poly.ir.work_groups import MOST_GROUP_LOOPS
from poly.schedules.steps.base import Arguments, check_given, check_integer
from poly.schedules.steps.order import nested


@dataclass(frozen=True)
class Groups:
    """Work-groups share the iterations of perfectly nested loops, outermost first."""

    loops: tuple[str, ...]
    name: ClassVar[str] = "groups"
    reorders: ClassVar[bool] = True

    def apply(self, nest: Nest, tree: Node) -> Node:
        check_given(tree, self.name, "loops, outermost first, such as 'i_tile'", self.loops)
        if len(self.loops) > MOST_GROUP_LOOPS:
            raise ScheduleError(
                f"groups({', '.join(self.loops)}): a device counts work-groups along {MOST_GROUP_LOOPS} dimensions."
            )
        found = tuple(band.name for band in nested(tree, self.loops))
        if found != self.loops:
            raise ScheduleError(f"groups takes loops outermost first: {', '.join(found)}.")
        for name in self.loops:
            band = find_loop(tree, name)
            tree = edit(tree, band, replace(band, parallel=True, group=True))
        return tree

    def arguments(self) -> Arguments:
        return self.loops, {}


@dataclass(frozen=True)
class Items:
    """The given number of work-items of a group share the iterations of each loop; 1 means that none do."""

    numbers: tuple[tuple[str, int], ...]
    name: ClassVar[str] = "items"
    reorders: ClassVar[bool] = True

    def apply(self, nest: Nest, tree: Node) -> Node:
        check_given(tree, self.name, "loops and numbers of work-items, such as i=8", self.numbers)
        for name, number in self.numbers:
            check_integer(f"the number of work-items that share loop {name}", number, least=1)
            band = find_loop(tree, name)
            tree = edit(tree, band, replace(band, items=number if number > 1 else 0))
        return tree

    def arguments(self) -> Arguments:
        return (), dict(self.numbers)
