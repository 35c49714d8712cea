"""Steps that are taken only where they are legal."""

from __future__ import annotations

from collections.abc import Iterable

from poly.errors import ScheduleError
from poly.legality import broken_flag, violations
from poly.mapping.legality import conflict
from poly.mapping.work_groups import misfit
from poly.schedule import Schedule
from poly.steps import Step


def attempt(schedule: Schedule, steps: Iterable[Step]) -> Schedule | None:
    """The schedule with all of the steps; None where what they make is illegal, or one does not fit the loops.

    Only the result is checked, not each step on the way: checks are what a schedule costs.
    """
    try:
        made = proven(schedule, steps)
    except ScheduleError:
        return None
    checks = (violations, broken_flag, conflict)
    illegal = misfit(made.tree) or any(check(made.nest, made.tree) for check in checks)
    return None if illegal else made


def proven(schedule: Schedule, steps: Iterable[Step]) -> Schedule:
    """The schedule with steps that the caller knows to be legal.

    Raises:
        ScheduleError: a step does not fit the loops.
    """
    tree, added = schedule.tree, tuple(steps)
    for step in added:
        tree = step.apply(schedule.nest, tree)
    return Schedule(schedule.nest, (*schedule.steps, *added), tree)
