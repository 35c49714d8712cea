"""The loops that fill a box, shared by threads, work-groups or work-items like the loops around.

for A_0: for A_1:  # vectorize            one thread, or a work-group of one item
for A_0:  # parallel …                    above parallel loops: a copy for all their iterations
for A_0:  # 8 items                       a group of 256 items, neighbours along the contiguous dimension
  for A_1:  # 32 items
"""

from __future__ import annotations

import islpy as isl

from codegen.integer import Int
from codegen.names import fresh
from poly.ir.instances import coordinate
from poly.ir.layout import strides
from poly.ir.nest import Array, Nest, Statement
from poly.ir.tree import Band, Leaf, Memory, Node, bands
from poly.lowering.box_place import CopyPlace


def copy_loops(nest: Nest, tree: Node, place: CopyPlace, copy: Statement, extents: tuple[Int, ...]) -> Node:
    """The loops over the elements of a box with these extents, the innermost contiguous in the array."""
    depth, rank = len(place.above), len(extents)
    order = _fastest_last(nest.array(place.node.array))
    shared = not place.is_private and any(band.parallel for band in bands(place.node))
    shares = _last_alone(rank, place.items) if shared else place.shares(tuple(extents[d] for d in order))
    taken = frozenset(band.name for band in bands(tree))
    loops: Node = Leaf(copy.name)
    for position, d in reversed(list(enumerate(order))):
        function = _counted(copy, place.node.memory, depth + d, rank)
        last = position == rank - 1
        loops = Band(
            fresh(f"{place.node.array}_{d}", taken),
            ((copy.name, function),),
            loops,
            parallel=shared and position == 0 and not last,
            vectorize=last and place.items == 1,
            unroll=extents[d].constant if place.node.memory == "private" else 0,
            items=shares[position] if shares[position] > 1 else 0,
        )
    return loops


def _counted(copy: Statement, memory: Memory, position: int, rank: int) -> isl.PwAff:
    """The function of a loop over a dimension: the array's index or, in local and private memory, the box's."""
    index = coordinate(copy.domain, position)
    return index if memory == "global" else index.sub(coordinate(copy.domain, position + rank))


def _last_alone(rank: int, items: int) -> tuple[int, ...]:
    return (*[1] * (rank - 1), items)


def _fastest_last(array: Array) -> list[int]:
    """The dimensions of an array, with the contiguous one last."""
    steps = [stride.number for stride in strides(array)]
    fastest = next((d for d, step in enumerate(steps) if step == 1), len(steps) - 1)
    return [*(d for d in range(len(steps)) if d != fastest), fastest]
