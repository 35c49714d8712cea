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
from poly.tree import Band, Node, Pack, Sequence, children, statements


def insert(
    nest: Nest, tree: Node, array: str, at: str | None, statement: str | None = None, role: str | None = None
) -> Node:
    """The tree with a copy of `array` made in each iteration of the loop `at`.

    Without a loop, the copy is made once before the loops that read the array. `statement` and `role` say whose reads
    it serves, where not those of all statements below.

    Raises:
        ScheduleError: no such array, loop or statement; an array that the loops do not read, or that they write.
    """
    names = [a.name for a in nest.arrays if a.shape]
    if array not in names:
        raise ScheduleError(f"pack({array}): {nest.name} has no array {array}. Arrays: {', '.join(names)}.")
    band = find_loop(tree, at) if at is not None else None
    readers = _readers(nest, band.body if band else tree, array, statement)
    if not readers:
        who = statement or ("what is below " + at if at else nest.name)
        raise ScheduleError(f"pack({array}): {who} does not read {array}.")
    place = band.body if band else _around(tree, readers)
    if any(nest.statement(name).target.array == array for name in statements(place)):
        raise ScheduleError(f"pack({array}): the same loops write {array}; only what is read alone can be copied.")
    packed = Pack(array, place, role, statement)
    return edit(tree, band, replace(band, body=packed)) if band else edit(tree, place, packed)


def _readers(nest: Nest, node: Node, array: str, statement: str | None) -> frozenset[str]:
    below = [nest.statement(name) for name in statements(node) if statement in (None, name)]
    return frozenset(s.name for s in below if any(load.array == array for load in s.reads))


def _around(node: Node, names: frozenset[str]) -> Node:
    """The largest part of the tree in which, along its outer loops, no statement stands beside those named."""
    if names >= set(statements(node)):
        return node
    inside = next((child for child in children(node) if names <= set(statements(child))), None)
    if inside is None:
        return node
    if isinstance(node, Band | Pack) and not isinstance(inside, Sequence):
        return node
    return _around(inside, names)
