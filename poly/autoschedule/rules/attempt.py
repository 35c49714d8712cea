"""Apply steps only if they are legal, and ask whether a schedule's loops are found."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from codegen.names import another
from microkernels.isa import ISA
from poly.analysis.legality import illegal_mark, violations
from poly.errors import CostWarning, ScheduleError, warn
from poly.ir.budget import CALL, QUESTION, TooCostly, limited
from poly.ir.nest import Nest
from poly.ir.work_groups import misfit
from poly.lowering.lower import lower
from poly.lowering.mapping.legality import conflict
from poly.schedules.makeable import check_makeable
from poly.schedules.schedule import Schedule
from poly.schedules.steps import Materialize, Privatize, ReorderStorage, Rewriting, Step


def attempt(schedule: Schedule, steps: Iterable[Step]) -> Schedule | None:
    """The schedule with all the steps; None if a step does not fit, or the result is illegal or makes no code.

    If the proof takes too much work, None as well, with a CostWarning. Only the result is checked, not every step on
    the way, since the checks dominate the cost of making a schedule.
    """
    try:
        with limited(QUESTION):
            made = applied(schedule, steps)
            check_makeable(made.nest, made.tree)
            return made if _is_legal(made) else None
    except ScheduleError:
        return None
    except TooCostly:
        problem = f"a schedule of {schedule.nest.name} was left out: it takes too much work to prove"
        warn(f"{problem}. Remedy: known sizes, or simpler conditions.", CostWarning)
        return None


def _is_legal(made: Schedule) -> bool:
    checks = (violations, illegal_mark, conflict)
    return not misfit(made.tree) and not any(check(made.nest, made.tree) for check in checks)


def has_loops(made: Schedule, isa: ISA) -> bool:
    """Whether isl finds the loops: the bounds of many tiles in terms of an open size may take too much work."""
    with limited(CALL, apart=True):
        return lowers(made, isa)


def lowers(made: Schedule, isa: ISA) -> bool:
    """Whether a schedule becomes a program, which is kept for its compilation."""
    with suppress(ScheduleError):
        lower(made.nest, made.tree, isa)
        return True
    return False


def applied(schedule: Schedule, steps: Iterable[Step]) -> Schedule:
    """The schedule with steps that the caller has proven legal.

    Raises:
        ScheduleError: a step does not fit the loops.
    """
    nest, tree, added = schedule.nest, schedule.tree, tuple(steps)
    for step in added:
        nest, tree = step.rewritten(nest, tree) if isinstance(step, Rewriting) else (nest, step.apply(nest, tree))
    return Schedule(nest, (*schedule.steps, *added), tree)


Copying = TypeVar("Copying", Materialize, Privatize, ReorderStorage)


def with_free_name(nest: Nest, step: Copying) -> Copying:
    """The step whose local has its usual name, or that with a number if it is taken."""
    names = (*nest.open_or_fixed, *(a.name for a in nest.arrays), *(s.name for s in nest.statements))
    into = another(step.local, frozenset(names))
    return step if into == step.local else replace(step, into=into)
