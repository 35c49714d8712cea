"""Elements looked up as indices of other arrays, `A[idx[i]]`: their values are checked before a nest runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import islpy as isl
import numpy as np

from codegen.arguments import Fitted
from codegen.errors import ArgumentError
from codegen.expr import Load, accessed
from codegen.integer import Int, Linear, Lookup
from poly.ir.fixing import fix_set
from poly.ir.nest import Nest, Statement
from poly.ir.sets import integer


@dataclass(frozen=True)
class IndexRead:
    """An element of an array of indices that a statement looks up as the index `axis` of `into`."""

    statement: Statement
    index: Load
    into: str
    axis: int
    least: Int
    """The least value that is inside of `into`."""
    end: Int
    """One more than the greatest."""

    def range(self, sizes: Mapping[str, int]) -> tuple[int, int]:
        """The least value, and one more than the greatest, at some sizes."""
        return self.least.evaluate(sizes), self.end.evaluate(sizes)

    def positions(self, sizes: Mapping[str, int]) -> isl.Set:
        """The elements that are looked up, without parameters."""
        return fix_set(self.statement.relation(self.index).range(), sizes)


def index_reads(nest: Nest) -> tuple[IndexRead, ...]:
    """All elements that a nest looks up as indices."""
    return tuple(dict.fromkeys(read for statement in nest.statements for read in _of(statement)))


def _of(statement: Statement) -> Iterator[IndexRead]:
    for load in dict.fromkeys(accessed(statement.expr)):
        for axis, index in enumerate(load.indices):
            for found in (atom for atom, _ in index.terms if isinstance(atom, Lookup)):
                rest = index - Linear(((found, 1),))
                own = Load(found.array, found.indices)
                yield IndexRead(statement, own, load.array, axis, -rest, found.extent - rest)


def index_ranges(nest: Nest, sizes: Mapping[str, int]) -> tuple[tuple[str, int, int], ...]:
    """The arrays of indices, with the least value and the end of the values that are inside of all that they index."""
    found: dict[str, tuple[int, int]] = {}
    for read in index_reads(nest):
        low, end = read.range({**dict(nest.fixed), **sizes})
        least, most = found.get(read.index.array, (low, end))
        found[read.index.array] = max(low, least), min(end, most)
    return tuple((name, low, end) for name, (low, end) in found.items())


def check_indices(nest: Nest, reads: tuple[IndexRead, ...], given: Fitted) -> None:
    """Check the values of arrays of indices.

    Raises:
        ArgumentError: a value that is looked up is outside of the array that it is an index of.
    """
    sizes = {**dict(nest.fixed), **given.sizes}
    for read in reads:
        values = given.values[read.index.array]
        low, end = read.range(sizes)
        if values.size and (values.min() < low or values.max() >= end):
            _check_each(nest, read, values, sizes)


def _check_each(nest: Nest, read: IndexRead, values: np.ndarray[Any, Any], sizes: Mapping[str, int]) -> None:
    low, end = read.range(sizes)
    used = read.positions(sizes)
    wrong = np.argwhere((values < low) | (values >= end))
    for place in wrong[_near(used.remove_divs(), wrong)]:
        if _has(used, place):
            at = ", ".join(map(str, place))
            raise ArgumentError(
                f"{nest.name}: {read.index.array}[{at}] is {values[tuple(place)]}, and must be from {low} "
                f"to {end - 1}, since it is looked up as index {read.axis} of {read.into} in line "
                f"{read.statement.line}: {read.statement.text}"
            )


def _near(points: isl.Set, places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Which rows of `places` are points of a set without existentials: all at once, since there may be millions."""
    found, axes = np.zeros(len(places), bool), range(places.shape[1])
    for piece in points.get_basic_sets():
        inside = np.ones(len(places), bool)
        for constraint in piece.get_constraints():
            coefficients = [integer(constraint.get_coefficient_val(isl.dim_type.set, at)) for at in axes]
            value = places @ np.array(coefficients) + integer(constraint.get_constant_val())
            inside &= value == 0 if constraint.is_equality() else value >= 0
        found |= inside
    return found


def _has(points: isl.Set, place: np.ndarray[Any, Any]) -> bool:
    for at, value in enumerate(place):
        points = points.fix_val(isl.dim_type.set, at, isl.Val(int(value)))
    return not points.is_empty()
