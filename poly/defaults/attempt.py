"""Steps that are taken only where they are legal."""

from __future__ import annotations

from collections.abc import Iterable

from poly.errors import ScheduleError
from poly.legality import broken_flag, violations
from poly.schedule import Schedule
from poly.steps import Step


def attempt(schedule: Schedule, steps: Iterable[Step]) -> Schedule | None:
    """The schedule with all of the steps; None where what they make is illegal, or one does not fit the loops.

    Only the result is checked, not each step on the way: checks are what a schedule costs.
    """
    tree, added = schedule.tree, tuple(steps)
    try:
        for step in added:
            tree = step.apply(schedule.nest, tree)
    except ScheduleError:
        return None
    reorders = any(step.reorders for step in added)
    illegal = reorders and (violations(schedule.nest, tree) or broken_flag(schedule.nest, tree))
    return None if illegal else Schedule(schedule.nest, (*schedule.steps, *added), tree)
