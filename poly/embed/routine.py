"""One function of a header: its kernels for each instruction set, scheduled, lowered and named."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from codegen.ir.signature import Signature
from codegen.package import Routine, Variant
from microkernels.dot import FLAGS, with_dots
from microkernels.dtypes import i8, i16, u8
from microkernels.errors import TargetError
from microkernels.isa import ISA, ISAS, host_machine
from poly.analysis.bounds import check
from poly.analysis.facts import delicate, drifts
from poly.autoschedule.default import known_default
from poly.compiled import kernels_of
from poly.embed.group import Group
from poly.embed.trials import trials
from poly.errors import ScheduleError
from poly.ir.lookups import checking, index_values
from poly.ir.nest import Nest
from poly.ir.strided import with_strides
from poly.lowering.lower import lower
from poly.model import Caches
from poly.model.core import Target
from poly.model.host import caches, known_rates
from poly.records.followed import recorded
from poly.scheduled import Scheduled
from poly.schedules.schedule import Schedule, schedule

Sizes: TypeAlias = tuple[tuple[str, int], ...]


class _Plan(NamedTuple):
    """The schedule of a kernel, and the calls that it serves."""

    schedule: Schedule
    sizes: Sizes
    dense: bool


USUAL = Caches(32 << 10, 512 << 10, 1 << 20)
"""The caches that are assumed for a core of another architecture; nearly all cores of the last ten years have them."""


def routine(group: Group, name: str, prefix: str, isas: Sequence[ISA], threads: int | None, dense: bool) -> Routine:
    """The function `name` of a header with `prefix`, with kernels for each of `isas`.

    `threads` replaces the number of threads for which the kernels were scheduled. A `dense` function takes no strides.
    """
    nest = check(group.base.nest)
    open_nest = nest if dense else with_strides(nest)
    plain = lower(open_nest, schedule(open_nest).tree, isas[-1], expanded=True)
    looking = checking(open_nest)
    lookups = None if looking is None else lower(looking, looking.tree, isas[-1])
    reference = replace(plain, name=f"{name}_reference")
    label = name.removeprefix(prefix).removeprefix("_")
    made = [variant for isa in isas for variant in _variants(group, nest, isa, threads, dense)]
    found = [
        replace(one, program=replace(one.program, name="_".join(filter(None, (label, one.program.name)))))
        for one in made
    ]
    sizes_of_special = [dict(_special(kernel, group.base)) for kernel in group.special]
    return Routine(
        name=name,
        signature=Signature(
            name,
            reference.sizes,
            tuple(b for b in reference.buffers if b.kind != "local"),
            conditions=reference.conditions,
        ),
        strides=tuple(size for size in reference.sizes if size not in nest.sizes),
        loops=nest.source[nest.source.index("def ") :].rstrip(),
        variants=tuple(found),
        reference=reference,
        trials=trials(nest, sizes_of_special),
        delicate=delicate(nest),
        drifts=drifts(nest),
        notes=tuple(note(kernel) for kernel in (*group.special, group.base)),
        lookups=lookups and replace(lookups, name=f"{name}_lookups"),
        indices=index_values(nest),
    )


def levels(isas: Sequence[ISA], routines: Sequence[Routine]) -> tuple[ISA, ...]:
    """The instruction sets, each after the same with what some routine needs beside it."""
    used = {variant.isa for routine in routines for variant in routine.variants}
    return tuple(one for isa in isas for one in (with_dots(isa), isa) if one and (one == isa or one in used))


def _variants(group: Group, nest: Nest, isa: ISA, threads: int | None, dense: bool) -> list[Variant]:
    """The kernels for an instruction set, after those that need more of the CPU for products of narrow integers."""
    own = [_variant(isa, plan) for plan in _plans(group, nest, isa, threads, dense)]
    more = with_dots(isa)
    if more is None or not any(array.dtype in (i8, u8, i16) for array in nest.arrays):
        return own
    wider = _plans(group, nest, more, threads, dense)
    used = any(_needed(plan.schedule, isa) for plan in wider)
    return [*(_variant(more, plan) for plan in wider if used), *own]


def _plans(group: Group, nest: Nest, isa: ISA, threads: int | None, dense: bool) -> list[_Plan]:
    """Kernels for the special sizes, and after them those for all other calls."""

    def plan(kernel: Scheduled, own: Nest, sizes: Sizes, dense: bool) -> _Plan:
        return _Plan(scheduled(kernel, own, isa, threads or kernel.threads), sizes, dense)

    found = [plan(kernel, check(kernel.nest), _special(kernel, group.base), True) for kernel in group.special]
    if dense or not nest.sizes:
        found.append(plan(group.base, nest, (), True))
    if not dense:
        found.append(plan(group.base, with_strides(nest), (), False))
    return found


def _special(kernel: Scheduled, base: Scheduled) -> Sizes:
    """The kernel's values of the sizes that are open in the base."""
    known = dict(kernel.nest.fixed)
    return tuple((size, known[size]) for size in base.nest.sizes)


