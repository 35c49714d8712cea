"""Copies as accesses: the reads and writes of a copy, and the reads that it serves.

    for j_tile:            { [j_tile, 0, k, j] -> B[k, j] }                        read
      pack B               { [j_tile, 0, k, j] -> B_copy[k, j - 64*j_tile] }       written
      for i: for j: for k: { [j_tile, 1, i, j, k] -> B_copy[k, j - 64*j_tile] }    read
        C[i, j] += …

A copy is as large as the bounding box of what one iteration reads. It is filled in the order of the array's elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import islpy as isl

from poly.ir.sets import index, mapped, set_space, zero
from poly.working_sets.memory import Memory, Touch

IN, OUT = isl.dim_type.in_, isl.dim_type.out


@dataclass(frozen=True)
class TracedCopy:
    """The copy's memory, its own reads and writes, and the reads redirected to it."""

    memory: Memory
    own: tuple[Touch, ...]
    redirected: tuple[Touch, ...]


def copy(source: Memory, name: str, readers: Sequence[Touch], loops: tuple[str | None, ...]) -> TracedCopy:
    """The copy of the elements of an array that `readers` read in each iteration of `loops`."""
    depth = len(loops)
    footprint = reduce(isl.Map.union, (_grouped(touch.elements, depth) for touch in readers)).coalesce()
    corners = _corners(footprint)
    redirected = tuple(
        replace(
            touch,
            array=name,
            text=f"{name} of {touch.text}",
            elements=_relative(touch.elements, _deepened(corners, touch.elements), name),
        )
        for touch in readers
    )
    memory = Memory(name, source.size, _extents(_relative(footprint, corners, name).range()))
    return TracedCopy(memory, _own(source, memory, footprint, corners, loops), redirected)


def _grouped(elements: isl.Map, depth: int) -> isl.Map:
    """`{ [first `depth` entries of the time] -> A[x0, x1] }`."""
    return elements.project_out(IN, depth, elements.dim(IN) - depth)


def _corners(footprint: isl.Map) -> isl.Map:
    """`{ [time] -> [s0, s1] }`: the least corner of the bounding box of what each iteration reads."""
    corners = isl.Map.from_domain(footprint.domain())
    for d in range(footprint.dim(OUT)):
        corners = corners.flat_range_product(isl.Map.from_pw_aff(footprint.dim_min(d)))
    return corners


def _deepened(corners: isl.Map, elements: isl.Map) -> isl.Map:
    """The corners for times with the further entries of `elements`, which are unconstrained."""
    depth = corners.dim(IN)
    return corners.insert_dims(IN, depth, elements.dim(IN) - depth)


def _relative(elements: isl.Map, corners: isl.Map, name: str) -> isl.Map:
    """`{ [time] -> copy[x0 - s0, x1 - s1] }` from `{ [time] -> A[x0, x1] }` and `{ [time] -> [s0, s1] }`."""
    rank = elements.dim(OUT)
    space = set_space((), 2 * rank)
    minus = mapped(space, name, [index(space, d).sub(index(space, rank + d)) for d in range(rank)])
    return elements.reset_tuple_id(OUT).flat_range_product(corners).apply_range(minus)


def _extents(box: isl.Set) -> tuple[int, ...]:
    whole = box.coalesce()
    return tuple(whole.dim_max_val(d).to_python() + 1 for d in range(whole.dim(isl.dim_type.set)))


def _own(
    source: Memory, memory: Memory, footprint: isl.Map, corners: isl.Map, loops: tuple[str | None, ...]
) -> tuple[Touch, Touch]:
    """The copy's read and write of each element, at position 0 of a sequence in `loops`."""
    rank, depth = len(memory.shape), len(loops)
    copied = footprint.reset_tuple_id(OUT).flat_range_product(corners).wrap().flatten()
    space = copied.get_space()
    entries = [index(space, d) for d in range(depth + 2 * rank)]
    t, x, s = entries[:depth], entries[depth : depth + rank], entries[depth + rank :]
    moved = [a.sub(b) for a, b in zip(x, s, strict=True)]

    def relation(name: str, functions: Sequence[isl.Aff]) -> isl.Map:
        return mapped(space, name, functions).intersect_domain(copied)

    back = relation("", (*t, zero(space), *moved)).reverse()
    elements_text = ", ".join(f"x{d}" for d in range(rank))
    read = Touch(
        statement=f"pack {source.name}",
        text=f"{source.name}[{elements_text}]",
        array=source.name,
        writes=False,
        elements=back.apply_range(relation(source.name, x)),
        instances=back.apply_range(relation("pack", x)),
        loops=(*loops, None, *(f"{source.name}_{d}" for d in range(rank))),
        depth=depth + 1 + rank,
    )
    elements = back.apply_range(relation(memory.name, moved))
    return read, replace(
        read, text=f"{memory.name}[{elements_text}]", array=memory.name, writes=True, elements=elements
    )
