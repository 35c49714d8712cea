"""Lanes along loops around others, which all lanes go through together.

for x:                                for x:  # vectorize
  s = 0                                 s = 0
  for r: s += g[r]*img[x + r]   ->      for r: s += g[r]*img[x + r]
  y[x] = s                              y[x] = s

What an iteration accumulates stays in registers over the inner loops, and nothing is combined at the end: the form for
long loops and for short ones, where lanes along r would be worth it for long ones alone.
"""

from __future__ import annotations

from math import prod

from codegen.ir.expr import PERIODIC, FunctionCall
from codegen.ir.expr import walk as expressions
from microkernels.dtypes import i32
from microkernels.isa import ISA
from poly.autoschedule.rules.attempt import attempt
from poly.autoschedule.rules.lanes import short_loops
from poly.ir.nest import Nest, Statement
from poly.ir.paths import paths
from poly.ir.strides import extent, is_contiguous, moved_iterator
from poly.ir.tree import Band, Leaf, Sequence, bands, statements, walk
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Vectorize

FEW = 64
"""Inner loops of so few iterations, all together, are left to other rules, which write them out or jam rows."""
BY_LIBRARY = PERIODIC | {"pow"}
"""The functions that compilers have no vectors of."""


def together(schedule: Schedule, isa: ISA) -> Schedule | None:
    """The schedule with lanes along the innermost loops around others where these suit them; None if there are none."""
    made = schedule
    for band in reversed(list(bands(schedule.tree))):
        if _suits(made, band, isa):
            made = attempt(made, [Vectorize(band.name)]) or made
    return None if made is schedule else made


def _suits(made: Schedule, band: Band, isa: ISA) -> bool:
    """Whether a loop is around others, with all that it moves going from element to element."""
    inner, whole = list(bands(band.body)), extent(made.nest, band)
    if not inner or band.unroll > 1 or any(one.vectorize or one.parallel for one in inner):
        return False
    known = [count for one in inner if (count := extent(made.nest, one)) is not None]
    if len(known) == len(inner) and prod(known) <= FEW:
        return False
    if short_loops(made.nest, band.body) or (whole is not None and whole < isa.lanes(i32)):
        return False
    if not all(isinstance(part, Leaf | Band | Sequence) for part in walk(band.body)):
        return False
    found, nest = paths(made.tree), made.nest
    moved = {name: moved_iterator(nest.statement(name), found[name], band.name) for name in statements(band)}
    along = all(_is_along(nest, name, iterator) for name, iterator in moved.items())
    needs = any(_needs_others(nest, nest.statement(name), band) for name in moved)
    return along and not needs and any(_reuses(nest.statement(name), iterator) for name, iterator in moved.items())


def _reuses(statement: Statement, iterator: str | None) -> bool:
    """Whether a statement in inner loops reads what it has read before, and not each element of some columns once."""
    inside = statement.iterators[statement.iterators.index(iterator) + 1 :] if iterator else ()
    reads = [load for load in statement.reads if load.array != statement.target.array and load.indices]
    apart = ({frozenset(index.names) for index in load.indices} for load in reads)
    return bool(inside) and any(
        not (frozenset([iterator]) in names and any(not one.isdisjoint(inside) for one in names)) for names in apart
    )


def _needs_others(nest: Nest, statement: Statement, band: Band) -> bool:
    """Whether a statement reads other elements than its own of what the loop writes, as solves and recurrences do."""
    written = {nest.statement(name).target for name in statements(band)}
    arrays = {target.array for target in written} - nest.temporaries
    return any(load.array in arrays and load not in written for load in statement.reads)


def _is_along(nest: Nest, name: str, iterator: str | None) -> bool:
    """Whether a statement's accesses go from element to element, or stay, and its functions have vectors."""
    statement = nest.statement(name)
    called = {node.function for node in expressions(statement.expr) if isinstance(node, FunctionCall)}
    return iterator is not None and called.isdisjoint(BY_LIBRARY) and is_contiguous(nest, statement, iterator)
