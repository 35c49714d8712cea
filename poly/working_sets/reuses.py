"""The working sets of a schedule: how much data it touches between two accesses of the same data.

After PolyScientist (Tavarageri et al., arXiv 2002.02145) and PolyDL (arXiv 2006.02230, ACM TACO), with these
definitions.

    reuse         two accesses of one array, of which the second touches an element again that the first has touched:
                  in different iterations of one loop, which carries the reuse, and the same iterations of the loops
                  around it; or in the same iteration of all shared loops, in two parts of a sequence. The kinds are
                  read-after-read, flow (write, then read), anti (read, then write) and output (write, then write).
    source        the first instance, in the order of the schedule, whose element is reused in this way.
    nearest,      the first and the last instance that reuse the element of the source in this way.
    furthest
    working set   the distinct elements that all statements and copies together touch from the source to such an
                  instance, both included. The nearest gives the minimal, the furthest the maximal working set.

The papers define the source in the same way, but have one reuse for each of isl's basic maps, and count only instances
of the dependence's own statement, which gives the same result for perfect nests. Here everything that runs in between
counts, and reuses are distinguished by the loop that carries them, which does not depend on isl's representation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Literal

import islpy as isl

from poly.ir.counting import count
from poly.ir.sets import SET, number, set_space
from poly.schedules.schedule import Schedule
from poly.working_sets.memory import Touch, Trace
from poly.working_sets.trace import trace

Kind = Literal["read-after-read", "flow", "anti", "output"]
KINDS: dict[tuple[bool, bool], Kind] = {
    (False, False): "read-after-read",
    (True, False): "flow",
    (False, True): "anti",
    (True, True): "output",
}
"""The kinds by whether the first access writes, and whether the second does."""

IN, OUT = isl.dim_type.in_, isl.dim_type.out


Time = tuple[int, ...]


@dataclass(frozen=True)
class WorkingSet:
    """The distinct elements touched in an interval of time.

    `arrays` has the number of elements of each array and copy. If isl could not count them in time, their bounding
    boxes are counted instead, and the result is not `exact`.
    """

    arrays: tuple[tuple[str, int], ...]
    bytes: int
    exact: bool = True

    @property
    def elements(self) -> int:
        return sum(elements for _, elements in self.arrays)


@dataclass(frozen=True)
class Instance:
    """One iteration of a statement, or the copying of one element."""

    statement: str
    point: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.statement}{list(self.point)}"


@dataclass(frozen=True)
class Reuse:
    """Two accesses of the same data, and the working sets in between.

    `loop` carries the reuse; None if only the order of statements does.
    """

    kind: Kind
    array: str
    loop: str | None
    first: str
    """The text of the access whose data are reused; `then` is that of the one that reuses them."""
    then: str
    source: Instance
    nearest: Instance
    furthest: Instance
    least: WorkingSet
    most: WorkingSet

    @property
    def sizes(self) -> tuple[int, int]:
        """The bytes of the minimal and of the maximal working set."""
        return self.least.bytes, self.most.bytes


def working_sets(schedule: Schedule, sizes: Mapping[str, int] | None = None) -> tuple[Reuse, ...]:
    """The reuses of a schedule with their working sets, in the order of accesses and loops.

    `sizes` are values of the nest's open sizes.

    Raises:
        SpecError: an unknown size, or an invalid value.
        ScheduleError: a size is left open.
    """
    return tuple(_Analysis(trace(schedule, sizes)).reuses())


class _Analysis:
    """The reuses of a trace; working sets are cached by interval."""

    def __init__(self, traced: Trace) -> None:
        self.trace = traced
        self.known: dict[tuple[Time, Time], WorkingSet] = {}

    def reuses(self) -> Iterator[Reuse]:
        for first in self.trace.touches:
            for then in self.trace.touches:
                if first.array == then.array:
                    yield from self._between(first, then)

    def _between(self, first: Touch, then: Touch) -> Iterator[Reuse]:
        """The reuses of one access's data by another, outermost loop first."""
        same = first.elements.apply_range(then.elements.reverse())
        for level in range(self.trace.length):
            if same.is_empty():
                return
            carried = same.order_lt(IN, level, OUT, level)
            if not carried.is_empty():
                yield self._reuse(first, then, level, carried)
            same = same.equate(IN, level, OUT, level)

    def _reuse(self, first: Touch, then: Touch, level: int, carried: isl.Map) -> Reuse:
        both = _point(carried.wrap().flatten().lexmin())
        source, nearest = both[: self.trace.length], both[self.trace.length :]
        furthest = _point(_at(carried, source).range().lexmax())
        return Reuse(
            KINDS[first.writes, then.writes],
            first.array,
            first.loops[level],
            first.text,
            then.text,
            _instance(first, source),
            _instance(then, nearest),
            _instance(then, furthest),
            self._working_set(source, nearest),
            self._working_set(source, furthest),
        )

    def _working_set(self, first: Time, last: Time) -> WorkingSet:
        if (first, last) not in self.known:
            self.known[first, last] = touched(self.trace, between(first, last))
        return self.known[first, last]


