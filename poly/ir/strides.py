"""How statements walk through memory: the iterator that a loop moves, and the stride of each access along it."""

from __future__ import annotations

import islpy as isl

from codegen.expr import Load
from poly.ir.layout import step
from poly.ir.nest import Nest, Statement
from poly.ir.paths import Path
from poly.ir.tree import Band

STRIDED = 16
"""What an access costs that touches another cache line each time, where one to the next element costs 1."""


def moved_iterator(statement: Statement, path: Path, loop: str) -> str | None:
    """The iterator that grows by one with each iteration of a loop, for fixed values of the loops around it.

    `path` leads to the statement. None where there is no such iterator, or more than one.
    """
    fixed: set[str] = set()
    for band in (node for node in path if isinstance(node, Band)):
        moved = {name: c for name, c in _coefficients(statement, band).items() if name not in fixed}
        if band.name == loop:
            return next(iter(moved)) if list(moved.values()) == [1] else None
        if len(moved) == 1:
            fixed.update(moved)
    return None


def strided_cost(nest: Nest, statement: Statement, iterator: str) -> int:
    """What the statement's accesses cost with `iterator` innermost.

    It is the sum over accesses: 0 for one that stays, 1 for one that goes to the next element, else STRIDED.
    """
    return sum(_cost(nest, access, iterator) for access in accesses(statement))


def is_contiguous(nest: Nest, statement: Statement, iterator: str) -> bool:
    """Whether each access stays or goes to the next element as `iterator` grows."""
    return all(_cost(nest, access, iterator) <= 1 for access in accesses(statement))


def is_contiguous_along(nest: Nest, access: Load, iterator: str) -> bool:
    """Whether an access goes to the next element as `iterator` grows."""
    return _cost(nest, access, iterator) == 1


def accesses(statement: Statement) -> tuple[Load, ...]:
    """The elements that an instance touches, each once."""
    return tuple(dict.fromkeys((statement.target, *statement.reads)))


def _cost(nest: Nest, access: Load, iterator: str) -> int:
    if not any(index.coefficient(iterator) for index in access.indices):
        return 0
    return 1 if step(nest.array(access.array), access, iterator).number == 1 else STRIDED


def _coefficients(statement: Statement, band: Band) -> dict[str, int]:
    """The iterators in a loop's function with their coefficients; none where it is not simply affine."""
    pieces = band.function(statement.name).get_pieces()
    if len(pieces) != 1 or pieces[0][1].dim(isl.dim_type.div):
        return {}
    values = [pieces[0][1].get_coefficient_val(isl.dim_type.in_, d) for d in range(len(statement.iterators))]
    found = {name: v.to_python() for name, v in zip(statement.iterators, values, strict=True)}
    return {name: value for name, value in found.items() if value}


def extent(nest: Nest, band: Band) -> int | None:
    """How many values a loop takes in all; None where that depends on sizes or is nothing."""
    lows, highs = [], []
    for name, function in band.functions:
        values = isl.Map.from_pw_aff(function).intersect_domain(nest.statement(name).domain).range()
        if values.is_empty():
            continue
        low, high = values.dim_min_val(0), values.dim_max_val(0)
        if not (low.is_int() and high.is_int()):
            return None
        lows.append(low.to_python())
        highs.append(high.to_python())
    return max(highs) - min(lows) + 1 if lows else None


def lines(nest: Nest, access: Load, iterator: str) -> int:
    """How many times the fewest lines neighbours touch: 0 where all touch one element, 1 for elements side by side."""
    if not any(index.coefficient(iterator) for index in access.indices):
        return 0
    apart = step(nest.array(access.array), access, iterator).number
    return STRIDED if apart is None else min(STRIDED, abs(apart))
