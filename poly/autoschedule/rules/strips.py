"""Take what a loop goes through in each of its iterations strip by strip, so that a strip stays in the cache.

for k:                                      for j_tile:
  r[k] = f(A[:, k])                           for k up to the strip's end:
  for j > k:                          ->        r[k] = f(A[:, k])                       if k is in the strip
    for i: s[k, j] += A[i, k] * A[i, j]         for j in the strip behind k:
    for i: A[i, j] -= A[i, k] * s[k, j]           for i: s[k, j] += …; for i: A[i, j] -= …

A strip of columns takes all steps in turn before the next one begins: the left-looking form of an elimination by blocks
of columns (Dongarra, Duff, Sorensen, van der Vorst, "Solving linear systems on vector and shared memory computers",
1991). What stands beside the inner loop belongs to the strip of its own column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod

from codegen.ir.expr import Load
from poly.autoschedule.rules.attempt import attempt
from poly.autoschedule.rules.pivots import counting
from poly.ir.edits import fresh
from poly.ir.instances import box_extents
from poly.ir.nest import Nest
from poly.ir.paths import paths
from poly.ir.strides import accesses, moved_iterator
from poly.ir.tree import Band, Sequence, only_loops, parts, statements
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Enclose
from poly.schedules.steps.formulas import Formula

LEAST = 16
"""The least iterations of a strip: whole lines."""


def in_strips(made: Schedule, cache: int) -> Iterator[tuple[str, Schedule]]:
    """The loops inside an outermost one that may be in strips, of which half of a cache holds one, with the schedules.

    None for loops that go through less than the cache holds, or of unknown sizes.
    """
    for outer in parts(made.tree):
        if not isinstance(outer, Band) or not isinstance(outer.body, Sequence):
            continue
        for inner in only_loops(parts(outer.body)):
            found = _cut(made, outer, inner, cache)
            if found is not None:
                yield inner.name, found


def _cut(made: Schedule, outer: Band, inner: Band, cache: int) -> Schedule | None:
    """The schedule with the inner loop in strips; None if that is illegal, or no use."""
    nest, inside = made.nest, statements(inner)
    steps, strips = moved(made, outer, statements(outer)), moved(made, inner, inside)
    if steps is None or strips is None or nest.sizes or any(nest.statement(name).domain.is_empty() for name in inside):
        return None
    size = _size(nest, steps, strips, cache)
    counts = next(counting(nest, {name: (one,) for name, one in (steps | strips).items()}), None) if size else None
    if size is None or counts is None:
        return None
    return attempt(made, [enclosed(made, inner, counts, size)])


def enclosed(made: Schedule, loop: Band, counts: Mapping[str, str], size: int) -> Enclose:
    """The loop over blocks of `size` of what each statement's iterator counts, named after the loop that it cuts."""
    values = tuple((name, Formula(f"{iterator} // {size}")) for name, iterator in counts.items())
    return Enclose(fresh(made.tree, f"{loop.name}_tile"), values)


def moved(made: Schedule, loop: Band, names: Iterable[str]) -> dict[str, str] | None:
    """The iterator of each statement that a loop moves; None if it moves none of one, or several."""
    found = paths(made.tree)
    moved = {name: moved_iterator(made.nest.statement(name), found[name], loop.name) for name in names}
    return None if None in moved.values() else {name: one for name, one in moved.items() if one is not None}


def added_bytes(nest: Nest, along: Mapping[str, str], beside: Mapping[str, str]) -> int:
    """The bytes that one iteration of a loop adds to what the statements inside access, where another doesn't move."""
    found = dict[Load, int]()
    for name, iterator in along.items():
        statement = nest.statement(name)
        extents = dict(zip(statement.iterators, box_extents(statement.domain), strict=True))
        for access in accesses(statement):
            names = {one for index in access.indices for one in index.names}
            if iterator in names and beside.get(name) not in names:
                found[access] = nest.array(access.array).dtype.size * prod(extents[one] for one in names - {iterator})
    return sum(found.values())


def power(most: int) -> int:
    """The greatest power of two up to a number; 0 if there is none."""
    return 1 << (most.bit_length() - 1) if most > 0 else 0


def _size(nest: Nest, steps: Mapping[str, str], strips: Mapping[str, str], cache: int) -> int | None:
    """The iterations of a strip, a power of two; None if all of them fit in the cache, or too few."""
    column, found = added_bytes(nest, strips, steps), (nest.statement(name) for name in strips)
    whole = max(box_extents(one.domain)[one.iterators.index(strips[one.name])] for one in found)
    size = power(cache // 2 // column) if column * whole > cache else 0
    return size if size >= LEAST else None