def _variant(isa: ISA, plan: _Plan) -> Variant:
    made = plan.schedule
    which = "_".join(f"{name}{value}" for name, value in plan.sizes) or ("dense" if plan.dense else "any")
    program = replace(lower(made.nest, made.tree, ISAS[isa.name]), name=which)
    return Variant(isa, program, plan.sizes, plan.dense, str(made))


def scheduled(kernel: Scheduled, nest: Nest, isa: ISA, threads: int) -> Schedule:
    """The schedule of `nest`, which is the kernel's nest or the same with strides, for an instruction set.

    For the kernel's own instruction set it is the kernel's schedule, if that is legal and its microkernels need nothing
    beside it. Otherwise it is that of a record, if the kernel follows one, or the model's.
    """
    own = ISAS[isa.name]
    here = own == kernel.isa and threads == kernel.threads
    if here and kernel.basis is not None:
        with suppress(ScheduleError):
            made = kernel.schedule if nest is kernel.schedule.nest else kernel.schedule.on(nest)
            if not _needed(made, isa):
                return made
    record = recorded(nest, own, threads) if kernel.origin == "record" else None
    if record is not None:
        with suppress(ScheduleError):
            made = Schedule.from_json(nest, record.schedule)
            if not _needed(made, isa):
                return made
    rates = known_rates(own, threads)
    known = caches(threads).within(rates) if isa.machine in ("", host_machine()) else USUAL
    return known_default(nest, Target(own, known, rates, threads, tuple(sorted(set(isa.cpu_flags) & FLAGS.keys()))))


def _needed(made: Schedule, isa: ISA) -> list[str]:
    """What the schedule's microkernels need of a CPU beside the instruction set.

    Raises TargetError if a header asks for no such feature.
    """
    known = with_dots(ISAS[isa.name]) or isa
    for kernel in kernels_of(made):
        more = [feature for feature in kernel.isa.cpu_flags if feature not in known.cpu_flags]
        if more:
            raise TargetError(
                f"microkernel({kernel}) needs {', '.join(more)} beside {isa.name}, and a header does not ask the CPU "
                "for that. Remedy: another schedule, or isas without this one."
            )
    return [flag for kernel in kernels_of(made) for flag in kernel.isa.cpu_flags if flag not in isa.cpu_flags]


def note(kernel: Scheduled) -> str:
    """A sentence that says where a kernel's schedule comes from."""
    sizes = ", ".join(f"{name} = {value}" for name, value in kernel.nest.fixed) or "any size"
    threads = f"{kernel.threads} thread{'s' if kernel.threads > 1 else ''}"
    return f"For {sizes}: {_origin(kernel)}, for {kernel.isa.name} and {threads}."


def _origin(kernel: Scheduled) -> str:
    record = kernel.record
    if record is None:
        return {"given": "a schedule that was given", "model": "the choice of the model"}[kernel.origin]
    speed = f", {record.gflops:.1f} GFLOP/s" if record.gflops else ""
    return f"tuned on {record.when:%Y-%m-%d} by {record.trials} measurements{speed}"
