"""Dependence distances along loops, and the shifts and skews that make them all non-negative.

A loop counts a function of each statement's iterators. The distance of a dependence along it is the function's value at
the sink minus its value at the source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import islpy as isl

from poly.analysis.dependences import dependences
from poly.analysis.temporaries import tied
from poly.ir.nest import Nest

Functions = Mapping[str, isl.PwAff]
"""The function that a loop counts, for each statement."""

STEEPEST = 4
"""The largest factor by which a loop is skewed."""


@dataclass(frozen=True)
class Slope:
    """The transformation that makes a loop permutable with an outer one: `loop + shift[statement] + factor*outer`."""

    factor: int
    shifts: Mapping[str, int]


def slope(nest: Nest, outer: Functions, inner: Functions) -> Slope | None:
    """The least skew of `inner` by `outer`, with shifts, that leaves no dependence with a negative distance.

    Statements that share a temporary value have the same shift. None if no factor up to STEEPEST will do.
    """
    edges = _edges(nest, outer, inner)
    together = [pair for pair in tied(nest) if set(pair) <= set(inner)]
    for factor in range(STEEPEST + 1):
        weights = {ends: _least(pairs, factor) for ends, pairs in edges.items()}
        known = {ends: weight for ends, weight in weights.items() if weight is not None}
        equal = {ends: min(known.get(ends, 0), 0) for ends in together}
        shifts = _shifts(tuple(inner), known | equal) if len(known) == len(weights) else None
        if shifts is not None:
            return Slope(factor, shifts)
    return None


def _edges(nest: Nest, outer: Functions, inner: Functions) -> dict[tuple[str, str], isl.Set]:
    """The dependence distances of each pair of statements: a set of `[outer, inner]`."""
    found: dict[tuple[str, str], isl.Set] = {}
    for dependence in dependences(nest).binding:
        ends = dependence.source, dependence.sink
        if not set(ends) <= set(inner):
            continue
        before, after = (_position(outer[name], inner[name]) for name in ends)
        deltas = dependence.relation.apply_domain(before).apply_range(after).deltas()
        found[ends] = found[ends].union(deltas) if ends in found else deltas
    return found


def _position(outer: isl.PwAff, inner: isl.PwAff) -> isl.Map:
    return isl.Map.from_pw_aff(outer).flat_range_product(isl.Map.from_pw_aff(inner)).reset_tuple_id(isl.dim_type.out)


def _least(distances: isl.Set, factor: int) -> int | None:
    """The least of `inner + factor*outer`; None if it is unbounded."""
    space = isl.LocalSpace.from_space(distances.get_space())
    value = isl.Aff.var_on_domain(space, isl.dim_type.set, 1)
    value = value.add(isl.Aff.var_on_domain(space, isl.dim_type.set, 0).scale_val(isl.Val(factor)))
    least = distances.min_val(value)
    return least.to_python() if least.is_int() else None


def _shifts(statements: tuple[str, ...], weights: Mapping[tuple[str, str], int]) -> dict[str, int] | None:
    """The least non-negative shifts with `shift[sink] - shift[source] + weight >= 0`; None if there are none.

    They are longest paths, found by the Bellman-Ford algorithm.
    """
    shifts = dict.fromkeys(statements, 0)
    for _ in range(len(statements) + 1):
        changed = False
        for (source, sink), weight in weights.items():
            if shifts[source] - weight > shifts[sink]:
                shifts[sink], changed = shifts[source] - weight, True
        if not changed:
            return shifts
    return None