def touched(traced: Trace, times: isl.Set) -> WorkingSet:
    """The distinct elements touched at these times."""
    found: dict[str, list[isl.Set]] = {}
    for access in {(t.statement, t.text): t for t in traced.touches}.values():
        elements = times.apply(access.elements)
        if not elements.is_empty():
            found.setdefault(access.array, []).append(elements)
    counts = {array: count(reduce(isl.Set.union, parts)) for array, parts in found.items()}
    return WorkingSet(
        tuple((array, counted.elements) for array, counted in counts.items()),
        sum(counted.elements * traced.memory(array).size for array, counted in counts.items()),
        all(counted.exact for counted in counts.values()),
    )


def _at(relation: isl.Map, time: Time) -> isl.Map:
    for d, value in enumerate(time):
        relation = relation.fix_val(IN, d, isl.Val(value))
    return relation


def _point(single: isl.Set) -> Time:
    point = single.sample_point()
    return tuple(point.get_coordinate_val(isl.dim_type.set, d).to_python() for d in range(single.dim(isl.dim_type.set)))


def _instance(touch: Touch, time: Time) -> Instance:
    return Instance(touch.statement, _point(_at(touch.instances, time).range()))


def between(first: Time, last: Time) -> isl.Set:
    """The vectors that are lexicographically between `first` and `last`, both included; `last` is not before `first`.

    The set is a union of disjoint pieces: vectors that exceed `first` at some entry after the first one at which the
    two differ, vectors strictly between the two at that entry, vectors that stay below `last` at some later entry, and
    the two themselves.
    """
    length = len(first)
    if first == last:
        return _fixed(first, length)
    parted = next(d for d, (a, b) in enumerate(zip(first, last, strict=True)) if a != b)
    pieces = [_above(_fixed(first, d), first, d) for d in range(length - 1, parted, -1)]
    pieces.append(_above(_below(_fixed(first, parted), last, parted), first, parted))
    pieces += [_below(_fixed(last, d), last, d) for d in range(parted + 1, length)]
    return reduce(isl.Set.union_disjoint, [*pieces, _fixed(first, length), _fixed(last, length)])


def _fixed(time: Time, entries: int) -> isl.Set:
    """The vectors that agree with `time` in the first `entries` entries."""
    made = isl.Set.universe(set_space((), len(time)))
    for d in range(entries):
        made = made.fix_val(SET, d, number(time[d]))
    return made


def _above(times: isl.Set, time: Time, entry: int) -> isl.Set:
    return times.lower_bound_val(SET, entry, number(time[entry] + 1))


def _below(times: isl.Set, time: Time, entry: int) -> isl.Set:
    return times.upper_bound_val(SET, entry, number(time[entry] - 1))
