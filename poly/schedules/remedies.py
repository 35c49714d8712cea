"""Remedies for an illegal step: small changes that make it legal, tried one after another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations

from poly.analysis.legality import illegal_mark, iterates, violations
from poly.errors import ScheduleError
from poly.ir.nest import Nest
from poly.ir.tree import Node, bands, statements
from poly.ir.work_groups import misfit
from poly.lowering.mapping.legality import conflict
from poly.schedules.steps import (
    Distribute,
    Fuse,
    Groups,
    Interchange,
    Items,
    Order,
    Parallel,
    Shift,
    Skew,
    Step,
    Tile,
    Vectorize,
)

FACTORS = (1, 2)
"""Skewing factors that are tried."""
SHIFTS = range(1, 5)
"""Shifts that are tried."""

Steps = tuple[Step, ...]


def remedy(nest: Nest, tree: Node, step: Step) -> Steps:
    """Legal steps that make an illegal one legal when taken before it, or that replace it; empty if none are found."""
    for before in _preparations(tree, step):
        if _legal(nest, tree, (*before, step)):
            return before
    return next((instead for instead in _alternatives(tree, step) if _legal(nest, tree, instead)), ())


def _preparations(tree: Node, step: Step) -> Iterator[Steps]:
    match step:
        case Interchange(outer, inner):
            yield from _skews(tree, {outer, inner})
        case Order(loops):
            yield from _skews(tree, set(loops))
        case Tile(sizes):
            yield from _skews(tree, {name for name, _ in sizes})
        case Fuse(first, second, _):
            yield from _delays(tree, first, second)


def _skews(tree: Node, loops: set[str]) -> Iterator[Steps]:
    """Skew one loop by another, the inner loops by the outermost, or every loop by all those around it."""
    outside_in = [band.name for band in bands(tree) if band.name in loops]
    for factor in FACTORS:
        for by, loop in permutations(outside_in, 2):
            yield (Skew(loop, by, factor),)
    yield tuple(Skew(loop, outside_in[0]) for loop in outside_in[1:])
    yield tuple(Skew(loop, by) for by, loop in combinations(outside_in, 2))


def _delays(tree: Node, first: str, second: str) -> Iterator[Steps]:
    """Shift the second statement along a loop that it does not share with the first."""
    for band in bands(tree):
        if second in statements(band) and first not in statements(band):
            for by in SHIFTS:
                yield (Shift(band.name, by, second if len(statements(band)) > 1 else None),)


def _alternatives(tree: Node, step: Step) -> Iterator[Steps]:
    names = [band.name for band in bands(tree)]
    match step:
        case Parallel(loop):
            yield from ((Parallel(name),) for name in names if name != loop)
            for outer, inner in combinations(names, 2):
                yield (Skew(inner, outer), Interchange(outer, inner), Parallel(outer))
            yield (Distribute(loop), Parallel(loop))
        case Vectorize(loop):
            for name in names:
                yield (Interchange(name, loop), Vectorize(name))
        case Groups(loops):
            for number in range(len(loops) - 1, 0, -1):
                yield from ((Groups(kept),) for kept in combinations(loops, number))
            yield from ((Groups((name,)),) for name in names if name not in loops)
            for outer, inner in combinations(names, 2):
                yield (Skew(inner, outer), Interchange(outer, inner), Groups((outer,)))
            yield from ((Distribute(loop), Groups(loops)) for loop in loops)
        case Items(numbers):
            for number in range(len(numbers) - 1, 0, -1):
                yield from ((Items(kept),) for kept in combinations(numbers, number))
            if len(numbers) == 1:
                yield from ((Items(((name, numbers[0][1]),)),) for name in names if name != numbers[0][0])


def _legal(nest: Nest, tree: Node, steps: Steps) -> bool:
    try:
        for step in steps:
            tree = step.apply(nest, tree)
    except ScheduleError:
        return False
    parallel = [band.name for band in bands(tree) if band.parallel]
    useful = all(iterates(nest, tree, name) for name in parallel)
    fits = useful and misfit(tree) is None
    ordered = fits and violations(nest, tree) is None and illegal_mark(nest, tree) is None
    return ordered and conflict(nest, tree) is None
