"""Distribute loops so that a contraction has its own, which its steps may then reorder, cut and tensorize.

for i: for j:                         for i: for j:
  C[i, j] = 0                           C[i, j] = 0
  for k:                      ->      for i_2: for j_2: for k:
    C[i, j] += A[i, k]*B[k, j]          C[i_2, j_2] += A[i_2, k]*B[k, j_2]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from poly.analysis.contraction import in_place, is_sum_of_products, recognised, terms
from poly.autoschedule.rules.attempt import attempt
from poly.ir.coordinates import linear
from poly.ir.nest import Nest, Statement
from poly.ir.paths import loops_around, paths
from poly.ir.tree import Band, statements
from poly.schedules.schedule import Schedule, schedule
from poly.schedules.steps import Distribute, Part, Step

StepsOf = Callable[[Statement, Mapping[str, str]], list[Step] | None]
"""Makes the steps for a contraction, given its loops by iterator; None if there are none."""

WithSteps = Callable[[Schedule, Statement, Mapping[str, str], Sequence[Step]], Schedule | None]
"""Takes a contraction's steps in the schedule in which it has its own loops; None if that is illegal."""

MadeWith = Callable[[Callable[[Mapping[str, str]], list[Step]]], Schedule | None]
"""Makes a nest's schedule in which one contraction gets the steps that a function returns for its loops."""


def _with_steps(
    base: Schedule, statement: Statement, loops: Mapping[str, str], steps: Sequence[Step]
) -> Schedule | None:
    return attempt(base, steps)


def sums_apart(nest: Nest) -> Schedule:
    """The loops as written, in which each product has a statement of its own where several are added."""
    made = schedule(nest)
    for statement in nest.statements:
        if is_sum_of_products(nest, statement):
            names = [f"{statement.name}_{number + 2}" for number in range(len(terms(statement.expr)) - 1)]
            whole = (statement.name, *names[:-1])
            made = attempt(made, [Part(s, terms=1, into=n) for s, n in zip(whole, names, strict=True)]) or made
    return made


def each_contraction(base: Schedule, steps_of: StepsOf, with_steps: WithSteps = _with_steps) -> Schedule:
    """The schedule plus the steps of each contraction for which they are legal."""
    made = base
    for statement in base.nest.statements:
        alone = isolated(made, statement)
        if alone is not None:
            apart, loops = alone
            steps = steps_of(statement, loops)
            made = (with_steps(apart, statement, loops, steps) if steps else None) or made
    return made


def isolated(made: Schedule, statement: Statement) -> tuple[Schedule, dict[str, str]] | None:
    """The schedule in which a contraction has its own loops, and their names by iterator.

    None if the statement is not a contraction, or the dependences or the loops do not allow it.
    """
    found = isolation(made, statement)
    return None if isinstance(found, str) else found


def isolation(made: Schedule, statement: Statement) -> tuple[Schedule, dict[str, str]] | str:
    """The same, or why there is none."""
    found = recognised(made.nest, statement)
    if isinstance(found, str) and in_place(made.nest, statement) is None:
        return found
    alone = distributed(made, statement)
    if alone is None:
        return "dependences keep it in one loop with other statements"
    loops = loops_by_iterator(alone, statement)
    return "a loop around it counts something else than one of its indices" if loops is None else (alone, loops)


def distributed(made: Schedule, statement: Statement) -> Schedule | None:
    """The schedule in which a statement has its own loops; None if the dependences forbid it."""
    alone: Schedule | None = made
    while alone is not None:
        around = loops_around(alone.tree, statement.name)
        shared = next((band for band in around if len(statements(band)) > 1), None)
        if shared is None:
            return alone
        apart = (Distribute(shared.name), Distribute(shared.name, last=statement.name))
        alone = next((found for step in apart if (found := attempt(alone, [step])) is not None), None)
    return None


def loops_by_iterator(made: Schedule, statement: Statement) -> dict[str, str] | None:
    """The names of the loops that count the statement's iterators, outermost first.

    None if a loop counts something else.
    """
    names: dict[str, str] = {}
    for band in paths(made.tree)[statement.name]:
        if not isinstance(band, Band):
            continue
        value = linear(statement.iterators, band.function(statement.name))
        if value is None or len(value.terms) != 1 or value.terms[0][1] != 1 or value.constant:
            return None
        names[value.terms[0][0]] = band.name
    return names
