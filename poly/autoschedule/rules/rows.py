"""Run several iterations of a loop in each iteration of the vector loop inside it, if they update the same elements.

for i:                                         for i_tile:
  for j:                                         for j:  # vectorize
    s[j] += x[i, j]                    ->          for i in the tile:  # written out
    y[i, j] = s[j]                                   s[j] += x[i, j]
                                                     y[i, j] = s[j]

Each s[j] is then loaded and stored once for all rows of the tile (unroll and jam: Callahan, Cocke, Kennedy, "Estimating
interlock and improving balance for pipelined architectures", 1988). A tile has as many rows as prefetchers can follow.

Products of a matrix and vectors do the same in loops that are no microkernel's, as others need the same row:

for i:                                         for i_tile:
  for j: t[i] += A[i, j] * x[j]                  for j:  # vectorize
  for j: y[j] += A[i, j] * t[i]       ->           for i in the tile: t[i] += A[i, j] * x[j]  # written out
                                                 for j:  # vectorize
                                                   for i in the tile: y[j] += A[i, j] * t[i]  # written out

Contractions of matrices have register tiles of their own.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import islpy as isl

from codegen.ir.expr import Load
from codegen.ir.integer import Affine, Int, slopes
from poly.analysis.contraction import formed
from poly.autoschedule.rules.attempt import applied, attempt
from poly.autoschedule.rules.form import Form
from poly.autoschedule.rules.fusion import STREAMS
from poly.ir.edits import find_loop, parent
from poly.ir.instances import Instances
from poly.ir.nest import Nest, Statement
from poly.ir.paths import loops_around, paths
from poly.ir.strides import SELDOM, accesses, extent, is_contiguous, moved_iterator
from poly.ir.tree import Band, bands, only_loops, parts, statements
from poly.machine.measured import USUAL_ROWS
from poly.model.core import Caches
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Distribute, Interchange, Order, Split, Step, Unroll, Vectorize


def with_rows(schedule: Schedule, inner: Band) -> Schedule | None:
    """The schedule with several rows in each iteration of an innermost loop, in lanes; None if that gains nothing.

    `inner` goes from element to element.
    """
    outer, nest = parent(schedule.tree, inner), schedule.nest
    if not isinstance(outer, Band) or outer.parallel or outer.unroll > 1:
        return None
    whole, streams = extent(nest, outer), _streams(schedule, outer, inner)
    if whole is None or whole < 2 or not 0 < 2 * streams <= STREAMS:
        return None
    rows = STREAMS // streams
    size = max(2, ceil(whole / ceil(whole / rows)))
    cut = applied(schedule, [Split(((outer.name, size),))])
    tile = parent(cut.tree, find_loop(cut.tree, outer.name))
    if not isinstance(tile, Band):
        return None
    order = Order((tile.name, inner.name, outer.name))
    return attempt(cut, [order, Unroll(((outer.name, size),)), Vectorize(inner.name)])


def _streams(schedule: Schedule, outer: Band, inner: Band) -> int:
    """The accesses of the inner loop that go along rows; 0 if no element is written in all of these."""
    nest, found, again, moving = schedule.nest, paths(schedule.tree), False, set[Load]()
    for name in statements(inner):
        statement = nest.statement(name)
        along, across = (moved_iterator(statement, found[name], band.name) for band in (inner, outer))
        if along is None or across is None or along not in _names(statement.target) or _is_of_matrices(nest, statement):
            return 0
        again |= _is_updated(nest, statement, along, across)
        moving |= {access for access in accesses(statement) if {along, across} <= _names(access)}
    return len(moving) if again else 0


def _is_of_matrices(nest: Nest, statement: Statement) -> bool:
    found = formed(nest, statement)
    return found is not None and bool(found.rows and found.columns)


def _is_updated(nest: Nest, statement: Statement, along: str, across: str) -> bool:
    """Whether a statement reads and writes an element that moves along the inner loop alone."""
    names = _names(statement.target)
    reads = statement.op != "=" or statement.target in statement.reads
    return reads and along in names and across not in names and bool(nest.array(statement.target.array).shape)


def in_tiles_of_rows(form: Form, caches: Caches, rows: int) -> Form | None:
    """The form with products of a matrix and vectors in tiles of rows; None if it has none.

    Of matrices that no cache holds, a tile has at most `rows` rows, of all together. In a cache few are as fast,
    and sums of more rows than registers hold are slower. Half of the second level holds a tile.
    """

    def tiled(made: Schedule) -> Schedule:
        for outer in bands(made.tree):
            made = _in_tiles(made, outer, caches, rows) or made
        return made

    first = tiled(form.tried)
    if first is form.tried:
        return None
    return form.then(lambda made, values: tiled(made), first, (("rows", "in tiles"),))


def _in_tiles(made: Schedule, outer: Band, caches: Caches, rows: int) -> Schedule | None:
    """The schedule with the loops in a loop over rows in tiles of these; None if that is illegal, or gains nothing."""
    nest, inner, whole = made.nest, only_loops(parts(outer.body)), extent(made.nest, outer)
    if whole is None or outer.parallel or outer.unroll > 1 or not inner:
        return None
    streams, row = set[str](), 0
    for loop in inner:
        arrays = _rows(made, outer, loop)
        length = extent(nest, loop)
        if not arrays or length is None:
            return None
        streams |= arrays
        row += sum(length * nest.array(array).dtype.size for array in arrays)
    at_once = rows if whole * row > max(caches.l2, caches.l3) else USUAL_ROWS
    most = min(at_once // len(streams), caches.l2 // 2 // row)
    tiles = (_tiled(made, outer, inner, size) for size in range(most, 1, -1) if whole % size == 0)
    return next(filter(None, tiles), None)


def _rows(made: Schedule, outer: Band, inner: Band) -> frozenset[str]:
    """The arrays of which an inner loop goes through a row; none if it is no product of their rows with vectors."""
    nest, found, arrays = made.nest, paths(made.tree), set[str]()
    if bands(inner.body) or inner.vectorize or inner.unroll > 1:
        return frozenset()
    for name in statements(inner):
        statement = _in_a_block(nest.statement(name))
        along, across = (moved_iterator(statement, found[name], band.name) for band in (inner, outer))
        if along is None or across is None or not _is_of_vectors(nest, statement, along):
            return frozenset()
        arrays |= {access.array for access in accesses(statement) if {along, across} <= _names(access)}
    return frozenset(arrays)


def _is_of_vectors(nest: Nest, statement: Statement, along: str) -> bool:
    """Whether a statement is a product of a matrix and a vector of one type, with elements that are near `along`."""
    found = formed(nest, statement)
    if found is None or _is_of_matrices(nest, statement) or not is_contiguous(nest, statement, along):
        return False
    types = {nest.array(access.array).dtype for access in (found.output, found.left, found.right)}
    return len(types) == 1 and not types.pop().is_stored


def _in_a_block(statement: Statement) -> Statement:
    """The statement as it is in a block of rows: it adds to elements of the block's own, as to `y[i // 512, j]`."""

    def stays(index: Int) -> bool:
        return not index.is_affine and all(abs(slope) * SELDOM < 1 for slope in slopes(index).values())

    target = statement.target
    indices = tuple(Affine.of(0) if stays(index) else index for index in target.indices)
    return replace(statement, target=replace(target, indices=indices))


