"""Cut loops into blocks: split one, or tile several."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import islpy as isl

from poly.ir.edits import edit, find_loop, fresh, map_functions
from poly.ir.nest import Nest
from poly.ir.tree import Node
from poly.schedules.steps.base import Arguments, check_given, check_integer
from poly.schedules.steps.order import rearrange

Sizes = tuple[tuple[str, int], ...]
SIZES = "loops and sizes, such as i=8"


@dataclass(frozen=True)
class Split:
    """Cut each loop into a loop over blocks (`i_tile`) and, directly inside, one over the points of a block (`i`)."""

    sizes: Sizes
    name: ClassVar[str] = "split"
    reorders: ClassVar[bool] = False

    def apply(self, nest: Nest, tree: Node) -> Node:
        check_given(tree, self.name, SIZES, self.sizes)
        for name, size in self.sizes:
            tree, _ = strip_mine(tree, name, size)
        return tree

    def arguments(self) -> Arguments:
        return (), dict(self.sizes)


@dataclass(frozen=True)
class Tile:
    """Split loops, and move the loops over blocks outside those over points."""

    sizes: Sizes
    name: ClassVar[str] = "tile"
    reorders: ClassVar[bool] = True

    def apply(self, nest: Nest, tree: Node) -> Node:
        check_given(tree, self.name, SIZES, self.sizes)
        tiles = set()
        for name, size in self.sizes:
            tree, outer = strip_mine(tree, name, size)
            tiles.add(outer)
        if len(tiles) < 2:
            return tree
        names = (*tiles, *(name for name, _ in self.sizes))
        return rearrange(nest, tree, names, lambda loops: sorted(loops, key=lambda loop: loop not in tiles))

    def arguments(self) -> Arguments:
        return (), dict(self.sizes)


def strip_mine(tree: Node, name: str, size: int) -> tuple[Node, str]:
    """Split one loop. The loop over blocks inherits `parallel` and `group`, the loop over points all other marks.

    Returns:
        The tree, and the name of the loop over blocks: `i_tile`, or `i_tile2`, … if that name is taken.

    Raises:
        ScheduleError: no such loop, or a size below 1.
    """
    check_integer(f"the block size of loop {name}", size, least=1)
    points = find_loop(tree, name)
    blocks = map_functions(points, lambda _, value: value.scale_down_val(isl.Val(size)).floor())
    inner = replace(points, parallel=False, group=False)
    outer = replace(blocks, name=fresh(tree, f"{name}_tile"), body=inner, vectorize=False, unroll=0, items=0)
    return edit(tree, points, outer), outer.name
