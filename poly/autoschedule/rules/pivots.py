"""Let sums go on as soon as their operands are finished, and neighbouring rows of an elimination run side by side.

for j:                              for pivot:
  S[j] = f(S[j])                      S[pivot] = f(S[pivot])
  for k < j:                 ->       for j > pivot:
    S[j] += S[k] * A[k, j]              S[j] += S[pivot] * A[pivot, j]

The loops on the left look back at all that is finished, those on the right ahead at all that is not: the left-looking
and the right-looking form of an elimination (Dongarra, Gustavson and Karp, "Implementing linear algebra algorithms for
dense matrices on a vector pipeline machine", SIAM Review 26(1), 1984). A loop over pivots is put around statements that
have none in common; in it, a sum takes one step for all elements that need it.

for i:                                       for i_tile:
  for j < i:                                   for pivot:
    for k < j:                                   for i in the tile:
      A[i, j] -= A[i, k] * A[k, j]    ->           A[i, pivot] /= A[pivot, pivot]
    A[i, j] /= A[j, j]                             for j > pivot:
                                                     A[i, j] -= A[i, pivot] * A[pivot, j]

In a row, each division waits for the updates by the one before. Rows of a tile have the same pivots: what one waits for
overlaps with the others. Where the sums are contiguous along what they add, each looks back when its pivot comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice, product
from math import inf

import islpy as isl

from poly.analysis.contraction import Contraction
from poly.analysis.dependences import dependences
from poly.analysis.legality import lane_conflict
from poly.autoschedule.rules.attempt import applied, attempt
from poly.errors import ScheduleError
from poly.ir.edits import find_loop, fresh
from poly.ir.instances import coordinates
from poly.ir.nest import Nest
from poly.ir.paths import loops_around, paths
from poly.ir.strides import moved_iterator, strided_cost
from poly.ir.tree import Band, Leaf, bands, only_loops, parts, statements
from poly.ir.tree import Sequence as Parts
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Distribute, Enclose, Interchange, Parallel, Step
from poly.schedules.steps.formulas import Formula, value_of

MOST = 64
"""The ways to count the iterations of statements in common that are looked at."""

TRIED = 4
"""Of those that keep the order of all dependences, the most that are tried."""

BELOW = "below"
"""The loop that has the rows behind a block's own apart."""

FAR = 1 << 20
"""More blocks than any array has."""

Counts = Mapping[str, str]
"""For each of some statements, the formula that counts a loop around all of them: `k`, `-k`, or a number."""


@dataclass(frozen=True)
class Direction:
    """The way in which an elimination goes: up or down its pivots, and a number that comes before all of them."""

    sign: str
    first: str

    def counts(self, iterators: Iterable[str]) -> list[str]:
        """What may count for statements with these iterators."""
        return [self.sign + name for name in iterators]


def counting(nest: Nest, choices: Mapping[str, Sequence[str]]) -> Iterator[dict[str, str]]:
    """The formulas, one of each statement's choices, for which each dependence goes to the same or a later value."""
    binding = [d for d in dependences(nest).binding if d.source in choices and d.sink in choices]

    @cache
    def value(name: str, text: str) -> isl.PwAff:
        return value_of(nest, nest.statement(name), text)

    @cache
    def is_kept(number: int, source: str, sink: str) -> bool:
        one = binding[number]
        back = value(one.source, source).gt_map(value(one.sink, sink))
        return bool(one.relation.intersect(back).is_empty())

    for chosen in islice(product(*choices.values()), MOST):
        counts = dict(zip(choices, chosen, strict=True))
        if all(is_kept(number, counts[d.source], counts[d.sink]) for number, d in enumerate(binding)):
            yield counts


def side_by_side(
    made: Schedule,
    updates: Iterable[Contraction],
    direction: Direction,
    block: str,
    rows: int,
    blocks: Counts | None = None,
) -> Schedule | None:
    """The schedule in which so many rows of a block run side by side; None if no pivots keep all dependences.

    `updates` are contractions that read the array they write, in the loop `block`. If `blocks` count the blocks of each
    statement from 0, the rows behind a block's own are apart in a loop `BELOW`, and need nothing of each other.
    """
    known = {update.statement: update for update in updates}
    inside = (statements(part) for part in parts(find_loop(made.tree, block).body))
    names = next((found for found in inside if known.keys() <= set(found)), ())
    nest = made.nest
    lines, pivots = dict[str, Sequence[str]](), dict[str, Sequence[str]]()
    for name in names:
        iterators = nest.statement(name).iterators
        ways = _ways(nest, known[name]) if name in known else (iterators, iterators)
        rest = [] if name in known else [direction.first]
        lines[name], pivots[name] = ([*direction.counts(way), *rest] for way in ways)
    for line in islice(counting(nest, lines), TRIED) if names else ():
        tiles = {name: f"{text} // {rows}" for name, text in line.items()}
        below = (
            {name: f"({text} - {blocks[name]} + {FAR - 1}) // {FAR}" for name, text in tiles.items()} if blocks else {}
        )
        for pivot in islice(counting(nest, pivots), TRIED):
            found = _beside(made, (below, tiles, pivot), block) if pivot != line else None
            if found is not None:
                return found
    return None


