"""`poly.compile`: from a nest to a kernel for this CPU or for an OpenCL device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, overload

from microkernels.errors import shown
from poly.checks import checked_flag, checked_sizes
from poly.compiled import Basis
from poly.errors import ScheduleError
from poly.ir.budget import CALL, limited
from poly.ir.nest import Nest, checked_nest, difference
from poly.kernel import Kernel, c_kernel, checked
from poly.machine.target import Backend, parse
from poly.opencl_kernel import OpenCLKernel, opencl_kernel
from poly.records.followed import check_source, recorded, refuse
from poly.schedules.schedule import Schedule

CTarget: TypeAlias = Literal["c", "c:avx512", "c:avx2", "c:neon", "c:portable"]


@overload
def compile_nest(
    nest: Nest,
    *,
    schedule: Schedule | None = None,
    target: CTarget = "c",
    threads: int | None = None,
    sizes: Mapping[str, int] | None = None,
    records: bool = True,
    **more: int,
) -> Kernel: ...


@overload
def compile_nest(
    nest: Nest,
    *,
    schedule: Schedule | None = None,
    target: str,
    threads: int | None = None,
    sizes: Mapping[str, int] | None = None,
    records: bool = True,
    **more: int,
) -> Kernel | OpenCLKernel: ...


@limited(CALL)
def compile_nest(
    nest: Nest,
    *,
    schedule: Schedule | None = None,
    target: str = "c",
    threads: int | None = None,
    sizes: Mapping[str, int] | None = None,
    records: bool = True,
    **more: int,
) -> Kernel | OpenCLKernel:
    """Compile a nest. Nothing is measured: without a schedule, the model picks one from the sets and the caches.

    Sizes are fixed by keyword (`M=512`) or as `sizes={"M": 512}`; those left out stay symbolic, and one kernel serves
    them all. `target` is `"c"` (the host's best instruction set) or `"c:avx512"`, `"c:avx2"`, `"c:neon"`,
    `"c:portable"`; for an OpenCL device it is `"opencl"` (the best one here), `"opencl:cpu"`, `"opencl:gpu"`, or
    `"opencl:"` and a part of the device's name. `threads` is how many a call uses unless it says otherwise (default:
    the cores that this process may use); a device has its compute units. Where a tuning record holds for this nest,
    machine and compiler, its schedule is followed instead of the model's; not with `records=False`. `kernel.origin` and
    `kernel.record` tell. Where a better schedule takes too much work to find, the loops run as they are written, and a
    CostWarning says so.

    Raises:
        SpecError: no nest, an unknown size, a size that is no integer, or an access outside of its array.
        ArgumentError: a number of threads, or a choice, that is none.
        ScheduleError: the schedule is for another nest or other values of its sizes, or the bounds of its loops take
            too much work to find.
        TargetError: an unknown target, or one that can't be used here.
        ToolchainError: the C compiler is missing or fails, or the cache directory can't be written.
    """
    wanted = parse(target)
    count = wanted.threads(threads)
    fixed = checked_sizes(sizes, more)
    kept = checked_flag("records", records)
    checked_nest(nest)
    if schedule is not None:
        if not isinstance(schedule, Schedule):
            raise ScheduleError(f"{shown(schedule)} is no schedule. Make one with poly.schedule({nest.name}).")
        schedule = _matched(schedule, nest)
        nest = schedule.nest
    if fixed:
        nest = nest.with_sizes(fixed)
        schedule = schedule.on(nest) if schedule else None
    found = _from_record(nest, wanted, count) if kept and schedule is None else None
    return found or _kernel(nest, wanted, count, schedule)


def _matched(schedule: Schedule, nest: Nest) -> Schedule:
    """The schedule for this very nest, with the sizes that either has fixed; proven again where it was for another.

    Raises:
        ScheduleError: it is for other loops, or for other values of the sizes.
    """
    known, wanted = dict(schedule.nest.fixed), dict(nest.fixed)
    unlike = [f"{n} = {known[n]}, not {wanted[n]}" for n in known if n in wanted and known[n] != wanted[n]]
    apart = difference(schedule.nest, nest) or (unlike and f"it has {', '.join(unlike)}")
    if apart:
        same = schedule.nest.name == nest.name
        other = f"another {nest.name}" if same else f"{schedule.nest.name}, not of {nest.name}"
        remedy = f"Make one with poly.schedule({nest.name}), or prove its steps anew: schedule.on({nest.name})."
        raise ScheduleError(f"this is a schedule of {other}: {apart}. {remedy}")
    if schedule.nest.name == nest.name and wanted.keys() <= known.keys():
        return schedule
    return schedule.on(nest.with_sizes({name: value for name, value in known.items() if name not in wanted}))


def _kernel(nest: Nest, target: Backend, threads: int, basis: Basis) -> Kernel | OpenCLKernel:
    if target.device is None:
        return c_kernel(nest, target.isa, threads, basis)
    return opencl_kernel(nest, target.isa, threads, basis, target.device)


def _from_record(nest: Nest, target: Backend, threads: int) -> Kernel | OpenCLKernel | None:
    """The kernel that follows the nest's tuning record; None where there is none.

    Where that can't be followed, it is the kernel that the model chooses.
    """
    record = recorded(nest, target.isa, threads, device=target.device)
    if record is None:
        return None
    try:
        return _built(_kernel(nest, target, threads, record))
    except Exception as error:  # whatever a schedule that lies in a file can bring about
        problem = error
    kernel = _built(_kernel(nest, target, threads, None))  # fails too where it was not the record's doing
    refuse(record, problem)
    return kernel


def _built(kernel: Kernel | OpenCLKernel) -> Kernel | OpenCLKernel:
    """The kernel, which can be called; one by a record has kept within bounds."""
    if kernel.record is not None and isinstance(kernel, Kernel):
        return checked(kernel)
    if kernel.record is not None:
        check_source(kernel.source)
    kernel.build()
    return kernel
