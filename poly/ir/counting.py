"""How many distinct elements a set holds."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import islpy as isl

from poly.ir.budget import QUESTION, TooCostly, limited

COUNTING = QUESTION
"""Operations that isl may take to count one set."""

RESERVE = 50
"""Percent of an analysis's operations that are for all but counting; sets whose turn comes later get boxes."""

EXISTENTIALS = 8
"""The most in all pieces of a set that is counted: to tell such pieces apart takes time that isl doesn't count."""


@dataclass(frozen=True)
class Count:
    """A number of elements. Where it could not be counted in time, it is that of a box around them: not exact."""

    elements: int
    exact: bool = True


def points(elements: isl.Set) -> int:
    """The number of points of a bounded set without parameters.

    A projection keeps isl's mark that a set's pieces are disjoint, though they may overlap then, and isl counts marked
    pieces one by one. A union has no mark.

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
    whole = elements.coalesce()  # also drops pieces that are empty, whose bounds would count
    if whole.is_empty():
        return Count(0)
    ends = [(whole.dim_min_val(d), whole.dim_max_val(d)) for d in range(whole.dim(isl.dim_type.set))]
    box = prod(high.sub(low).to_python() + 1 for low, high in ends)
    try:
        with limited(COUNTING, reserve=RESERVE):
            return Count(box if whole.is_box() else points(whole))
    except TooCostly:
        return Count(box, exact=False)
