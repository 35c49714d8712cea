"""Copies in local memory for loops already mapped to work-groups and work-items.

    tiles    each group copies its part of an array that a statement reads at several neighbouring places
    slabs    each group copies what a slab of the loop inside the items reads; the slab loop moves around the items

for i_tile: for j_tile:  # groups          for i_tile: for j_tile:  # groups
  for i: for j:  # items                     for k_tile:
    for k:                           ->        pack A, B
      C[i, j] += A[i, k]*B[k, j]               for i: for j:  # items
                                                 for k: C[i, j] += …
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from poly.autoschedule.rules.attempt import attempt
from poly.ir.strides import extent
from poly.ir.tree import Band, Leaf, Node, statements
from poly.ir.work_groups import LaunchedLoops, kernels
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Order, Pack, Split, Step


def tiles(made: Schedule, pad: int) -> Schedule | None:
    """The schedule with copies of arrays that a statement reads at several places; None without any or if illegal."""
    packs = [
        Pack(array, kernel.groups[-1].name, memory="local", pad=pad)
        for kernel in kernels(made.tree)
        if kernel.groups
        for array in _read_often(made, kernel)
    ]
    return attempt(made, packs) if packs else None


def _read_often(made: Schedule, kernel: LaunchedLoops) -> tuple[str, ...]:
    """The arrays that some statement of a kernel reads more than once and none writes."""
    below = [made.nest.statement(name) for name in statements(kernel.body)]
    written = {statement.target.array for statement in below}
    read = [load.array for statement in below for load in dict.fromkeys(statement.reads)]
    return tuple(dict.fromkeys(array for array in read if read.count(array) > 1 and array not in written))


def slabs(made: Schedule, slab: int, pad: int, buffers: int) -> Schedule | None:
    """The schedule with the loops inside the items cut into slabs, and all that a slab reads copied.

    None if there are no such loops longer than a slab, or it is illegal.
    """
    steps = [step for kernel in kernels(made.tree) for step in _slab_steps(made, kernel, slab, pad, buffers)]
    return attempt(made, steps) if steps else None


def _slab_steps(made: Schedule, kernel: LaunchedLoops, slab: int, pad: int, buffers: int) -> Iterator[Step]:
    loops = tuple(_chain(kernel.body))
    items = tuple(takewhile(lambda band: band.items > 0, loops))
    if not kernel.groups or not items or len(loops) != len(items) + 1 or not isinstance(loops[-1].body, Leaf):
        return
    inside, statement = loops[-1], made.nest.statement(loops[-1].body.statement)
    if (extent(made.nest, inside) or slab + 1) <= slab:
        return
    around = f"{inside.name}_tile"
    yield Split(((inside.name, slab),))
    yield Order((around, *(band.name for band in items)))
    for array in dict.fromkeys(load.array for load in statement.reads if load.array != statement.target.array):
        yield Pack(array, around, memory="local", pad=pad, buffers=buffers)


def _chain(node: Node) -> Iterator[Band]:
    """The perfectly nested loops from a node inwards."""
    while isinstance(node, Band):
        yield node
        node = node.body
