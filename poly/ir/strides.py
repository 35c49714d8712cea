"""How loops step through memory: the iterator that a loop advances, and the stride of each access along it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil

import islpy as isl

from codegen.ir.expr import Load
from codegen.ir.integer import Int, slopes
from poly.ir.instances import span
from poly.ir.layout import offset, step, strides
from poly.ir.nest import Nest, Statement
from poly.ir.paths import Path
from poly.ir.tree import Band, only_loops

STRIDED = 16
"""The cost of an access that touches another cache line each time; one that goes so many elements on costs as many."""

SELDOM = 32
"""The iterations, one for each work-item or lane side by side, in which a change of the element counts."""


def moved_iterator(statement: Statement, path: Path, loop: str, by: int = 1) -> str | None:
    """The iterator that grows `by` one, or minus one, with each iteration of a loop, for fixed values of those around.

    `path` leads to the statement. None if no iterator does, or more than one.
    """
    fixed: set[str] = set()
    for band in only_loops(path):
        moved = {name: c for name, c in _coefficients(statement, band).items() if name not in fixed}
        if band.name == loop:
            return next(iter(moved)) if list(moved.values()) == [by] else None
        if len(moved) == 1:
            fixed.update(moved)
    return None


def advanced_iterator(statement: Statement, path: Path, loop: str) -> str | None:
    """The iterator that grows or falls by one with each iteration of a loop; None as above."""
    forward = moved_iterator(statement, path, loop)
    return moved_iterator(statement, path, loop, by=-1) if forward is None else forward


def summed_iterator(statement: Statement, path: Path, loop: str) -> str | None:
    """The iterator that grows by one with each iteration of a loop, where that stays at one result of the statement.

    None if there is no such iterator, or the loop reaches other results.
    """
    found = moved_iterator(statement, path, loop)
    return None if any(found in index.names for index in statement.target.indices) else found


def strided_cost(nest: Nest, statement: Statement, iterator: str) -> int:
    """The cost of the statement's accesses with `iterator` innermost.

    Each access adds 0 if it stays at one element or in a register, the elements from one to the next if it goes forward
    by fewer than STRIDED, else STRIDED.
    """
    return sum(_cost(nest, access, iterator) for access in accesses(statement))


def is_contiguous(nest: Nest, statement: Statement, iterator: str, most: int = 1) -> bool:
    """Whether each access stays at one element, or goes to the next one, as `iterator` grows, or `most` on."""
    return first_strided(nest, statement, iterator, most) is None


def first_strided(nest: Nest, statement: Statement, iterator: str, most: int = 1) -> Load | None:
    """The first access that goes to another element than the next ones as `iterator` grows; None if none does."""
    return next((access for access in accesses(statement) if _cost(nest, access, iterator, most) > 1), None)


def is_dense(nest: Nest, moved: Mapping[str, str]) -> bool:
    """Whether the accesses to each array together touch all elements of a range, in either direction, or stay at one.

    `moved` is the iterator of each statement that grows. x[2*i] and x[2*i + 1] touch all elements.
    """
    found: dict[tuple[str, Int, int], set[int]] = {}
    for name, iterator in moved.items():
        for access in accesses(nest.statement(name)):
            array = nest.array(access.array)
            along, place = step(array, access, iterator), offset(array, access, {})
            if along.number is None:
                return False
            if any(index.coefficient(iterator) for index in access.indices):
                by = abs(along.number)
                key = access.array, place - place.constant, by
                found.setdefault(key, set()).add(place.constant % by if by else place.constant)
    return all(len(places) >= by > 0 for (_, _, by), places in found.items())


def is_contiguous_along(nest: Nest, access: Load, iterator: str) -> bool:
    """Whether an access goes to the next element as `iterator` grows."""
    return _cost(nest, access, iterator) == 1


def accesses(statement: Statement) -> tuple[Load, ...]:
    """The distinct accesses of a statement, with the write first."""
    return tuple(dict.fromkeys((statement.target, *statement.reads)))


def _cost(nest: Nest, access: Load, iterator: str, most: int = 1) -> int:
    if access.array in nest.temporaries or not any(iterator in index.names for index in access.indices):
        return 0
    apart = step(nest.array(access.array), access, iterator).number
    if apart is None or apart < 1:
        return STRIDED
    return 1 if apart <= most else min(apart, STRIDED)


def _coefficients(statement: Statement, band: Band) -> dict[str, int]:
    """The iterators in a loop's function with their coefficients; empty if it is a quotient or piecewise."""
    pieces = band.function(statement.name).get_pieces()
    if len(pieces) != 1 or pieces[0][1].dim(isl.dim_type.div):
        return {}
    values = [pieces[0][1].get_coefficient_val(isl.dim_type.in_, d) for d in range(len(statement.iterators))]
    found = {name: v.to_python() for name, v in zip(statement.iterators, values, strict=True)}
    return {name: value for name, value in found.items() if value}


def extent(nest: Nest, band: Band) -> int | None:
    """The span of a loop's values, from the least to the greatest; None if it depends on sizes or is empty."""
    lows, highs = [], []
    for name, function in band.functions:
        found = span(nest.statement(name).domain, function)
        if found is None:
            continue
        low, high = found
        if not (low.is_int() and high.is_int()):
            return None
        lows.append(low.to_python())
        highs.append(high.to_python())
    return max(highs) - min(lows) + 1 if lows else None


def lines(nest: Nest, access: Load, iterator: str) -> int:
    """Cache lines that an access touches along `iterator`, relative to contiguous elements; 0 if it stays at one.

    It also stays if it goes on by an element in more than SELDOM iterations, as `x[i // 512]` does.
    """
    apart = Fraction()
    for index, stride in zip(access.indices, strides(nest.array(access.array)), strict=True):
        slope = slopes(index).get(iterator, 0)
        if slope and stride.number is None:
            return STRIDED
        apart += slope * (stride.number or 0)
    return 0 if abs(apart) * SELDOM < 1 else min(STRIDED, ceil(abs(apart)))
