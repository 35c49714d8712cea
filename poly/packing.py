"""Make a copy of what a part of the loops reads of an array.

    for k_tile:                          for k_tile:
      for j_tile: …            ->          pack B            (what one iteration of k_tile reads of B)
                                           for j_tile: …
"""

from __future__ import annotations

from dataclasses import replace

from poly.errors import ScheduleError
from poly.nest import Nest
from poly.steps.base import edit, find_loop
from poly.tree import Node, Pack, statements


def insert(nest: Nest, tree: Node, array: str, at: str | None) -> Node:
    """The tree with a copy of `array` made in each iteration of the loop `at`, or once before everything (None).

    Raises:
        ScheduleError: no such array or loop, an array that the loops below do not read, or that they write.
    """
    names = [a.name for a in nest.arrays if a.shape]
    if array not in names:
        raise ScheduleError(f"pack({array}): {nest.name} has no array {array}. Arrays: {', '.join(names)}.")
    band = find_loop(tree, at) if at is not None else None
    below = [nest.statement(name) for name in statements(band.body if band else tree)]
    if any(s.target.array == array for s in below):
        raise ScheduleError(f"pack({array}): the loops below {at} write {array}; only what is read alone can be copied.")
    if not any(load.array == array for s in below for load in s.reads):
        raise ScheduleError(f"pack({array}): nothing below {at} reads {array}.")
    return edit(tree, band, replace(band, body=Pack(array, band.body))) if band else Pack(array, tree)
