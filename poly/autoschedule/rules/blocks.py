"""Block loops: by cache lines, or by any size.

Two loops are blocked by lines if one access is contiguous along the first and another along the second.

    for i:                       for i_tile: for j_tile:
      for j:              ->       for j in the tile:
        B[j, i] = A[i, j]            for i in the tile:      (in vector lanes: writes stay contiguous)
                                       B[j, i] = A[i, j]

Each line that the block touches is then fully used before it leaves the first-level cache. Other blocks, of the loops
of the heaviest chain, are never part of a default schedule: a search finds out whether they pay off.
"""

from __future__ import annotations

from poly.analysis.legality import lane_conflict
from poly.autoschedule.rules.attempt import applied, attempt
from poly.autoschedule.rules.form import Form, new_loops
from poly.autoschedule.rules.shapes import heaviest, innermost
from poly.autoschedule.spaces.grids import middle, sizes, uncut
from poly.autoschedule.spaces.space import Knob, Values
from poly.ir.edits import find_loop, parent
from poly.ir.nest import Nest, Statement
from poly.ir.paths import loops_around, paths
from poly.ir.strides import accesses, extent, is_contiguous_along, moved_iterator
from poly.ir.tree import Band, statements
from poly.machine.description import LINE
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Distribute, Interchange, Step, Tile, Vectorize

DEEPEST = 3
"""The most loops blocked together: with more, the grid is too large to search."""

OUTER, INNER = (4, 256), (32, 4096)
"""The smallest and the largest block of an outer loop, and of an innermost one, which is vectorised."""

SQUARE = (4, 128)
"""The same for both loops of a block of cache lines."""

Ratio = tuple[int, int]


def lines(form: Form) -> Form | None:
    """The two innermost loops blocked by cache lines; None if one of them is contiguous for all accesses.

    The knobs are the iterations of the first block; other blocks have the same size in bytes.
    """
    first = blocked(form.tried)
    added = first.steps[len(form.tried.steps) :]
    tiles = [step for step in added if isinstance(step, Tile)]
    if not tiles:
        return None
    alone = applied(form.tried, added[: added.index(tiles[0])])
    (outer, above), (inner, below) = tiles[0].sizes
    names = form.free(outer), form.free(inner)

    def cut(made: Schedule, values: Values) -> Schedule | None:
        changed = blocked(made, (values[names[0]] or above, above), (values[names[1]] or below, below))
        return changed if changed is not made else None

    def knob(name: str, loop: str, usual: int) -> Knob:
        whole = extent(alone.nest, find_loop(alone.tree, loop))
        return Knob(name, sizes(whole, *SQUARE, (usual,)))

    return form.then(
        cut,
        first,
        (("blocks", "of lines"),),
        (knob(names[0], outer, above), knob(names[1], inner, below)),
        ((names[0], above), (names[1], below)),
        {f"{loop}_tile": name for tile in tiles for (loop, _), name in zip(tile.sizes, names, strict=True)},
    )


def blocks(form: Form) -> Form | None:
    """The loops of the heaviest chain in blocks; None if that is illegal, or fewer than two loops are long enough."""
    chain = heaviest(form.tried)
    loops = chain.bands[-DEEPEST:] if chain else ()
    while len(loops) > 1:
        found = _blocks(form, loops)
        if found is not None:
            return found
        loops = loops[1:]
    return None


def _blocks(form: Form, loops: tuple[Band, ...]) -> Form | None:
    nest, inner = form.tried.nest, loops[-1]
    grid = {band.name: sizes(extent(nest, band), *(INNER if band is inner else OUTER)) for band in loops}
    if not all(grid.values()):
        return None
    usual = tuple((name, middle(values)) for name, values in grid.items())

    def cut(made: Schedule, values: Values) -> Schedule | None:
        return attempt(made, [Tile(tuple((name, size) for name in grid if (size := values[name]) is not None))])

    first = cut(form.tried, dict(usual))
    if first is None:
        return None
    return form.then(
        cut,
        first,
        (("blocks", "of loops"),),
        tuple(Knob(name, uncut(values)) for name, values in grid.items()),
        usual,
        new_loops(form.tried, first, {name: name for name in grid}),
        lambda values: any(values[name] is not None for name in grid if name != loops[0].name),
    )


def blocked(schedule: Schedule, above: Ratio = (1, 1), below: Ratio = (1, 1)) -> Schedule:
    """The schedule with the two innermost loops blocked by lines wherever neither makes all accesses contiguous.

    A block has as many iterations of each loop as fill a line, times `above` for the outer and `below` for the inner.
    A statement that needs this gets loops of its own if others in the same loops don't.
    """
    for inner in innermost(schedule.tree):
        outer = parent(schedule.tree, inner)
        if isinstance(outer, Band):
            ratios = (above, below)
            schedule = _blocked(schedule, outer, inner, ratios) or _apart(schedule, outer, inner, ratios) or schedule
    return schedule


def _apart(schedule: Schedule, outer: Band, inner: Band, ratios: tuple[Ratio, Ratio]) -> Schedule | None:
    """The schedule with loops of its own, and blocked, for one statement of several; None if there is no such one."""
    names = statements(inner) if outer.body is inner else ()
    for name in names if len(names) > 1 else ():
        along, across = _moved(schedule, name, outer, inner)
        if along and across and _conflicting(schedule.nest, schedule.nest.statement(name), along, across):
            made = attempt(schedule, [Distribute(outer.name, last=name)])
            found = made and _alone_blocked(made, name, ratios)
            if found is not None:
                return found
    return None


def _alone_blocked(schedule: Schedule, name: str, ratios: tuple[Ratio, Ratio]) -> Schedule | None:
    *_, outer, inner = loops_around(schedule.tree, name)
    return _blocked(schedule, outer, inner, ratios)


def _moved(schedule: Schedule, name: str, outer: Band, inner: Band) -> tuple[str | None, ...]:
    """The iterators of a statement that the inner loop and the outer one advance."""
    statement, path = schedule.nest.statement(name), paths(schedule.tree)[name]
    return tuple(moved_iterator(statement, path, band.name) for band in (inner, outer))


def _blocked(schedule: Schedule, outer: Band, inner: Band, ratios: tuple[Ratio, Ratio]) -> Schedule | None:
    nest = schedule.nest
    writes_along_outer = False
    elements = LINE
    for name in statements(inner):
        statement = nest.statement(name)
        along, across = _moved(schedule, name, outer, inner)
        if along is None or across is None or not _conflicting(nest, statement, along, across):
            return None
        writes_along_outer |= is_contiguous_along(nest, statement.target, across)
        elements = min(elements, LINE // max(nest.array(a.array).dtype.size for a in accesses(statement)))
    if any((extent(nest, band) or elements) < elements for band in (outer, inner)):
        return None
    above, below = (max(1, elements * size // usual) for size, usual in ratios)
    steps: list[Step] = [Tile(((outer.name, above), (inner.name, below)))]
    if writes_along_outer:
        steps.append(Interchange(outer.name, inner.name))
    made = attempt(schedule, steps)
    last = outer.name if writes_along_outer else inner.name
    if made is None or lane_conflict(nest, made.tree, last) is not None:
        return made
    return attempt(made, [Vectorize(last)])


def _conflicting(nest: Nest, statement: Statement, along: str, across: str) -> bool:
    """Whether one access is contiguous along `along` and varies with `across`, and another the other way round."""

    def favours(one: str, other: str) -> bool:
        return any(
            is_contiguous_along(nest, access, one) and any(other in index.names for index in access.indices)
            for access in accesses(statement)
        )

    return favours(along, across) and favours(across, along)
