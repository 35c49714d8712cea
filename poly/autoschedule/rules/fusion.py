"""Fuse consecutive loops that touch the same arrays, so that the second finds its data in the caches.

    for i: for j: B[i, j] = f(A[i, j])              for i:
    for i: for j: C[i, j] = g(B[i, j])       ->       for j:
                                                        B[i, j] = f(A[i, j])
                                                        C[i, j] = g(B[i, j])

If the innermost loops cannot be fused, or only at the cost of vectorisation, just the loops around them are.
"""

from __future__ import annotations

from itertools import pairwise

import islpy as isl

from poly.analysis.legality import lane_conflict
from poly.autoschedule.rules.attempt import attempt
from poly.autoschedule.rules.shapes import Chain, chain_of
from poly.ir.nest import Nest
from poly.ir.strides import accesses
from poly.ir.tree import Node, Sequence, parts, walk
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Fuse

STREAMS = 8
"""The number of arrays in one innermost loop that hardware prefetchers can follow."""


def fused(schedule: Schedule) -> Schedule:
    """The schedule with loops fused wherever that is legal and they share an array."""
    while True:
        made = next((s for pair in _pairs(schedule.tree) if (s := _fused(schedule, *pair)) is not None), None)
        if made is None:
            return schedule
        schedule = made


def _pairs(tree: Node) -> list[tuple[Chain, Chain]]:
    """The pairs of consecutive chains of loops."""
    found = []
    for node in walk(tree):
        if isinstance(node, Sequence):
            chains = [chain_of(child) for child in parts(node)]
            found += [(a, b) for a, b in pairwise(chains) if a is not None and b is not None]
    return found


def _fused(schedule: Schedule, first: Chain, second: Chain) -> Schedule | None:
    nest = schedule.nest
    shared = _arrays(nest, first) & _arrays(nest, second)
    if not shared:
        return None
    for depth in range(min(len(first.bands), len(second.bands)), 0, -1):
        whole = depth == len(first.bands) or depth == len(second.bands)
        if len(first.bands) != len(second.bands) and whole:
            continue
        if whole and len(_arrays(nest, first) | _arrays(nest, second)) > STREAMS:
            continue
        if _range(nest, first, depth) != _range(nest, second, depth):
            continue
        loop = first.bands[depth - 1].name
        made = attempt(schedule, [Fuse(first.statements[0], second.statements[0], at=loop)])
        if made is not None and not (whole and _lost_lanes(schedule, made, first, second)):
            return made
    return None


def _lost_lanes(before: Schedule, after: Schedule, first: Chain, second: Chain) -> bool:
    """Whether two vectorisable loops became one that is not."""
    nest = before.nest
    could = all(lane_conflict(nest, before.tree, chain.bands[-1].name) is None for chain in (first, second))
    return could and lane_conflict(nest, after.tree, first.bands[-1].name) is not None


def _arrays(nest: Nest, chain: Chain) -> frozenset[str]:
    touched = (access for name in chain.statements for access in accesses(nest.statement(name)))
    return frozenset(access.array for access in touched if nest.array(access.array).shape) - nest.temporaries


def _range(nest: Nest, chain: Chain, depth: int) -> isl.Set:
    """The values that the outer `depth` loops take together."""
    result = None
    for name in chain.statements:
        domain = nest.statement(name).domain
        values = isl.Map.from_domain(domain)
        for band in chain.bands[:depth]:
            values = values.flat_range_product(isl.Map.from_pw_aff(band.function(name)))
        reached = values.intersect_domain(domain).range().reset_tuple_id()
        result = reached if result is None else result.union(reached)
    assert result is not None, "a loop holds a statement"
    return result.coalesce()
