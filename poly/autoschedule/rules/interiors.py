"""Part the iterations that take all steps of a reduction from those at the borders, which take fewer.

for q < 56:                                    for 1 <= q < 55: for s < 3: Y[q] += X[q + s - 1]*W[s]
  for s < 3:                            ->     for s < 3: if s > 0: Y[0]  += X[s - 1]*W[s]
    if 0 <= q + s - 1 < 56:                    for s < 3: if s < 2: Y[55] += X[s + 54]*W[s]
      Y[q] += X[q + s - 1]*W[s]

A register tile in the interior then keeps its results over all of these steps. (Griebl, Feautrier, Lengauer, "Index set
splitting", IJPP 28(6), 2000.)
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import islpy as isl

from codegen.names import fresh
from poly.analysis.roles import roles
from poly.autoschedule.rules.attempt import attempt
from poly.autoschedule.rules.inner_boxes import InnerBox
from poly.autoschedule.rules.non_rectangular import best_box
from poly.ir.nest import Nest, Statement
from poly.model.core import Target
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Part
from poly.schedules.steps.formulas import Formula

PAYS = 0.95
"""How much of the time of a whole loop its parts have to be expected to take: they are more text."""


def interiors_apart(base: Schedule, target: Target, pays: float = PAYS) -> Schedule | None:
    """The schedule with the interiors of contractions as statements of their own; None if there are none to part.

    None as well if their calls would take more than `pays` of the time of what they take with fewer steps.
    """
    made = base
    for statement in base.nest.statements:
        steps = _parts(made.nest, statement, target, pays)
        made = (attempt(made, steps) if steps else None) or made
    return None if made is base else made


def _parts(nest: Nest, statement: Statement, target: Target, pays: float) -> list[Part]:
    """The steps that leave a contraction its interior, along rows or columns of its box; none if all is that."""
    box = best_box(nest, statement, target) if roles(nest, statement) is None else None
    outside = [tap for tap in box.taps if tap not in box.within] if box else []
    if box is None or not outside or _with_all(box, outside, target) > pays * box.time(target):
        return []
    for along in (box.row, box.column):
        interior = _interior(statement, along, outside)
        if interior is not None:
            return _ends(nest, statement, along, *interior)
    return []


def _with_all(box: InnerBox, taps: Collection[str], target: Target) -> float:
    """The time of the box if it had more taps, all in one call."""
    return replace(box, within=(*box.within, *taps)).time(target)


def _interior(statement: Statement, along: str, taps: Collection[str]) -> tuple[int, int] | None:
    """The first and the last value of an iterator with which the taps take all their values; None if it always does.

    None as well if there are others between these, or the values depend on open sizes.
    """
    kept = [name for name in statement.iterators if name == along or name in taps]
    taken = statement.domain
    for at in reversed(range(len(statement.iterators))):
        if statement.iterators[at] not in kept:
            taken = taken.project_out(isl.dim_type.set, at, 1)
    place = kept.index(along)
    every = isl.Set.universe(taken.get_space())
    for at in range(len(kept)):
        low, high = taken.dim_min_val(at), taken.dim_max_val(at)
        if not (low.is_int() and high.is_int()):
            return None
        every = every.lower_bound_val(isl.dim_type.set, at, low).upper_bound_val(isl.dim_type.set, at, high)
    lacking, inside = _along(every.subtract(taken), place), _along(taken, place)
    inside = inside.subtract(lacking)
    if lacking.is_empty() or inside.is_empty():
        return None
    first, last = (int(end.to_python()) for end in (inside.dim_min_val(0), inside.dim_max_val(0)))
    between = isl.Set.universe(inside.get_space())
    between = between.lower_bound_val(isl.dim_type.set, 0, isl.Val(first))
    between = between.upper_bound_val(isl.dim_type.set, 0, isl.Val(last))
    return (first, last) if inside.is_equal(between) else None


def _along(instances: isl.Set, place: int) -> isl.Set:
    """The values of one coordinate."""
    count = instances.dim(isl.dim_type.set)
    after = instances.project_out(isl.dim_type.set, place + 1, count - place - 1)
    return after.project_out(isl.dim_type.set, 0, place)


def _ends(nest: Nest, statement: Statement, along: str, first: int, last: int) -> list[Part]:
    """The steps for what lies before and behind the interior, where there is anything."""
    at = statement.iterators.index(along)
    low, high = (int(end.to_python()) for end in (statement.domain.dim_min_val(at), statement.domain.dim_max_val(at)))
    taken = frozenset(other.name for other in nest.statements)
    ends = [(low < first, f"{along} < {first}", "before"), (last < high, f"{along} > {last}", "behind")]
    return [
        Part(statement.name, where=Formula(condition), into=fresh(f"{statement.name}_{where}", taken))
        for exists, condition, where in ends
        if exists
    ]
