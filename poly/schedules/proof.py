"""Apply a step to a loop tree if it is legal; otherwise refuse it with a witness and a remedy."""

from __future__ import annotations

from typing import Any

from microkernels.errors import PluginError, plain, shown
from microkernels.plugins import blamed
from poly.analysis.dependences import ROUGH, dependences
from poly.analysis.legality import illegal_mark, violations, witness
from poly.errors import ScheduleError
from poly.ir.budget import QUESTION, TooCostly, limited
from poly.ir.nest import Nest
from poly.ir.tree import Band, Node, bands, statements
from poly.ir.work_groups import misfit
from poly.lowering.mapping.legality import conflict
from poly.schedules.makeable import check_makeable
from poly.schedules.remedies import remedy
from poly.schedules.steps import Groups, Items, Pack, Parallel, Step, Tensorize, Unroll, Vectorize, call_text
from poly.schedules.steps.own import described, is_own

MARKS = (Groups, Items, Parallel, Unroll, Vectorize)
"""Steps that say how a loop runs, and leave the loops as they are."""

CHANGED = 100_000
"""Operations that isl may use to apply a step, which may have to compute the bounds of loops."""

ADVICE = 300_000
"""Operations that isl may use to find a remedy."""


def checked(nest: Nest, tree: Node, step: Step) -> Node:
    """The tree after a step.

    Raises:
        ScheduleError: names that do not exist, loops without the form that the step needs, an order that breaks a
            dependence, or a proof that takes too much work. The message shows two iterations of a broken dependence,
            and what to do first or instead, if a remedy is known.
    """
    try:
        with limited(QUESTION):
            return _checked(nest, tree, step)
    except TooCostly as error:
        raise ScheduleError(
            f"{_plain(step)} takes too much work to prove. Remedy: known sizes (with_sizes), simpler conditions, or "
            "fewer statements in one nest."
        ) from error


def _checked(nest: Nest, tree: Node, step: Step) -> Node:
    with limited(CHANGED):
        result = _applied(nest, tree, step) if is_own(step) else step.apply(nest, tree)
    unfit = misfit(result)
    if unfit is not None:
        raise ScheduleError(f"{_plain(step)} does not fit: {unfit}.")
    _check_makeable(nest, result, step)
    reason = _objection(nest, result, step) if step.reorders or is_own(step) else None
    if reason is None:
        return result
    steps = _remedy(nest, tree, step)
    advice = f" Remedy: {', '.join(map(_plain, steps))}." if steps else ""
    rough = f" Its dependences may not be: {ROUGH}." if dependences(nest).rough else ""
    raise ScheduleError(f"{_plain(step)} is illegal: {reason}.{advice}{rough}")


def _applied(nest: Nest, tree: Node, step: Step) -> Node:
    """The tree after a user's step, of which nothing is taken for granted.

    Raises:
        PluginError: the step failed, or its result is no tree that runs each instance of each statement once.
    """
    told = described(step)
    with blamed(told):
        result = step.apply(nest, tree)
        wrong = _unsound(nest, tree, result)
    if wrong is not None:
        raise PluginError(f"{told} made no loops of {nest.name}: {wrong}.")
    return result


def _unsound(nest: Nest, before: Node, after: Any) -> str | None:
    """Why a tree does not run what another does; None if it does."""
    if not isinstance(after, Node):
        return f"it returned {shown(after)}"
    if sorted(statements(after)) != sorted(statements(before)):
        return f"it holds the statements {', '.join(statements(after)) or 'none'}, not {', '.join(statements(before))}"
    names = [band.name for band in bands(after)]
    if len(set(names)) < len(names) or not all(name.isidentifier() for name in names):
        return f"its loops are called {', '.join(map(plain, names))}"
    for band in bands(after):
        if tuple(name for name, _ in band.functions) != statements(band.body):
            return f"the loop {band.name} has functions of other statements than it holds"
        for name, function in band.functions:
            if not nest.statement(name).domain.is_subset(function.domain()):
                return f"the loop {band.name} has no value for some instances of {name}"
    return None


def _remedy(nest: Nest, tree: Node, step: Step) -> tuple[Step, ...] | None:
    """Steps to take first or instead; empty or None if none are known, or finding them takes too much work."""
    try:
        with limited(ADVICE):
            return remedy(nest, tree, step)
    except TooCostly:
        return None


def _check_makeable(nest: Nest, tree: Node, step: Step) -> None:
    if isinstance(step, MARKS):
        return
    try:
        check_makeable(nest, tree)
    except ScheduleError as error:
        if isinstance(step, Tensorize | Pack):
            raise
        raise ScheduleError(f"{_plain(step)} does not fit: {error}") from error


def _objection(nest: Nest, tree: Node, step: Step) -> str | None:
    """Why the order of a tree, or a mark on one of its loops, is illegal; None if it is legal."""
    broken = violations(nest, tree)
    if broken is not None:
        return str(witness(broken))
    flagged = illegal_mark(nest, tree)
    if flagged is not None:
        band, carried = flagged
        return f"{'' if _marks(step, band) else f'loop {band.name} is {_kind(band)}, and '}{witness(carried)}"
    between_items = conflict(nest, tree)
    return None if between_items is None else str(between_items)


def _marks(step: Step, band: Band) -> bool:
    """Whether the step marks exactly this loop."""
    match step:
        case Parallel(loop) | Vectorize(loop):
            return loop == band.name
        case Groups(loops):
            return loops == (band.name,)
    return False


def _kind(band: Band) -> str:
    if band.group:
        return "shared by work-groups"
    return "parallel" if band.parallel else "vectorised"


def _plain(step: Step) -> str:
    return call_text(step).replace("'", "")
