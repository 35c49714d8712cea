"""`poly.compile`: from a nest to a kernel for this CPU or for an OpenCL device."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any, Literal, TypeAlias, overload

from codegen.errors import ArgumentError
from codegen.toolchain.compiler import USUAL, Toolchain, toolchain, using
from microkernels.errors import shown
from poly.checks import checked_flag, checked_sizes
from poly.compiled import Basis
from poly.errors import ScheduleError
from poly.ir.budget import CALL, limited
from poly.ir.nest import Nest, checked_nest, difference
from poly.kernel import Kernel, c_kernel, checked
from poly.machine.target import Backend, parse
from poly.names import check_sizes_meant
from poly.opencl_kernel import OpenCLKernel, opencl_kernel
from poly.records.followed import check_source, recorded, refuse
from poly.schedules.schedule import Schedule

logger = logging.getLogger("poly.compile")

CTarget: TypeAlias = Literal["c", "c:avx512", "c:avx2", "c:neon", "c:portable"]
OpenCLTarget: TypeAlias = Literal["opencl", "opencl:cpu", "opencl:gpu"]


@overload
def compile_nest(
    nest: Nest,
    *,
    schedule: Schedule | None = None,
    target: CTarget = "c",
    threads: int | None = None,
    sizes: Mapping[str, int] | None = None,
    records: bool = True,
    compiler: str | Sequence[str] | None = None,
    flags: Sequence[str] = (),
    **more: int,
) -> Kernel: ...


@overload
def compile_nest(
    nest: Nest,
    *,
    schedule: Schedule | None = None,
    target: OpenCLTarget,
    threads: int | None = None,
    sizes: Mapping[str, int] | None = None,
    records: bool = True,
    compiler: str | Sequence[str] | None = None,
    flags: Sequence[str] = (),
    **more: int,
) -> OpenCLKernel: ...


@overload
def compile_nest(
    nest: Nest,
    *,
    schedule: Schedule | None = None,
    target: str,
    threads: int | None = None,
    sizes: Mapping[str, int] | None = None,
    records: bool = True,
    compiler: str | Sequence[str] | None = None,
    flags: Sequence[str] = (),
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
    compiler: str | Sequence[str] | None = None,
    flags: Sequence[str] = (),
    **more: int,
) -> Kernel | OpenCLKernel:
    """Compile a nest. Nothing is measured: without a schedule, the model derives one from the nest and the machine.

    Sizes are fixed by keyword (`M=512`) or as `sizes={"M": 512}`; the others stay symbolic, and one kernel serves all
    their values. `target` is `"c"` (the host's best instruction set) or `"c:avx512"`, `"c:avx2"`, `"c:neon"`,
    `"c:portable"`; for an OpenCL device it is `"opencl"` (the best one on this machine), `"opencl:cpu"`,
    `"opencl:gpu"`, or `"opencl:"` and part of the device's name. `threads` is the number of threads of a call that
    does not give its own (default: the cores that this process may use); a device uses all its compute units. If there
    is a tuning record for this nest, machine and compiler, its schedule replaces the model's, unless `records=False`;
    `kernel.origin` and `kernel.record` say which it is. `compiler` is the C compiler's command (default: POLY_CC, CC,
    cc, gcc or clang), and `flags` follow those that poly gives it; what is tuned with them has records of its own. If a
    better schedule takes too much work to find, the loops run in the order in which they are written, and a CostWarning
    says so.

    Raises:
        SpecError: not a nest, an unknown size, a size that is not an integer, or an access outside its array.
        ArgumentError: an invalid number of threads, `records` is not a boolean, or an invalid `compiler` or `flags`.
        ScheduleError: not a schedule, a schedule for another nest or other values of its sizes, or loop bounds that
            take too much work to find.
        TargetError: an unknown target, or one that can't be used here.
        ToolchainError: the C compiler is missing or fails, or the cache directory can't be written.
    """
    wanted = parse(target)
    count = wanted.threads(threads)
    fixed = checked_sizes(sizes, more)
    kept = checked_flag("records", records)
    checked_nest(nest)
    check_sizes_meant(more, nest.open_or_fixed, compile_nest)
    if schedule is not None:
        if not isinstance(schedule, Schedule):
            raise ScheduleError(f"{shown(schedule)} is no schedule. Make one with poly.schedule({nest.name}).")
        schedule = _matched(schedule, nest)
        nest = schedule.nest
    if fixed:
        nest = nest.with_sizes(fixed) if schedule else nest.for_sizes(fixed)
        schedule = schedule.on(nest) if schedule else None
    began = monotonic()
    with using(checked_toolchain(wanted, compiler, flags)):
        found = _from_record(nest, wanted, count) if kept and schedule is None else None
        kernel = found or _kernel(nest, wanted, count, schedule)
    logger.info("%r in %.0f ms; schedule: %s", kernel, 1e3 * (monotonic() - began), kernel.origin)
    return kernel


def checked_toolchain(target: Backend, compiler: Any, flags: Any) -> Toolchain:
    """The toolchain that a caller chose, else the target's. Raises ArgumentError, also if the target is no C."""
    made = toolchain(compiler, flags)
    if made == USUAL and target.own is not None:
        return target.own.toolchain()
    if made != USUAL and target.device is not None:
        raise ArgumentError(f"compiler and flags are for C, and the target is {target}. Leave them out.")
    return made


def _matched(schedule: Schedule, nest: Nest) -> Schedule:
    """The schedule for exactly this nest, with the sizes that either of them fixes; proven again if anything changes.

    Raises:
        ScheduleError: the schedule is for other loops, or for other values of the sizes.
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
    """The kernel that follows the nest's tuning record, or None without a record.

    If the record can't be followed, the kernel follows the model's schedule.
    """
    record = recorded(nest, target.isa, threads, device=target.device)
    if record is None:
        return None
    try:
        return _built(_kernel(nest, target, threads, record))
    except Exception as error:  # a schedule from a file can fail in any way
        problem = error
    kernel = _built(_kernel(nest, target, threads, None))  # raises too if the record is not to blame
    refuse(record, problem)
    return kernel


def _built(kernel: Kernel | OpenCLKernel) -> Kernel | OpenCLKernel:
    """The kernel, built; one that follows a record must keep within the limits for records."""
    if kernel.record is not None and isinstance(kernel, Kernel):
        return checked(kernel)
    if kernel.record is not None:
        check_source(kernel.source)
    kernel.build()
    return kernel