def _ways(nest: Nest, update: Contraction) -> tuple[Sequence[str], Sequence[str]]:
    """The iterators that may count the rows of an update and its pivots, the best first.

    A pivot is a step of the sum if the accesses are cheaper along the results than along the steps, else a result.
    """
    statement = nest.statement(update.statement)
    results = [name for name in statement.iterators if any(name in index.names for index in update.output.indices)]
    costs = {name: strided_cost(nest, statement, name) for name in statement.iterators}
    along, step = min(results, key=lambda name: costs[name]), update.reduce[0]
    lines = [name for name in results if name != along] or results
    return lines, (step, along) if costs[along] < costs[step] else (along, step)


def _beside(made: Schedule, counts: tuple[Counts, Counts, Counts], block: str) -> Schedule | None:
    """The schedule with loops over tiles of rows and, inside, over pivots; None if that is illegal.

    `counts` are those of the loop that has rows below the block apart, if any, of the tiles, and of the pivots.
    """
    below, tiles, pivots = counts
    tile, around = fresh(made.tree, "rows"), fresh(made.tree, BELOW) if below else block
    try:
        apart = [_enclosing(around, below, block)] if below else []
        cut = applied(made, [*apart, _enclosing(tile, tiles, around)])
        ahead = _by_pivots(cut, pivots, tile)
    except ScheduleError:
        return None
    shared = [Parallel(tile)] if below else []
    return attempt(made, [*ahead.steps[len(made.steps) :], *shared])


def _by_pivots(schedule: Schedule, pivots: Counts, at: str | None) -> Schedule:
    """The schedule with a loop over pivots in which sums take one step for all their results; legality is not checked.

    Raises:
        ScheduleError: the statements are not all that is below some loops.
    """
    loop = fresh(schedule.tree, "pivot")
    schedule = applied(schedule, [_enclosing(loop, pivots, at)])
    for name, pivot in pivots.items():
        around = loops_around(schedule.tree, name)
        lane, step = around[-2:]
        if lane.name == loop or not _is_step(schedule, name, step, pivot):
            continue
        apart: list[Step] = [Distribute(lane.name, last=name)] if statements(lane) != (name,) else []
        schedule = applied(schedule, apart)
        lane, step = loops_around(schedule.tree, name)[-2:]
        schedule = applied(schedule, [Interchange(lane.name, step.name)])
    return schedule


def _enclosing(loop: str, counts: Counts, at: str | None) -> Step:
    return Enclose(loop, tuple((name, Formula(text)) for name, text in counts.items()), at)


def _is_step(schedule: Schedule, name: str, loop: Band, pivot: str) -> bool:
    """Whether a loop takes the steps of a sum that a pivot counts."""
    statement, iterator = schedule.nest.statement(name), pivot.removeprefix("-")
    if iterator not in statement.iterators or any(iterator in index.names for index in statement.target.indices):
        return False
    return bool(loop.function(name).plain_is_equal(coordinates(statement.domain, statement.iterators)[iterator]))


def right_looking(schedule: Schedule) -> Schedule:
    """The schedule with sums that look ahead wherever that is legal, makes accesses cheaper and gains lanes."""
    for band in bands(schedule.tree):
        sums = _sums(band)
        if sums and all(_cost(schedule, one, band.name) < _cost(schedule, one, one.name) for one in sums):
            schedule = _ahead(schedule, band, sums) or schedule
    return schedule


def _sums(band: Band) -> tuple[Band, ...]:
    """The loops in a loop's body if that is a sequence of statements and of loops with one statement each."""
    inside = parts(band.body) if isinstance(band.body, Parts) else ()
    loops = only_loops(inside)
    plain = all(isinstance(loop.body, Leaf) for loop in loops)
    others = [part for part in inside if not isinstance(part, Band)]
    return loops if plain and others and all(isinstance(part, Leaf) for part in others) else ()


def _cost(schedule: Schedule, band: Band, along: str) -> float:
    """What the accesses below a loop cost as the loop `along` advances; infinite if its iterations are not theirs."""
    nest, found, total = schedule.nest, paths(schedule.tree), 0
    for name in statements(band):
        iterator = moved_iterator(nest.statement(name), found[name], along)
        if iterator is None:
            return inf
        total += strided_cost(nest, nest.statement(name), iterator)
    return total


def _ahead(schedule: Schedule, band: Band, sums: tuple[Band, ...]) -> Schedule | None:
    """The schedule in which sums go on with each finished iteration of a loop; None if that is illegal or no use."""
    nest, found = schedule.nest, paths(schedule.tree)
    steps = {name: one.name for one in sums for name in statements(one)}
    pivots: dict[str, str] = {}
    for name in statements(band):
        iterator = moved_iterator(nest.statement(name), found[name], steps.get(name, band.name))
        if iterator is None:
            return None
        pivots[name] = iterator
    outer = next((one.name for one in bands(schedule.tree) if any(part is band for part in parts(one.body))), None)
    try:
        made = _by_pivots(schedule, pivots, outer)
    except ScheduleError:
        return None
    looking = attempt(schedule, made.steps[len(schedule.steps) :])
    lanes = [loops_around(made.tree, name)[-1].name for name in steps]
    if looking is None or any(lane_conflict(nest, looking.tree, lane) is not None for lane in lanes):
        return None
    return looking
