"""What would make an illegal step legal: small changes, tried one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from poly.errors import ScheduleError
from poly.legality import broken_flag, violations
from poly.nest import Nest
from poly.steps import Distribute, Fuse, Interchange, Order, Parallel, Shift, Skew, Step, Tile, Vectorize
from poly.tree import Node, bands, statements

FACTORS = (1, 2)
"""Skewing factors that are tried."""
SHIFTS = range(1, 5)
"""Shifts that are tried, in both directions."""


def remedy(nest: Nest, tree: Node, step: Step) -> tuple[Step, ...] | None:
    """Steps that can be added to `tree`: instead of `step` (the last one is a `step` of other loops), or before it; None if none was found.

    The steps that come before an illegal one are returned without it.
    """
    for before in _preparations(tree, step):
        if _legal(nest, tree, (*before, step)):
            return before
    for instead in _alternatives(nest, tree, step):
        if _legal(nest, tree, (instead,)):
            return (instead,)
    return None


def _preparations(tree: Node, step: Step) -> Iterator[tuple[Step, ...]]:
    match step:
        case Interchange(outer, inner):
            yield from _skews((outer, inner))
        case Order(loops):
            yield from _skews(loops)
        case Tile(sizes):
            yield from _skews(tuple(name for name, _ in sizes))
        case Fuse(first, second, at):
            holder = next(band for band in bands(tree) if band.name == at)
            name = next(
                (b.name for b in bands(tree) if second in statements(b) and first not in statements(b)), holder.name
            )
            for by in SHIFTS:
                yield (Shift(name, by, second),)


def _skews(loops: tuple[str, ...]) -> Iterator[tuple[Step, ...]]:
    for factor in FACTORS:
        for by in loops:
            for loop in loops:
                if loop != by:
                    yield (Skew(loop, by, factor),)
    for factor in FACTORS:
        for by in loops:
            if len(loops) > 2:
                yield tuple(Skew(loop, by, factor) for loop in loops if loop != by)


def _alternatives(nest: Nest, tree: Node, step: Step) -> Iterator[Step]:
    match step:
        case Parallel() | Vectorize():
            for band in bands(tree):
                if band.name != step.loop:
                    yield type(step)(band.name)
            if isinstance(step, Parallel):
                yield Distribute(step.loop)


def _legal(nest: Nest, tree: Node, steps: tuple[Step, ...]) -> bool:
    try:
        for step in steps:
            tree = step.apply(nest, tree)
    except ScheduleError:
        return False
    return violations(nest, tree) is None and broken_flag(nest, tree) is None
