"""Columns in strips for the nearest cache, with the arrays kept so that columns are contiguous.

for k:                                       A, Q are copied so that their columns are contiguous
  r[k] = f(A[:, k]); Q[:, k] = …             for k_tile: for j_tile: for k in k_tile, up to the strip's end:
  for j > k:                          ->       r[k] = f(A[k, :]); Q[k, :] = …           if k is in the strip
    for i: s[k, j] += Q[i, k] * A[i, j]        for j in the strip behind k:
    for i: A[i, j] -= Q[i, k] * s[k, j]          for i: s[k, j] += …; for i: A[j, i] -= …

As rules/strips.py, where every step goes over its columns twice, so that no product of blocks does its work: a strip of
few columns stays in the first level, and the columns that a block of steps reads in the second. For threads, the strips
behind a block of steps are a loop of their own.
"""

from __future__ import annotations

from codegen.names import fresh as fresh_name
from poly.autoschedule.rules.attempt import applied, attempt, with_free_name
from poly.autoschedule.rules.pivots import counting
from poly.autoschedule.rules.shapes import innermost, parts
from poly.autoschedule.rules.strips import added_bytes, enclosed, moved, power
from poly.ir.instances import box_extents
from poly.ir.nest import Nest
from poly.ir.paths import loops_around, paths
from poly.ir.strides import accesses, moved_iterator
from poly.ir.tree import Band, Sequence, only_loops, statements
from poly.model import Caches
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import Distribute, Fuse, Parallel, Part, ReorderStorage
from poly.schedules.steps.formulas import Formula


def relaid(nest: Nest, caches: Caches, threads: int = 1) -> Schedule | None:
    """The schedule with such strips; None if there are none, or for unknown sizes."""
    if nest.sizes or any(s.domain.is_empty() for s in nest.statements):
        return None
    made = schedule(nest)
    for outer in parts(made.tree):
        if isinstance(outer, Band) and isinstance(outer.body, Sequence):
            for inner in only_loops(parts(outer.body)):
                found = _cut(made, outer, inner, caches, threads)
                if found is not None:
                    return found
    return None


def _cut(made: Schedule, outer: Band, inner: Band, caches: Caches, threads: int) -> Schedule | None:
    """The schedule with an inner loop in strips, and the outer one in blocks; None if that is illegal, or no use."""
    nest, inside = made.nest, statements(inner)
    steps, strips = moved(made, outer, statements(outer)), moved(made, inner, inside)
    turned = _turned(made, inner) if steps is not None and strips is not None else {}
    if steps is None or strips is None or not turned:
        return None
    column, source = added_bytes(nest, strips, steps), added_bytes(nest, {name: steps[name] for name in inside}, strips)
    whole = max(box_extents(nest.statement(name).domain)[0] for name in inside)
    size, depth = power(caches.l1 // max(column, 1) - 1), power(caches.l2 // 2 // max(source, 1))
    if size < 2 or column * whole <= caches.l1:
        return None
    counts = next(counting(nest, {name: (one,) for name, one in (steps | strips).items()}), None)
    if counts is None:
        return None
    kept = [with_free_name(nest, ReorderStorage(array, order)) for array, order in turned.items()]
    if not size < depth < whole:
        return attempt(made, [*kept, enclosed(made, inner, counts, size)])
    apart = [_behind(made, name, steps[name], strips[name], depth) for name in inside] if threads > 1 else []
    far = {part.statement: part.near for part in apart}
    every = ({**of, **{far[name]: of[name] for name in far}} for of in (counts, steps))
    cut = [enclosed(made, loop, of, n) for loop, of, n in zip((inner, outer), every, (size, depth), strict=True)]
    if not apart:
        return attempt(made, [*kept, *cut])
    beside = _beside(applied(made, [*kept, *apart]), inner, tuple(far.values()))
    return _shared(applied(beside, [*cut, Distribute(cut[0].loop, behind=inside[-1])]), far[inside[0]])


def _behind(made: Schedule, name: str, step: str, along: str, depth: int) -> Part:
    """The part of a statement that is in a later block than its step."""
    into = fresh_name(f"{name}_far", frozenset(s.name for s in made.nest.statements))
    return Part(name, where=Formula(f"{along} // {depth} > {step} // {depth}"), into=into)


def _beside(made: Schedule, loop: Band, far: tuple[str, ...]) -> Schedule:
    """The schedule with these statements of a loop in one of their own, right behind it."""
    parted = applied(made, [Distribute(loop.name, last=name) for name in reversed(far)])
    around = [part.name for part in loops_around(parted.tree, far[0])]
    return applied(parted, [Fuse(far[0], name, around[1]) for name in far[1:]])


def _shared(made: Schedule, far: str) -> Schedule | None:
    """The schedule whose threads share the strips with a statement behind a block, and the copies."""
    block, strip, *_ = loops_around(made.tree, far)
    copies = [part for part in parts(made.tree) if isinstance(part, Band) and part.name != block.name]
    return attempt(made, [Parallel(band.name) for band in (*copies, strip)])


def _turned(made: Schedule, inner: Band) -> dict[str, tuple[int, ...]]:
    """The arrays of which all innermost loops move one dimension, not the last, and the order that has it last."""
    nest, found = made.nest, paths(made.tree)
    loops = {name: band.name for band in innermost(inner.body) for name in statements(band)}
    dimensions: dict[str, set[tuple[int, ...]]] = {}
    for name, loop in loops.items():
        statement = nest.statement(name)
        iterator = moved_iterator(statement, found[name], loop)
        for access in accesses(statement):
            at = tuple(at for at, index in enumerate(access.indices) if iterator in index.names)
            if at:
                dimensions.setdefault(access.array, set()).add(at)
    turned = {}
    for array, ways in dimensions.items():
        last, way = len(nest.array(array).shape) - 1, next(iter(ways))
        if len(ways) == len(way) == 1 and way != (last,) and nest.array(array).kind == "array":
            turned[array] = (*(at for at in range(last + 1) if at not in way), *way)
    return turned
