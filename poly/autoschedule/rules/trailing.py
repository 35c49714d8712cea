"""Register tiles for the trailing updates of a blocked factorisation (rules/factorisations.py).

Where such an update is a triangle, the squares along its diagonal stay loops. Those above and below a diagonal run in
one loop over strips of columns.
"""

from __future__ import annotations

from contextlib import suppress

from microkernels.kernel import OuterProduct
from poly.analysis.contraction import Contraction, formed
from poly.autoschedule.rules.attempt import attempt
from poly.errors import ScheduleError
from poly.ir.instances import coordinates
from poly.ir.paths import loops_around, names_around, paths
from poly.ir.strides import is_contiguous_along
from poly.ir.tree import Band, Micro, statements, walk
from poly.schedules.makeable import check_makeable
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Distribute, Fuse, Order, Pack, Part, Reverse, Split, Step, Tensorize
from poly.schedules.steps.formulas import Formula

ABREAST = 8
"""Tiles of columns that a tile of rows passes one after the other: enough to read the rows less often from far away,
and few, so that the copy of these columns stays in the second level."""


def in_tiles(made: Schedule, name: str, size: int, kernel: OuterProduct) -> Schedule | None:
    """The schedule with a microkernel for trailing updates by a block of so many steps.

    It is for all, for those off the diagonal of a triangle, or for results that all steps of the block update.
    """
    found = formed(made.nest, made.nest.statement(name))
    if found is None or not (found.rows and found.columns):
        return None
    forward = _forward(made, name)
    tiled = forward and _tiled(forward, found, kernel)
    if forward is None or tiled is not None:
        return tiled
    (row, *_), (column, *_), (step, *_) = found.rows, found.columns, found.reduce
    for one, other, width in ((row, column, kernel.rows), (column, step, size), (row, step, size)):
        apart = _without_squares(forward, name, f"{one} // {width} == {other} // {width}")
        tiled = apart and _tiled(apart, found, kernel)
        if tiled is not None:
            return tiled
    return None


def _forward(made: Schedule, name: str) -> Schedule | None:
    """The schedule in which no loop around a statement goes down one of its iterators; None if that is illegal."""
    statement = made.nest.statement(name)
    values = coordinates(statement.domain, statement.iterators).values()
    around = loops_around(made.tree, name)
    down = [b.name for b in around if any(b.function(name).neg().plain_is_equal(value) for value in values)]
    return attempt(made, map(Reverse, down)) if down else made


def _without_squares(made: Schedule, name: str, square: str) -> Schedule | None:
    """The schedule in which the instances in squares along a diagonal have loops of their own; None if illegal."""
    diagonal = f"{name}_diagonal"
    cut = parted(made, name, square, diagonal)
    if cut is None:
        return None
    around = loops_around(cut.tree, name)
    shared = next((band.name for band in around if set(statements(band)) == {name, diagonal}), None)
    return attempt(cut, [Distribute(shared, last=diagonal)]) if shared else None


def _tiled(made: Schedule, found: Contraction, kernel: OuterProduct) -> Schedule | None:
    """The schedule with register tiles for a contraction, with as many copies of its operands as fit the loops.

    Rows of the left one that are contiguous along the sum are read in place: a copy would be of all rows at once. A
    tile of rows passes several tiles of columns while it is near.
    """
    row, column, reduce = _roles(made, found)
    strips = Split(((column, ABREAST * kernel.columns),))
    cut = attempt(made, [strips, Split(((row, kernel.rows), (column, kernel.columns)))])
    if cut is None:
        return None
    name, around = found.statement, names_around(cut.tree, found.statement)
    row_tile, column_tile = (around[around.index(loop) - 1] for loop in (row, column))
    strip = around[around.index(column_tile) - 1]
    order = Order((strip, row_tile, column_tile, row, column, reduce))
    left = Pack(found.left.array, statement=name, role="left")
    right = Pack(found.right.array, at=strip, statement=name, role="right")
    in_place = is_contiguous_along(made.nest, found.left, found.reduce[0])
    copies = ((right,), ()) if in_place else ((left, right), (left,), ())
    tiled = (_made(cut, [order, *chosen, Tensorize(kernel.name, name)]) for chosen in copies)
    return next((one for one in tiled if one is not None), None)


def in_common_strips(made: Schedule, first: str, second: str) -> Schedule | None:
    """The schedule with two trailing updates in one loop over strips of columns; None if that is illegal.

    Such are the updates above and below a diagonal: together, strips have equal parts for threads, which start once.
    """
    loops = tile_loops(made)
    return attempt(made, [Fuse(first, second, at=loops[first][0])]) if {first, second} <= loops.keys() else None


def tile_loops(made: Schedule) -> dict[str, list[str]]:
    """The loops over strips, tiles of rows and tiles of columns of each statement with a microkernel."""
    micros = (node.statement for node in walk(made.tree) if isinstance(node, Micro))
    return {name: names_around(made.tree, name)[-6:-3] for name in micros}


def _made(made: Schedule, steps: list[Step]) -> Schedule | None:
    """The schedule with steps if code can be generated for it; otherwise None."""
    with suppress(ScheduleError):
        found = attempt(made, steps)
        if found is not None:
            check_makeable(found.nest, found.tree)
        return found
    return None


def _roles(made: Schedule, found: Contraction) -> tuple[str, str, str]:
    """The loops over the rows, the columns and the reduction of an update."""
    statement = made.nest.statement(found.statement)
    values = coordinates(statement.domain, statement.iterators)

    def loop(iterator: str) -> str:
        path = paths(made.tree)[statement.name]
        own = (b for b in path if isinstance(b, Band) and b.function(statement.name).plain_is_equal(values[iterator]))
        return next(own).name

    return loop(found.rows[0]), loop(found.columns[0]), loop(found.reduce[0])


def parted(made: Schedule, statement: str, condition: str, into: str) -> Schedule | None:
    """The schedule with a statement parted; None if there are no two parts."""
    try:
        return made.apply([Part(statement, where=Formula(condition), into=into)])
    except ScheduleError:
        return None