def _names(access: Load) -> frozenset[str]:
    return frozenset[str]().union(*(index.names for index in access.indices))


def _tiled(made: Schedule, outer: Band, inner: tuple[Band, ...], size: int) -> Schedule | None:
    """The schedule with these loops in tiles of rows, in lanes; None if that is illegal, or tiles are not all whole."""
    cut: list[Step] = [Split(((outer.name, size),))]
    if len(parts(outer.body)) > 1:
        cut.append(Distribute(outer.name))
    apart = applied(made, cut)
    for loop in inner:
        row = loops_around(apart.tree, statements(loop)[0])[-2].name
        apart = applied(apart, [Interchange(row, loop.name), Unroll(((row, size),)), Vectorize(loop.name)])
    tiled = attempt(made, apart.steps[len(made.steps) :])
    whole = tiled and all(_is_whole(tiled, name, size) for loop in inner for name in statements(loop))
    return tiled if whole else None


def _is_whole(made: Schedule, name: str, size: int) -> bool:
    """Whether the innermost loop around a statement always has so many iterations."""
    *around, row = ((band.name, band.function(name)) for band in loops_around(made.tree, name))
    count = Instances(name, made.nest.statement(name).domain, tuple(around)).count(row[1])
    return bool(count.is_equal(count.scale_val(isl.Val(0)).add_constant_val(isl.Val(size))))
