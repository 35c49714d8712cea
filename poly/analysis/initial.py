"""Whether results depend on what an array holds before: on elements that a nest reads first, or leaves alone."""

from __future__ import annotations

from contextlib import suppress
from functools import reduce

import islpy as isl

from poly.ir.budget import QUESTION, TooCostly, limited
from poly.ir.nest import Nest, Statement
from poly.ir.paths import times


def keeps_initial(nest: Nest, array: str) -> bool:
    """Whether some element is read before it is written, or is not written; True if that takes too much work to find.

    `C[i, j] += …` reads: it keeps what C holds before, unless a statement sets each element first.
    """
    with suppress(TooCostly), limited(QUESTION, apart=True):
        return not _all_written(nest, array) or _read_first(nest, array)
    return True


def _writes(nest: Nest, array: str) -> list[isl.Map]:
    return [_in_context(nest, s.relation(s.target)) for s in nest.statements if s.target.array == array]


def _in_context(nest: Nest, relation: isl.Map) -> isl.Map:
    return relation.intersect_params(nest.context)


def _all_written(nest: Nest, array: str) -> bool:
    elements = nest.array(array).elements(nest.sizes).intersect_params(nest.context)
    left = (write.range() for write in _writes(nest, array))
    return bool(reduce(isl.Set.subtract, left, elements).is_empty())


def _read_first(nest: Nest, array: str) -> bool:
    """Whether an instance reads an element that no instance has written before."""
    order = times(nest, nest.tree)
    schedule = _union(list(order.values()))
    after = schedule.lex_gt_union_map(schedule)
    writers = _union(_writes(nest, array)).reverse()
    return any(
        not relation.domain().subtract(relation.apply_range(writers).intersect(after).domain()).is_empty()
        for statement in nest.statements
        for relation in _reads(nest, statement, array)
    )


def _reads(nest: Nest, statement: Statement, array: str) -> list[isl.UnionMap]:
    loads = dict.fromkeys(load for load in statement.reads if load.array == array)
    return [isl.UnionMap.from_map(_in_context(nest, statement.relation(load))) for load in loads]


def _union(maps: list[isl.Map]) -> isl.UnionMap:
    return reduce(isl.UnionMap.union, map(isl.UnionMap.from_map, maps))
