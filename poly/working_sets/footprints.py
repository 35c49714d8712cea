"""The footprint of one run of a part of the loops: distinct elements, and the cache lines that they occupy.

A part is identified by the first entries of its time: `(3, 0)` is the first part of the sequence in iteration 3 of the
outermost loop; `()` is everything.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import islpy as isl

from microkernels.cached import cached_property
from poly.ir.counting import count, points
from poly.machine.description import LINE
from poly.working_sets.lines import lines
from poly.working_sets.memory import Touch, Trace

IN = isl.dim_type.in_
Prefix = tuple[int, ...]


@dataclass(frozen=True)
class TracedFootprint:
    """For each array, in the order of the trace: its name, elements touched, lines touched, and lines written."""

    arrays: tuple[tuple[str, int, int, int], ...]
    bytes: int
    """The bytes of the elements."""
    exact: bool

    @property
    def loaded(self) -> int:
        """The bytes of the lines touched."""
        return LINE * sum(touched for _, _, touched, _ in self.arrays)

    @property
    def stored(self) -> int:
        """The bytes of the lines written."""
        return LINE * sum(written for _, _, _, written in self.arrays)


@dataclass(frozen=True)
class TracedPart:
    """One run of a part of the loops: the accesses in it, each restricted to these times."""

    trace: Trace
    at: Prefix
    touches: tuple[Touch, ...]
    relations: tuple[isl.Map, ...]

    @staticmethod
    def whole(trace: Trace) -> TracedPart:
        return TracedPart(trace, (), trace.touches, tuple(touch.elements for touch in trace.touches))

    def inside(self, value: int) -> TracedPart:
        """The part inside this one with one more entry of the time fixed."""
        depth = len(self.at)
        cut = [r.fix_val(IN, depth, isl.Val(value)) for r in self.relations]
        kept = [(t, r) for t, r in zip(self.touches, cut, strict=True) if not r.is_empty()]
        return TracedPart(self.trace, (*self.at, value), tuple(t for t, _ in kept), tuple(r for _, r in kept))

    @property
    def is_unit(self) -> bool:
        """Whether this is one call of a microkernel, or one instance of a statement."""
        return all(len(self.at) >= touch.depth for touch in self.touches)

    @property
    def is_innermost(self) -> bool:
        """Whether this is one run of a loop over instances, or a single call or instance."""
        return self.is_unit or all(part.is_unit and not part.touches[0].is_call for _, part in self.parts)

    @property
    def loop(self) -> str | None:
        """The loop that this part runs; None if it is a sequence."""
        return self.touches[0].loops[len(self.at)]

    @cached_property
    def values(self) -> isl.Set:
        """`{ [value] }`: the values of the next entry of the time."""
        depth = len(self.at)
        return reduce(isl.Set.union, (_entry(relation.domain(), depth) for relation in self.relations)).coalesce()

    @cached_property
    def parts(self) -> list[tuple[float, TracedPart]]:
        """The parts inside this one with their weights: all parts of a sequence, or iterations of a loop.

        Many iterations are represented by the first, the last, and three in between, weighted so that sums of quadratic
        functions are exact; if these three have equal footprints, the middle one stands for them.
        """
        count, least, most = self.iterations, *_ends(self.values)
        if count <= 3 or self.loop is None:
            return [(1, self.inside(value)) for value in _all(self.values)]
        first, *inner, last = (self.inside(self._near(least, most, sixths)) for sixths in (0, 1, 3, 5, 6))
        if len({part.footprint.arrays for part in inner}) == 1:
            return [(1, first), (count - 2, inner[1]), (1, last)]
        shares = ((count - 2) * weight / 8 for weight in (3, 2, 3))
        return [(1, first), *zip(shares, inner, strict=True), (1, last)]

    def _near(self, least: int, most: int, sixths: int) -> int:
        """The value at `sixths` sixths of the way from the least to the greatest, or the next one."""
        goal = least + (most - least) * sixths // 6
        return _number(self.values.lower_bound_val(isl.dim_type.set, 0, isl.Val(goal)).dim_min_val(0))

    @cached_property
    def iterations(self) -> int:
        """The number of values of the next entry of the time."""
        return points(self.values)

    @property
    def middle(self) -> TracedPart:
        """The middle iteration of a loop."""
        return self.parts[(len(self.parts) - 1) // 2][1]

    @cached_property
    def footprint(self) -> TracedFootprint:
        found = []
        exact = True
        for array in dict.fromkeys(touch.array for touch in self.touches):
            memory = self.trace.memory(array)
            pairs = [(t, r) for t, r in zip(self.touches, self.relations, strict=True) if t.array == array]
            touched = _union(r for _, r in pairs)
            written = _union(r for t, r in pairs if t.writes) if any(t.writes for t, _ in pairs) else None
            counts = count(touched), lines(touched, memory)
            stored = 0 if written is None else lines(written, memory).elements
            found.append((array, counts[0].elements, counts[1].elements, stored))
            exact = exact and all(counted.exact for counted in counts)
        return TracedFootprint(tuple(found), sum(n * self.trace.memory(array).size for array, n, _, _ in found), exact)

    @property
    def asked(self) -> tuple[int, int]:
        """The bytes read and written by all accesses, counted separately: data read by two of them count twice."""
        read, written = 0, 0
        for touch, relation in zip(self.touches, self.relations, strict=True):
            size = count(relation.range()).elements * self.trace.memory(touch.array).size
            read, written = read + size * (not touch.writes), written + size * touch.writes
        return read, written


def _entry(times: isl.Set, depth: int) -> isl.Set:
    length = times.dim(isl.dim_type.set)
    return times.project_out(isl.dim_type.set, depth + 1, length - depth - 1).project_out(isl.dim_type.set, 0, depth)


def _union(relations: Iterable[isl.Map]) -> isl.Set:
    return reduce(isl.Set.union, (relation.range() for relation in relations))


def _ends(values: isl.Set) -> tuple[int, int]:
    return _number(values.dim_min_val(0)), _number(values.dim_max_val(0))


def _all(values: isl.Set) -> list[int]:
    found: list[int] = []
    values.foreach_point(lambda p: found.append(_number(p.get_coordinate_val(isl.dim_type.set, 0))))
    return sorted(found)


def _number(value: isl.Val) -> int:
    number: int = value.to_python()
    return number
