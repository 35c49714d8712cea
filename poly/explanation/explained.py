"""Explain a schedule from its sets, the machine's measured rates, the model and the tuning records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from microkernels.dtypes import DType
from microkernels.errors import TargetError, shown
from microkernels.opencl_isa import is_gpu
from poly.analysis.work import work
from poly.checks import checked_sizes
from poly.errors import SpecError
from poly.explanation.explanation import Explanation
from poly.explanation.reasons import reasons
from poly.explanation.values import Level, Measurement
from poly.ir.budget import CALL, TooCostly, limited
from poly.ir.fixing import fix_tree
from poly.ir.guards import without_conditions
from poly.ir.nest import Nest
from poly.machine import Measured, machine, measured
from poly.machine.target import Backend, parse
from poly.model import Caches
from poly.model.core import FULL
from poly.model.host import here, rates
from poly.model.schedules import predicted
from poly.names import check_sizes_meant
from poly.opencl_kernel import OpenCLKernel
from poly.records.key import key_for
from poly.records.store import Store
from poly.scheduled import Scheduled
from poly.schedules.schedule import Schedule
from poly.working_sets import footprints, optimistic, pairs, pessimistic, traffic, working_sets


def explain(
    what: Scheduled | Schedule,
    *,
    target: str = "c",
    threads: int | None = None,
    sizes: Mapping[str, int] | None = None,
    **more: int,
) -> Explanation:
    """Explain the speed of a kernel or schedule; `print` shows the explanation.

    Working sets, footprints and bytes are counted from the schedule's exact sets. A working set may fill three quarters
    of a cache, and caches keep their contents from the previous call. Rates are measured on this machine (once, in a
    few seconds, and then stored). `target` and `threads` are as for `poly.compile`; a kernel has its own. Open sizes
    are given by keyword or as `sizes`.

    Raises:
        SpecError: neither a kernel nor a schedule, or an unknown size.
        ScheduleError: a size is left open.
        TargetError: an unknown target, or a GPU.
        RecordError: the store of records cannot be read.
        ToolchainError: the machine could not be measured.
    """
    return explanation_of(subject(what, target, threads, sizes_of(what, sizes, more, explain)))


def sizes_of(
    what: Scheduled | Schedule, sizes: Mapping[str, int] | None, more: Mapping[str, int], function: Callable[..., Any]
) -> dict[str, int]:
    """The sizes from both arguments. Raises SpecError for a keyword that is meant for another one."""
    if isinstance(what, Scheduled | Schedule):
        check_sizes_meant(more, what.nest.open_or_fixed, function)
    return checked_sizes(sizes, more)


@dataclass(frozen=True)
class Subject:
    """The subject of an explanation: a schedule, the same at given sizes, and the target and threads that run it."""

    schedule: Schedule
    fixed: Schedule
    target: Backend
    threads: int
    sizes: dict[str, int]


def subject(what: Scheduled | Schedule, target: str, threads: int | None, sizes: dict[str, int]) -> Subject:
    """The arguments of `explain`, checked. Raises the same errors."""
    if isinstance(what, Scheduled):
        device = what.device if isinstance(what, OpenCLKernel) else None
        schedule, goal, count = what.schedule, Backend(what.isa, device), what.threads
    elif isinstance(what, Schedule):
        schedule, goal = what, parse(target)
        count = goal.threads(threads)
    else:
        raise SpecError(f"{shown(what)} is no kernel and no schedule. Make one with poly.compile or poly.schedule.")
    if is_gpu(goal.isa):
        raise TargetError("explanations are based on this CPU's caches: there are none for a GPU's schedules.")
    return Subject(schedule, _fixed(schedule, sizes), goal, count, sizes)


@limited(CALL)
def explanation_of(of: Subject) -> Explanation:
    """The explanation from the schedule's exact sets, or from sets without conditions if these take too much work.

    Raises ScheduleError, RecordError and ToolchainError, as `explain` does.
    """
    simple = without_conditions(of.fixed.nest)
    if simple is of.fixed.nest:
        return _made(of, of.fixed)
    try:
        with limited(CALL // 2):
            return _made(of, of.fixed)
    except TooCostly:
        return replace(_made(of, replace(of.fixed, nest=simple)), schedule=of.fixed, rough=True)


def _made(of: Subject, fixed: Schedule) -> Explanation:
    schedule, target, threads, sizes = of.schedule, of.target, of.threads, of.sizes
    isa = target.isa
    reuses = working_sets(fixed)
    known_target = here(isa, threads, rates(isa, threads))
    usable = _usable(known_target.caches)
    every = pairs(reuses)
    known = measured(machine())
    dtypes = _dtypes(fixed.nest)
    evidence = measurement(schedule.nest, schedule, target, threads, sizes)
    prediction = predicted(fixed, known_target)
    done = work(fixed.nest)
    return Explanation(
        schedule=fixed,
        target=isa.name,
        threads=threads,
        flop=done.flop if done else 0,
        peak=rates(isa, threads).peak(dtypes[0]) * threads,
        levels=tuple(
            Level.of(moved, _rate(known, moved.level, threads)) for moved in traffic(fixed, usable, warm=True)
        ),
        footprints=footprints(fixed),
        reuses=reuses,
        caches=usable,
        pessimistic=pessimistic(every, usable),
        optimistic=optimistic(every, usable),
        prediction=prediction,
        measurement=evidence,
        reasons=reasons(fixed, known_target),
    )


def _fixed(schedule: Schedule, sizes: Mapping[str, int]) -> Schedule:
    """The same steps at given sizes, without another proof: they are legal for all sizes."""
    if not sizes:
        return schedule
    return Schedule(schedule.nest.with_sizes(sizes), schedule.steps, fix_tree(schedule.tree, sizes))


def _usable(whole: Caches) -> Caches:
    return Caches(int(FULL * whole.l1), int(FULL * whole.l2), int(FULL * whole.l3), whole.ways)


def _rate(known: Measured, level: str, threads: int) -> float:
    """Bytes per second that all threads together read from a level."""
    return known.bandwidth(level, threads).read * 1e9


def _dtypes(nest: Nest) -> tuple[DType, ...]:
    """The types that the statements compute, in their order."""
    return tuple(dict.fromkeys(nest.array(s.target.array).dtype for s in nest.statements))


def measurement(
    nest: Nest, schedule: Schedule, target: Backend, threads: int, sizes: Mapping[str, int]
) -> Measurement | None:
    """The time of a call with this schedule, at these values of the sizes that are open in `nest`; None if unknown.

    Raises:
        RecordError: the store cannot be read.
        ToolchainError: there is no C compiler, which is part of a record's key.
    """
    store = Store.open()
    if not store.exists():
        return None
    key, steps = key_for(nest, target.isa, threads, target.device), schedule.to_json()
    best = store.best(key)
    if best is not None and best.schedule == steps and dict(best.at) == dict(sizes):
        return Measurement(best.seconds, str(best), best.point)
    if sizes:
        return None
    trials = [trial for trial in store.trials(key) if trial.schedule == steps and trial.samples]
    if not trials:
        return None
    return Measurement(median(trials[-1].samples), f"a trial of {trials[-1].when:%Y-%m-%d %H:%M} UTC", trials[-1].point)
