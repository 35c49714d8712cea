"""How many distinct elements a set holds."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import islpy as isl

from poly.budget import TooCostly, limited

COUNTING = 20_000_000
"""Operations that isl may take to count one set: some seconds."""


@dataclass(frozen=True)
class Count:
    """A number of elements. Where it could not be counted in time, it is that of a box around them: not exact."""

    elements: int
    exact: bool = True


def count(elements: isl.Set) -> Count:
    """The number of points of a bounded set without parameters."""
    if elements.is_empty():
        return Count(0)
    sides = [
        elements.dim_max_val(d).sub(elements.dim_min_val(d)).to_python() + 1
        for d in range(elements.dim(isl.dim_type.set))
    ]
    try:
        with limited(COUNTING):
            whole = elements.coalesce()
            return Count(prod(sides) if whole.is_box() else whole.count_val().to_python())
    except TooCostly:
        return Count(prod(sides), exact=False)
