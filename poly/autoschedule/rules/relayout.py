"""Columns in strips for the nearest cache, with the arrays kept so that columns are contiguous.

for k:                                       A, Q are copied so that their columns are contiguous
  r[k] = f(A[:, k]); Q[:, k] = …             for k_tile: for j_tile: for k in k_tile, up to the strip's end:
  for j > k:                          ->       r[k] = f(A[k, :]); Q[k, :] = …           if k is in the strip
    for i: s[k, j] += Q[i, k] * A[i, j]        for j in the strip behind k:
    for i: A[i, j] -= Q[i, k] * s[k, j]          for i: s[k, j] += …; for i: A[j, i] -= …

As rules/strips.py, where every step goes over its columns twice, so that no product of blocks does its work: a strip of
few columns stays in the first level, and the columns that a block of steps reads in the second. The columns of a strip
share what they load: in the steps before it, sums over columns run in the kernel of a matrix-vector product, updates
in one loop over all columns. For threads, the strips behind a block of steps are a loop of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Sequence as Several
from contextlib import suppress

from codegen.names import fresh as fresh_name
from microkernels.isa import ISA
from microkernels.kernel import named
from poly.analysis.roles import enclosing_roles
from poly.autoschedule.rules.attempt import applied, attempt, with_free_name
from poly.autoschedule.rules.matrix_vector import streamed
from poly.autoschedule.rules.pivots import counting
from poly.autoschedule.rules.shapes import innermost
from poly.autoschedule.rules.strips import added_bytes, enclosed, moved, power
from poly.errors import ScheduleError
from poly.ir.instances import box_extents
from poly.ir.nest import Nest
from poly.ir.paths import loops_around, names_around, paths
from poly.ir.strides import accesses, moved_iterator
from poly.ir.tree import Band, Sequence, only_loops, parts, statements
from poly.model.core import Target
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import (
    Distribute,
    Enclose,
    Fuse,
    Interchange,
    Parallel,
    Part,
    ReorderStorage,
    Step,
    Tensorize,
    Unroll,
    Vectorize,
)
from poly.schedules.steps.formulas import Formula

Names = tuple[str, ...]
"""Statements that run in one loop."""


def relaid(nest: Nest, target: Target) -> Schedule | None:
    """The schedule with such strips; None if there are none, or for unknown sizes."""
    if nest.sizes or any(s.domain.is_empty() for s in nest.statements):
        return None
    made = schedule(nest)
    for outer in parts(made.tree):
        if isinstance(outer, Band) and isinstance(outer.body, Sequence):
            for inner in only_loops(parts(outer.body)):
                found = _cut(made, outer, inner, target)
                if found is not None:
                    return found
    return None


def _cut(made: Schedule, outer: Band, inner: Band, target: Target) -> Schedule | None:
    """The schedule with an inner loop in strips, and the outer one in blocks; None if that is illegal, or no use."""
    nest, inside, caches = made.nest, statements(inner), target.caches
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
    sizes = (size, depth) if target.threads > 1 else (size,)
    apart, groups = _later(nest, inside, steps, strips, sizes)
    blocks = ((inner, counts, size), (outer, steps, depth))
    with suppress(ScheduleError):
        of = {part.near: name for part, name in zip(apart, inside * len(groups), strict=True)}
        cut = [enclosed(made, loop, by | {part: by[name] for part, name in of.items()}, n) for loop, by, n in blocks]
        found = _in_groups(applied(made, [*kept, *apart]), inner, groups, cut, size, target)
        if found is not None:
            return found
    return attempt(made, [*kept, *(enclosed(made, *one) for one in blocks)])


def _in_groups(
    made: Schedule, inner: Band, groups: Several[Names], cut: Several[Enclose], size: int, target: Target
) -> Schedule | None:
    """The schedule with each group of statements in a loop of its own in the blocks `cut`; None if that is illegal.

    Raises:
        ScheduleError: a step does not fit the loops.
    """
    for group in reversed(groups):
        made = _beside(made, inner, group)
    made = applied(made, cut)
    if target.threads > 1:
        shared = _shared(applied(made, [Distribute(cut[0].loop, behind=groups[0][-1])]), groups[-1][0])
        if shared is None:
            return None
        made = shared
    for group in groups:
        made = _jammed(made, group, size, target.isa) or made
    return attempt(made, [])


def _later(
    nest: Nest, inside: Names, steps: Mapping[str, str], strips: Mapping[str, str], sizes: Iterable[int]
) -> tuple[list[Part], list[Names]]:
    """The parts of statements in later blocks than their step: of the first size, of these those of the second, …"""
    apart: list[Part] = []
    groups = [inside]
    taken = frozenset(s.name for s in nest.statements)
    for block in sizes:
        for name, part in zip(inside, groups[-1], strict=True):
            into = fresh_name(f"{name}_far", taken | {one.near for one in apart})
            where = Formula(f"{strips[name]} // {block} > {steps[name]} // {block}")
            apart.append(Part(part, where=where, into=into))
        groups.append(tuple(one.near for one in apart[-len(inside) :]))
    return apart, groups[1:]


def _beside(made: Schedule, loop: Band, far: tuple[str, ...]) -> Schedule:
    """The schedule with these statements of a loop in one of their own, right behind it."""
    parted = applied(made, [Distribute(loop.name, last=name) for name in reversed(far)])
    around = names_around(parted.tree, far[0])
    return applied(parted, [Fuse(far[0], name, around[1]) for name in far[1:]])


def _jammed(made: Schedule, far: tuple[str, ...], size: int, isa: ISA) -> Schedule | None:
    """The schedule in which a strip's columns share what they load, statement by statement; None if that is illegal.

    Sums over a column run in a kernel, and what else goes through a column in lanes.
    """
    with suppress(ScheduleError):
        at = sum(set(far) <= {*statements(band)} for band in loops_around(made.tree, far[0])) - 1
        shared = loops_around(made.tree, far[0])[at].name
        made = applied(made, [Distribute(shared, last=name) for name in reversed(far[1:])])
        for name in far:
            made = applied(made, _sharing(made, name, at, size, isa))
        return attempt(made, [])
    return None


def _sharing(made: Schedule, name: str, at: int, size: int, isa: ISA) -> list[Step]:
    """The steps by which the columns of a strip, the loop at `at` around a statement, share what they load."""
    strip, *inner = loops_around(made.tree, name)[at:]
    if not inner:
        return []
    r = enclosing_roles(made.nest, made.nest.statement(name))
    column, own = moved_iterator(made.nest.statement(name), paths(made.tree)[name], inner[-1].name), strip.name
    way = next((one for one in (streamed(r) if r else ()) if one.reduced.iterator == column), None)
    if way is not None:
        return [Tensorize(named(way.family, isa), name)]
    last = inner[-1].name
    return [*(Interchange(own, band.name) for band in inner), Unroll(((own, size),)), Vectorize(last)]


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
