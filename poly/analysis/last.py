"""The last accesses of an element before others: isl's dataflow analysis, and by sets where that is wrong.

isl's analysis asks for the lexicographically last source, and for the sinks without one. Where two conditions on
remainders meet, as those of loops with steps 2 and 3, these come out too few, and pairs of a source and a sink are
lost (isl 0.27: the second result of `isl_map_partial_lexmax`). That each sink has some source does not tell: it may
be an earlier one than the last.
"""

from __future__ import annotations

import islpy as isl

from microkernels.cached import cached_property


class Timeline:
    """An order of execution: `schedule` maps each instance to its time vector."""

    def __init__(self, schedule: isl.UnionMap) -> None:
        self.schedule = schedule
        self._pairs: dict[tuple[isl.UnionMap, isl.UnionMap], isl.UnionMap] = {}

    def pairs(self, first: isl.UnionMap, second: isl.UnionMap) -> isl.UnionMap:
        """All pairs of accesses of one element, `{ instance -> element }`, of which the first runs before the second.

        They are kept: several questions about an array need the same ones.
        """
        found = self._pairs.get((first, second))
        if found is None:  # `in` and then a subscript would not do: isl may simplify a map, which changes its hash
            found = self._pairs[first, second] = first.apply_range(second.reverse()).intersect(self._before)
        return found

    @cached_property
    def _before(self) -> isl.UnionMap:
        """All pairs of instances of which the first runs before the second."""
        return self.schedule.lex_lt_union_map(self.schedule)


def last_accesses(sources: isl.UnionMap, sinks: isl.UnionMap, ending: isl.UnionMap, order: Timeline) -> isl.UnionMap:
    """`{ source -> sink }`: the accesses before each sink of one element, back to the last of `ending` between.

    Accesses are `{ instance -> element }`, of which `ending` has one for each instance. A source that is also `ending`
    is the last one of its sink.
    """
    if _has_quotients(sources, sinks, ending):
        return _by_sets(sources, sinks, ending, order)
    certain = sources.intersect(ending)
    asked = isl.UnionAccessInfo.from_sink(sinks).set_schedule_map(order.schedule)
    asked = asked.set_must_source(certain).set_may_source(sources.subtract(certain))
    return asked.set_kill(ending.subtract(certain)).compute_flow().get_may_dependence()


def _by_sets(sources: isl.UnionMap, sinks: isl.UnionMap, ending: isl.UnionMap, order: Timeline) -> isl.UnionMap:
    """All ordered pairs without those that an access of `ending` comes between."""
    every = order.pairs(sources, sinks)
    if every.is_empty():
        return every
    return every.subtract(order.pairs(sources, ending).apply_range(order.pairs(ending, sinks)))


def _has_quotients(*accesses: isl.UnionMap) -> bool:
    """Whether a condition or an index divides: steps of loops, `%` and `//`."""
    maps = [one.get_map_list() for one in accesses]
    every = (found.get_at(at) for found in maps for at in range(found.n_map()))
    return any(_divides(part) for one in every for part in one.get_basic_maps())


def _divides(part: isl.BasicMap) -> bool:
    return bool(part.dim(isl.dim_type.div) > 0)
