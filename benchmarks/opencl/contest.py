"""The contest on an OpenCL device: our kernels, our C target, CLBlast, naive OpenCL, and CUDA's libraries."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import click

import poly
from benchmarks.arrays import Array
from benchmarks.case import Case
from benchmarks.contender import Contender, Failed, Solver
from benchmarks.contest import Contest
from benchmarks.issue import issue_rate
from benchmarks.opencl import threads
from benchmarks.opencl.clblast import ClBlast
from benchmarks.opencl.cuda import Cuda
from benchmarks.opencl.naive import Naive
from benchmarks.opencl.rates import DevicePeak, bandwidth
from benchmarks.opencl.stage import stage
from benchmarks.ours import NAME, Poly
from benchmarks.probe import PeakProbe
from benchmarks.problems.loops import LoopsProblem
from benchmarks.roofline import bound, memory_bound
from benchmarks.workloads import selected
from codegen.opencl.devices import Device
from microkernels.errors import TargetError
from poly.machine import Measured, machine
from poly.machine.target import is_opencl, parse
from poly.measure import process

PEERS = ("c", "clblast", "naive", "cuda")
"""The peers for `--against` on an OpenCL device."""


@dataclass(frozen=True)
class OpenCL:
    """Kernels with the default schedule for the device, without tuning, on arrays in its memory."""

    target: str

    def __call__(self, case: Case, arrays: tuple[Array, ...], threads: int) -> Contender:
        """Compile the case's loops. Raises Failed with poly's message."""
        here = stage(self.target)
        try:
            kernel = poly.compile(case.nest(), sizes=case.sizes, target=self.target, records=False)
            given = here.upload(arrays)
            kernel(*given)
            here.queue.finish()
        except poly.PolyError as error:
            raise Failed(f"{type(error).__name__}: {error}") from error
        result = given[case.problem.written[0]].get()
        config = f"default schedule, {here.device.name}, driver {here.device.driver}"
        return Contender(
            NAME, poly.__version__, config, here.timed(lambda: kernel(*given)), lambda: result, pinned=False
        )


@dataclass(frozen=True)
class _C:
    """The same loops by our C target, on as many threads as the device has compute units."""

    def __call__(self, case: Case, arrays: tuple[Array, ...], threads: int) -> Contender:
        """Compile the case's loops. Raises Failed with poly's message."""
        return Poly("c")(case, arrays, threads)


def on_device(device: Device, rates: Measured) -> Contest:
    """The contest of our kernels for a device with its other kernels; `rates` are those of this CPU."""
    target, cpus = device.label, process.allowed()
    peers: dict[str, Solver] = dict(zip(PEERS, (_C(), ClBlast(target), Naive(target), Cuda()), strict=True))
    if device.isa.is_gpu:
        return Contest(
            target,
            OpenCL(target),
            peers,
            lambda dtype, units: DevicePeak(target, dtype),
            lambda case, units, peak: memory_bound(case, peak, bandwidth(target), sweeps(case)),
        )
    return Contest(
        target,
        OpenCL(target),
        peers,
        lambda dtype, units: PeakProbe(cpus, dtype, units),
        lambda case, units, peak: bound(case, units, peak, machine(), rates, sweeps(case), held(case)),
        threads.kept,
        issue_rate,
    )


def sweeps(case: Case) -> int:
    """How often a case moves its arrays: a stencil in each time step, which is a launch of its own; others once."""
    return case.problem.size.get("T", 1) if isinstance(case.problem, LoopsProblem) else 1


def held(case: Case) -> int:
    """The bytes of a case's arrays; a stencil's traffic counts them twice, as all are read and written."""
    return (case.problem.bytes if isinstance(case.problem, LoopsProblem) else case.problem.traffic)(case.dtype)


def facts(device: Device) -> dict[str, str]:
    """The device and its driver for JSON."""
    return {"device": device.name, "platform": device.platform, "driver": device.driver}


def device_of(target: str) -> Device | None:
    """The OpenCL device that a target names; None for C. Raises UsageError if it cannot be used."""
    if not is_opencl(target):
        return None
    try:
        return parse(target).device
    except (TargetError, ImportError) as error:
        raise click.UsageError(f"--target {target}: {error}") from error


def plan(
    device: Device,
    asked: int | None,
    workloads: Sequence[str],
    dtype: str | None,
    quick: bool,
    only: Collection[str] | None,
) -> Iterator[tuple[Case, int]]:
    """What to measure on a device, on all of its units. Raises UsageError for another number of threads."""
    units = device.isa.units
    if asked not in (None, units):
        raise click.UsageError(f"--threads {asked}: {device.label} runs on its {units} compute units")
    if not device.isa.is_gpu and units > len(process.allowed()):
        click.echo(f"{device.label} has {units} compute units, this process {len(process.allowed())} CPUs", err=True)
    for workload in workloads:
        for case in selected(workload, dtype, quick, only):
            if device.isa.f64 or case.dtype.name != "f64":
                yield case, units
