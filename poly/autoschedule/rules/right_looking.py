"""Let sums go on as soon as their operands are finished, where these are contiguous along what follows.

for j:                              for c:
  S[j] = f(S[j])                      S[c] = f(S[c])
  for k < j:                 ->       for j > c:
    S[j] += S[k] * A[k, j]              S[j] += S[c] * A[c, j]

The loops on the left look back at all that is finished, those on the right ahead at all that is not: the left-looking
and the right-looking form of an elimination (Dongarra, Gustavson and Karp, "Implementing linear algebra algorithms for
dense matrices on a vector pipeline machine", SIAM Review 26(1), 1984).
"""

from __future__ import annotations

from math import inf

from poly.analysis.legality import lane_conflict
from poly.autoschedule.rules.attempt import applied, attempt
from poly.autoschedule.rules.shapes import parts
from poly.errors import ScheduleError
from poly.ir.edits import fresh, parent
from poly.ir.paths import paths
from poly.ir.strides import moved_iterator, strided_cost
from poly.ir.tree import Band, Leaf, Sequence, bands, statements
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Distribute, Enclose, Interchange, Step
from poly.schedules.steps.formulas import Formula


def right_looking(schedule: Schedule) -> Schedule:
    """The schedule with sums that look ahead wherever that is legal, makes accesses cheaper and gains lanes."""
    for band in bands(schedule.tree):
        sums = _sums(band)
        if sums and all(_cost(schedule, one, band.name) < _cost(schedule, one, one.name) for one in sums):
            schedule = _ahead(schedule, band, sums) or schedule
    return schedule


def _sums(band: Band) -> tuple[Band, ...]:
    """The loops in a loop's body if that is a sequence of statements and of loops with one statement each."""
    inside = parts(band.body) if isinstance(band.body, Sequence) else ()
    loops = tuple(part for part in inside if isinstance(part, Band))
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
    counting = {name: one.name for one in sums for name in statements(one)}
    counted: list[tuple[str, Formula]] = []
    for name in statements(band):
        iterator = moved_iterator(nest.statement(name), found[name], counting.get(name, band.name))
        if iterator is None:
            return None
        counted.append((name, Formula(iterator)))
    outer = next((one.name for one in bands(schedule.tree) if any(part is band for part in parts(one.body))), None)
    steps: list[Step] = [Enclose(fresh(schedule.tree, f"{band.name}_done"), tuple(counted), outer)]
    steps += [Distribute(band.name, last=name) for name in counting]
    try:
        made = applied(schedule, steps)
    except ScheduleError:
        return None
    inner = {one.name for one in sums}
    turned = [(lane, loop) for loop in bands(made.tree) if loop.name in inner and (lane := parent(made.tree, loop))]
    lanes = [(lane.name, loop.name) for lane, loop in turned if isinstance(lane, Band)]
    looking = attempt(schedule, [*steps, *(Interchange(lane, loop) for lane, loop in lanes)])
    if looking is None or any(lane_conflict(nest, looking.tree, lane) is not None for lane, _ in lanes):
        return None
    return looking
