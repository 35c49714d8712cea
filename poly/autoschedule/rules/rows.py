"""Run several iterations of a loop in each iteration of the vector loop inside it, if they update the same elements.

for i:                                         for i_tile:
  for j:                                         for j:  # vectorize
    s[j] += x[i, j]                    ->          for i in the tile:  # written out
    y[i, j] = s[j]                                   s[j] += x[i, j]
                                                     y[i, j] = s[j]

Each s[j] is then loaded and stored once for all rows of the tile (unroll and jam: Callahan, Cocke, Kennedy, "Estimating
interlock and improving balance for pipelined architectures", 1988). A tile has as many rows as prefetchers can follow.
Contractions have register tiles of their own.
"""

from __future__ import annotations

from math import ceil

from poly.analysis.contraction import formed
from poly.autoschedule.rules.attempt import applied, attempt
from poly.autoschedule.rules.fusion import STREAMS
from poly.ir.edits import find_loop, parent
from poly.ir.nest import Nest, Statement
from poly.ir.paths import paths
from poly.ir.strides import accesses, extent, moved_iterator
from poly.ir.tree import Band, statements
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Order, Split, Unroll, Vectorize


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
    """The accesses of the inner loop that move with the outer one; 0 if no element is written in all of its rows."""
    nest, found, again, moving = schedule.nest, paths(schedule.tree), False, set()
    for name in statements(inner):
        statement = nest.statement(name)
        along, across = (moved_iterator(statement, found[name], band.name) for band in (inner, outer))
        if along is None or across is None or formed(nest, statement) is not None:
            return 0
        again |= _is_updated(nest, statement, along, across)
        moving |= {access for access in accesses(statement) if any(across in index.names for index in access.indices)}
    return len(moving) if again else 0


def _is_updated(nest: Nest, statement: Statement, along: str, across: str) -> bool:
    """Whether a statement reads and writes an element that moves along the inner loop alone."""
    names = {name for index in statement.target.indices for name in index.names}
    reads = statement.op != "=" or statement.target in statement.reads
    return reads and along in names and across not in names and bool(nest.array(statement.target.array).shape)
