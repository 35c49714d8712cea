"""The number of elements of a set."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import islpy as isl

from poly.ir.budget import QUESTION, TooCostly, limited

COUNTING = QUESTION
"""Operations that isl may use to count one set."""

RESERVE = 50
"""Percent of an analysis's operations that counting must leave to the rest; beyond it, sets are counted as boxes."""

EXISTENTIALS = 8
"""The most existentials, in all pieces together, of a set that is counted exactly: making such pieces disjoint takes
time that isl doesn't count as operations."""


@dataclass(frozen=True)
class Count:
    """A number of elements; if not `exact`, that of the bounding box of a set that takes too much work to count."""

    elements: int
    exact: bool = True


def points(elements: isl.Set) -> int:
    """The number of points of a bounded set without parameters.

    The set is rebuilt as a union first. isl counts the pieces of a set one by one if they are marked as disjoint, and a
    projection keeps that mark although the pieces may overlap then; a union drops it.

    Raises:
        TooCostly: the set has too many pieces with existentials.
    """
    pieces = elements.get_basic_set_list()
    apart = [pieces.get_at(at) for at in range(pieces.n_basic_set())]
    if sum(piece.dim(isl.dim_type.div) for piece in apart) > EXISTENTIALS:
        raise TooCostly
    unmarked = isl.Set.empty(elements.get_space())
    for piece in apart:
        unmarked = unmarked.union(isl.Set.from_basic_set(piece))
    number: int = unmarked.coalesce().count_val().to_python()
    return number


def count(elements: isl.Set) -> Count:
    """The number of elements of a bounded set without parameters."""
    whole = elements.coalesce()  # also drops empty pieces, whose bounds would enlarge the box
    if whole.is_empty():
        return Count(0)
    ends = [(whole.dim_min_val(d), whole.dim_max_val(d)) for d in range(whole.dim(isl.dim_type.set))]
    box = prod(high.sub(low).to_python() + 1 for low, high in ends)
    try:
        with limited(COUNTING, reserve=RESERVE):
            return Count(box if whole.is_box() else points(whole))
    except TooCostly:
        return Count(box, exact=False)
