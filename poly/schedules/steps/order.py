"""Interchange two loops, or give several loops a new order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from poly.errors import ScheduleError
from poly.ir.edits import chain, edit, find_loop
from poly.ir.nest import Nest
from poly.ir.tree import Band, Node, bands
from poly.schedules.steps.base import Arguments, check_given
from poly.schedules.steps.sinking import perfect_chain, rebuild


@dataclass(frozen=True)
class Interchange:
    """Swap two loops."""

    outer: str
    inner: str
    name: ClassVar[str] = "interchange"
    reorders: ClassVar[bool] = True

    def apply(self, nest: Nest, tree: Node) -> Node:
        first, second = nested(tree, (self.outer, self.inner))
        return rearrange(nest, tree, (self.outer, self.inner), lambda names: swap(names, first.name, second.name))

    def arguments(self) -> Arguments:
        return (self.outer, self.inner), {}


@dataclass(frozen=True)
class Order:
    """Put nested loops in a new order, outermost first; loops that are not named keep their positions."""

    loops: tuple[str, ...]
    name: ClassVar[str] = "order"
    reorders: ClassVar[bool] = True

    def apply(self, nest: Nest, tree: Node) -> Node:
        check_given(tree, self.name, "the names of loops, such as 'j i'", self.loops)
        if len(self.loops) < 2:
            nested(tree, self.loops)
            return tree
        wanted = iter(self.loops)
        return rearrange(nest, tree, self.loops, lambda names: [next(wanted) if n in self.loops else n for n in names])

    def arguments(self) -> Arguments:
        return (" ".join(self.loops),), {}


def nested(tree: Node, names: tuple[str, ...]) -> tuple[Band, ...]:
    """The loops with these names, outermost first.

    Raises:
        ScheduleError: a name that no loop has, a name that is given twice, or loops that are not nested.
    """
    named = [find_loop(tree, name) for name in names]
    if len(set(names)) < len(names):
        raise ScheduleError(f"{', '.join(names)} names a loop twice.")
    found = tuple(band for band in bands(tree) if any(band is other for other in named))
    for outer, inner in pairwise(found):
        if not chain(outer, inner):
            raise ScheduleError(
                f"loops {outer.name} and {inner.name} are not nested in each other. Remedy: fuse them first."
            )
    return found


def rearrange(nest: Nest, tree: Node, names: tuple[str, ...], arrange: Callable[[list[str]], list[str]]) -> Node:
    """Reorder the loops from the outermost to the innermost of `names` as `arrange` reorders their names."""
    found = nested(tree, names)
    tree, spine = perfect_chain(nest, tree, found[0], found[-1])
    by_name = {band.name: band for band in spine}
    order = arrange([band.name for band in spine])
    return edit(tree, spine[0], rebuild([by_name[name] for name in order], spine[-1].body))


def swap(names: list[str], first: str, second: str) -> list[str]:
    """The list with two entries exchanged."""
    exchange = {first: second, second: first}
    return [exchange.get(name, name) for name in names]
