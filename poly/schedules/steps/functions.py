"""Skew, shift and reverse: change the function that a loop counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import islpy as isl

from microkernels.errors import plain
from poly.errors import ScheduleError
from poly.ir.edits import edit, find_loop, map_functions
from poly.ir.nest import Nest
from poly.ir.tree import Node, statements
from poly.schedules.steps.base import Arguments, check_integer


@dataclass(frozen=True)
class Skew:
    """Loop `loop` counts `loop + factor * by`."""

    loop: str
    by: str
    factor: int = 1
    name: ClassVar[str] = "skew"
    reorders: ClassVar[bool] = True

    def apply(self, nest: Nest, tree: Node) -> Node:
        band, other = find_loop(tree, self.loop), find_loop(tree, self.by)
        check_integer(f"the skewing factor of loop {self.loop}", self.factor)
        if band is other:
            raise ScheduleError(f"loop {self.loop} cannot be skewed by itself.")
        alone = set(statements(band)) - set(statements(other))
        if alone:
            raise ScheduleError(
                f"loop {self.by} is not around {', '.join(sorted(alone))}, which loop {self.loop} holds."
            )
        functions = dict(other.functions)
        factor = isl.Val(self.factor)
        return edit(tree, band, map_functions(band, lambda name, value: value.add(functions[name].scale_val(factor))))

    def arguments(self) -> Arguments:
        return (self.loop,), {"by": self.by} | ({} if self.factor == 1 else {"factor": self.factor})


@dataclass(frozen=True)
class Shift:
    """Loop `loop` counts `loop + by`, for one statement or for all."""

    loop: str
    by: int
    statement: str | None = None
    name: ClassVar[str] = "shift"
    reorders: ClassVar[bool] = True

    def apply(self, nest: Nest, tree: Node) -> Node:
        band = find_loop(tree, self.loop)
        check_integer(f"the shift of loop {self.loop}", self.by)
        if self.statement is not None and self.statement not in statements(band):
            raise ScheduleError(
                f"loop {self.loop} holds no statement {plain(self.statement)}, but {', '.join(statements(band))}."
            )
        return edit(tree, band, map_functions(band, self._shifted))

    def _shifted(self, statement: str, value: isl.PwAff) -> isl.PwAff:
        return value.add_constant_val(isl.Val(self.by)) if self.statement in (None, statement) else value

    def arguments(self) -> Arguments:
        return (self.loop,), {"by": self.by} | ({} if self.statement is None else {"statement": self.statement})


@dataclass(frozen=True)
class Reverse:
    """Loop `loop` counts `-loop`: from its last iteration to its first."""

    loop: str
    name: ClassVar[str] = "reverse"
    reorders: ClassVar[bool] = True

    def apply(self, nest: Nest, tree: Node) -> Node:
        band = find_loop(tree, self.loop)
        return edit(tree, band, map_functions(band, lambda _, value: value.neg()))

    def arguments(self) -> Arguments:
        return (self.loop,), {}
