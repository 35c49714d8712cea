"""The number of cache lines that a set of elements occupies."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from math import prod

import islpy as isl
import numpy as np

from poly.ir.budget import TooCostly, limited
from poly.ir.counting import RESERVE, Count, count, points
from poly.ir.sets import index, mapped, number, set_space
from poly.machine.description import LINE
from poly.working_sets.memory import Memory

EXACT = 1_000_000
"""The number of isl operations allowed for counting lines across rows: a third of a second."""

ROWS = 1 << 20
"""The most rows of a box whose lines are counted one by one; with more, each is assumed to begin at a line."""


def lines(elements: isl.Set, memory: Memory) -> Count:
    """The number of lines occupied by elements of an array, which is dense and begins at a line.

    If the set is not a box, the rows of the array are not multiples of a line, and isl would take too long, each row is
    assumed to begin at a line. The result is then not exact: up to one line per row is missing. Copies are counted in
    the order of the array, although a microkernel stores them in panels: the number of lines differs only at the edges.
    """
    if elements.is_empty():
        return Count(0)
    if not memory.shape:
        return Count(1)
    whole = elements.coalesce()
    if whole.is_box():
        box = [(_number(whole.dim_min_val(d)), _number(whole.dim_max_val(d))) for d in range(len(memory.shape))]
        return Count(_lines_of_box(box, memory))
    if len(memory.shape) == 1 or memory.shape[-1] * memory.size % LINE == 0:
        return count(whole.apply(_to_lines_of_rows(memory)))
    try:
        with limited(EXACT, reserve=RESERVE):
            return Count(points(whole.apply(_to_lines(memory))))
    except TooCostly:
        return replace(count(whole.apply(_to_lines_of_rows(memory))), exact=False)


def _number(value: isl.Val) -> int:
    number: int = value.to_python()
    return number


def _to_lines(memory: Memory) -> isl.Map:
    """`{ A[x0, x1] -> [floor((33*x0 + x1) / elements of a line)] }`."""
    space = set_space((), len(memory.shape), memory.name)
    steps = [(index(space, d), number(prod(memory.shape[d + 1 :]))) for d in range(len(memory.shape))]
    offset = reduce(isl.Aff.add, (place.scale_val(stride) for place, stride in steps))
    return mapped(space, "", [_line(offset, memory)])


def _to_lines_of_rows(memory: Memory) -> isl.Map:
    """`{ A[x0, x1] -> [x0, floor(x1 / elements of a line)] }`."""
    space = set_space((), len(memory.shape), memory.name)
    *outer, last = (index(space, d) for d in range(len(memory.shape)))
    return mapped(space, "", [*outer, _line(last, memory)])


def _line(offset: isl.Aff, memory: Memory) -> isl.Aff:
    """The line of an element at an offset, in elements, from the start of a line."""
    return offset.scale_down_val(number(max(1, LINE // memory.size))).floor()


def _lines_of_box(box: list[tuple[int, int]], memory: Memory) -> int:
    """The lines of all elements between two corners; complete dimensions are merged into longer rows."""
    shape = list(memory.shape)
    while len(box) > 1 and box[-1] == (0, shape[-1] - 1):
        low, high = box[-2]
        extent = shape.pop()
        box = [*box[:-2], (low * extent, (high + 1) * extent - 1)]
        shape[-1] *= extent
    sides = [high - low + 1 for low, high in box]
    rows, per_line = prod(sides[:-1]), max(1, LINE // memory.size)
    if rows > ROWS:
        return rows * -(-sides[-1] // per_line)
    starts = np.zeros(1, dtype=np.int64)
    for d, (low, high) in enumerate(box):
        values = np.arange(low, (high if d < len(box) - 1 else low) + 1) * prod(shape[d + 1 :])
        starts = np.add.outer(starts, values).ravel()
    first, last = starts * memory.size // LINE, ((starts + sides[-1]) * memory.size - 1) // LINE
    shared = np.count_nonzero(first[1:] <= last[:-1])
    return int(np.sum(last - first + 1) - shared)
