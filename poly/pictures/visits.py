"""The iterations of a small schedule in the order in which they run, and the pairs that depend on each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import islpy as isl

from poly.analysis.dependences import Dependence, dependences
from poly.ir.nest import Nest
from poly.ir.paths import Path, paths, times
from poly.ir.sets import integer
from poly.ir.tree import Band, only_loops
from poly.pictures.instance import root
from poly.schedules.schedule import Schedule

Values = tuple[int, ...]


@dataclass(frozen=True)
class Visit:
    """An iteration of a statement: the values of its iterators and, by name, of the schedule's loops around it."""

    statement: str
    point: Values
    loops: tuple[tuple[str, int], ...]

    def value(self, name: str) -> int:
        """The value of a loop of the schedule."""
        return dict(self.loops)[name]


@dataclass(frozen=True)
class Pair:
    """Two iterations, `source` before `sink`, as a statement and the values of its iterators, and why."""

    source: tuple[str, Values]
    sink: tuple[str, Values]
    kind: str
    """`flow`, `anti`, `output`, or `reduction` for updates that may be reordered."""


def visits(schedule: Schedule) -> tuple[Visit, ...]:
    """All iterations, in order. The schedule's sizes are fixed, and small."""
    found = []
    ways = paths(schedule.tree)
    for name, time in times(schedule.nest, schedule.tree).items():
        rank = len(schedule.nest.statement(name).iterators)
        bands = [(at, step.name) for at, step in enumerate(ways[name]) if isinstance(step, Band)]
        for values in points(time.wrap()):
            when = values[rank:]
            found.append((when, Visit(name, values[:rank], tuple((loop, when[at]) for at, loop in bands))))
    return tuple(visit for _, visit in sorted(found, key=lambda timed: timed[0]))


def blocks(schedule: Schedule) -> dict[str, tuple[int, ...]]:
    """For each statement, after how many of its loops an iteration's block is known, innermost blocks first.

    A loop is one over blocks if its values are those of several iterations along an iterator: `i_tile`. The second
    depth, if there is one, is that of blocks of blocks, along an iterator that is cut more than once.
    """
    return {name: _depths(name, way) for name, way in paths(schedule.tree).items()}


def _depths(statement: str, way: Path) -> tuple[int, ...]:
    bands = only_loops(way)
    over = {at + 1: root(band.name) for at, band in enumerate(bands) if not _counts_points(band.function(statement))}
    again = [depth for depth, name in over.items() if name in [other for at, other in over.items() if at > depth]]
    return tuple(depths[-1] for depths in (list(over), again) if depths)


def _counts_points(function: isl.PwAff) -> bool:
    """Whether a loop's function has no quotient."""
    return all(piece.dim(isl.dim_type.div) == 0 for _, piece in function.get_pieces())


def pairs(nest: Nest) -> tuple[Pair, ...]:
    """The dependences of a small nest, pair by pair."""
    found = dependences(nest)
    return tuple(dict.fromkeys(pair for one in found for pair in _pairs(one, found.reassociate)))


def _pairs(dependence: Dependence, reassociate: bool) -> Iterator[Pair]:
    kind = "reduction" if dependence.reduction and reassociate else dependence.kind
    rank = dependence.relation.dim(isl.dim_type.in_)
    for values in points(dependence.relation.wrap()):
        yield Pair((dependence.source, values[:rank]), (dependence.sink, values[rank:]), kind)


def points(small: isl.Set) -> Iterator[Values]:
    """The points of a bounded set, without an order."""
    found: list[isl.Point] = []
    small.foreach_point(found.append)
    rank = small.dim(isl.dim_type.set)
    for point in found:
        yield tuple(integer(point.get_coordinate_val(isl.dim_type.set, at)) for at in range(rank))
