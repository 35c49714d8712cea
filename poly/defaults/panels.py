"""Cut the rows of arrays that are used again and again into panels that stay in a cache.

    for i:                                  for r_tile:
      for j < i:                              for i:
        for r:                                  for j < i:
          X[i, r] -= L[i, j]*X[j, r]     ->       for r in the tile:
      for r:                                        X[i, r] -= L[i, j]*X[j, r]
        X[i, r] /= L[i, i]                      for r in the tile:
                                                  X[i, r] /= L[i, i]

The innermost loops are cut, and their blocks brought outside of all other loops, where no dependence forbids it.
"""

from __future__ import annotations

from poly.defaults.attempt import attempt
from poly.defaults.loops import extent, innermost, parent
from poly.defaults.strides import accesses
from poly.errors import ScheduleError
from poly.nest import Nest
from poly.schedule import Schedule
from poly.steps import Fuse, Interchange, Split, Step
from poly.steps.base import find_loop
from poly.tree import Band, Node, Sequence, bands, statements

PANEL = 512
"""Bytes of a row in a panel: eight cache lines, long enough for vectors and prefetchers."""


def panelled(schedule: Schedule) -> Schedule:
    """The schedule with the innermost loops' blocks outermost, where arrays are used more than once and that is legal."""
    nest, tree = schedule.nest, schedule.tree
    inner = innermost(tree)
    if not isinstance(tree, Band) or not _reuses(nest, tree, inner):
        return schedule
    widths = {PANEL // nest.array(a.array).dtype.size for s in nest.statements for a in accesses(s)}
    width = max(widths)
    if any((extent(nest, band) or width + 1) <= width for band in inner):
        return schedule
    split = Split(tuple((band.name, width) for band in inner))
    blocks = [f"{band.name}_tile" for band in inner]
    try:
        steps = _hoisting(nest, split.apply(nest, tree), blocks)
    except ScheduleError:
        return schedule
    return attempt(schedule, [split, *steps]) or schedule if steps is not None else schedule


def _reuses(nest: Nest, tree: Node, inner: tuple[Band, ...]) -> bool:
    """Whether every statement stands in an innermost loop, and one in more loops than its arrays have dimensions."""
    if sum(len(statements(band)) for band in inner) < len(statements(tree)):
        return False
    ranks = {s.name: max((len(a.indices) for a in accesses(s)), default=0) for s in nest.statements}
    return any(len(nest.statement(name).iterators) > ranks[name] for name in statements(tree))


def _hoisting(nest: Nest, tree: Node, blocks: list[str]) -> list[Step] | None:
    """The steps that bring the loops `blocks` out of all others, as one loop; None where a loop of another kind is beside one."""
    steps: list[Step] = []
    while True:
        moving = [band for band in bands(tree) if band.name in blocks]
        deepest = max(moving, key=lambda band: _depth(tree, band))
        above = parent(tree, deepest)
        if above is None:
            return steps
        if isinstance(above, Band):
            step: Step = Interchange(above.name, deepest.name)
        elif isinstance(above, Sequence) and all(isinstance(c, Band) and c.name in blocks for c in above.children):
            first, second = above.children[:2]
            step = Fuse(statements(first)[0], statements(second)[0], at=first.name)
        else:
            return None
        tree = step.apply(nest, tree)
        steps.append(step)


def _depth(tree: Node, band: Band) -> int:
    """How many nodes are above a loop."""
    above = parent(tree, find_loop(tree, band.name))
    count = 0
    while above is not None:
        above, count = parent(tree, above), count + 1
    return count
