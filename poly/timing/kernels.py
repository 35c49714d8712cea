"""The benchmark of a compiled kernel: its arguments checked, its work counted, its bound looked up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from codegen.errors import ArgumentError
from codegen.ir.signature import Signature
from codegen.toolchain.compiler import compiler_name
from microkernels.errors import shown
from microkernels.opencl_isa import is_gpu
from poly.analysis.facts import facts
from poly.analysis.work import Work, work
from poly.ir.nest import Nest
from poly.machine import machine
from poly.machine.calibration import at_hand
from poly.model.host import calibrated
from poly.records.key import device_name, driver_name, machine_name
from poly.timing.benchmark import Benchmark, Setting, TimedCalls, benchmark, restorer
from poly.timing.yardstick import Yardstick, gpu_yardstick, yardstick
from poly.version import __version__

if TYPE_CHECKING:
    from codegen.calls.clock import Timed
    from codegen.opencl.devices import Device
    from poly.scheduled import Scheduled


@dataclass(frozen=True)
class KernelCall:
    """A kernel's arguments: the sizes that they tell, the arrays that are written, and a clock for calls with them."""

    sizes: Mapping[str, int]
    written: Sequence[Any]
    timed: Callable[[], Timed]
    threads: int
    device: Device | None = None


def benchmark_kernel(kernel: Scheduled, call: KernelCall, seconds: float) -> Benchmark:
    """Measure a kernel on the arrays of a call.

    Raises:
        ArgumentError: `seconds` is not a positive number.
        ToolchainError: the machine's peak and bandwidths are neither known nor to be measured.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < inf:
        raise ArgumentError(f"seconds must be a positive number, the most to measure for; got {shown(seconds)}")
    nest = kernel.nest.with_sizes({name: call.sizes[name] for name in kernel.nest.sizes})
    done = work(nest)
    subject = TimedCalls(call.timed(), facts(nest).calls, restorer(call.written))
    return benchmark(subject, _setting(kernel, nest, call), done, _limit(kernel, nest, done, call), float(seconds))


def named(signature: Signature, arrays: Sequence[Any]) -> dict[str, Any]:
    """Arguments by position as arguments by name."""
    return {buffer.name: value for buffer, value in zip(signature.buffers, arrays, strict=False)}


def _setting(kernel: Scheduled, nest: Nest, call: KernelCall) -> Setting:
    device = call.device
    return Setting(
        nest=nest.name,
        sizes=tuple(nest.fixed),
        target=kernel.isa.name,
        threads=call.threads,
        origin=kernel.origin if kernel.record is None else str(kernel.record),
        poly=__version__,
        compiler=compiler_name() if device is None else driver_name(device),
        machine=machine_name() if device is None else device_name(device),
        packed=kernel.packed_before,
    )


def _limit(kernel: Scheduled, nest: Nest, done: Work | None, call: KernelCall) -> Yardstick | None:
    """The rate that bounds the kernel: the peak of its instructions, or the bandwidth of where the arrays fit."""
    if done is None:
        return None
    if is_gpu(kernel.isa):
        return gpu_yardstick(done)
    here = calibrated(kernel.isa)
    if here is None:
        return None
    dtype = next((array.dtype.name for array in nest.arguments if array.name in nest.written), "")
    return yardstick(done, machine(), at_hand(here), dtype, call.threads)
