"""Where OpenCL contenders perform: a device with a queue that keeps times, arrays that lie there, and the clock.

The clock is the device's own. A gate holds the queue until all launches of a few calls are in it, so what the host
takes to put them there is no part of the figure; a kernel that wakes the device's threads goes first. The time runs
from its end to the end of the last launch: all launches of the calls, and what lies between them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.arrays import Array
from benchmarks.contender import Failed, NotInstalled
from codegen.clock import Timed
from codegen.opencl.devices import Device, find
from microkernels.dtypes import DType
from microkernels.errors import TargetError

WAKE = """
__kernel void wake(__global float *sink, int steps)
{
    float x = sink[get_global_id(0)];
    for (int step = 0; step < steps; step++) x = x * 0.5f + 1.0f;
    sink[get_global_id(0)] = x;
}
"""
STEPS = 20_000
ITEMS = 64
"""Some 50 microseconds, on four groups of 64 items for each compute unit."""

CALLS = 8
"""How many calls are in the queue at a time: pyopencl's arrays wait for their oldest events from the twelfth on."""

Enqueue = Callable[[], Any]
"""Puts launches on the queue, and returns the last one's event."""


@dataclass(frozen=True)
class Stage:
    """A device's context and queue, with what the clock needs."""

    device: Device
    context: Any
    queue: Any
    wake: Enqueue

    def upload(self, arrays: Sequence[Array]) -> tuple[Any, ...]:
        """Copies of the arrays on the device."""
        from pyopencl.array import to_device

        return tuple(to_device(self.queue, array) for array in arrays)

    def buffer(self, size: int) -> Any:
        """Memory on the device, in bytes."""
        import pyopencl as cl

        return cl.Buffer(self.context, cl.mem_flags.READ_WRITE, size)

    def build(self, source: str) -> Any:
        """The program. Raises Failed with the device's log."""
        import pyopencl as cl

        try:
            return cl.Program(self.context, source).build()
        except cl.Error as error:
            raise Failed(f"the device's compiler: {error}") from error

    def timed(self, enqueue: Enqueue) -> Timed:
        """The device's seconds for so many calls."""
        return lambda times: sum(self._calls(enqueue, min(CALLS, times - n)) for n in range(0, times, CALLS))

    def _calls(self, enqueue: Enqueue, count: int) -> float:
        import pyopencl as cl

        gate = cl.UserEvent(self.context)
        try:
            cl.enqueue_barrier(self.queue, wait_for=[gate])
            start = self.wake()
            events = [enqueue() for _ in range(count)]
            self.queue.flush()
        finally:
            gate.set_status(cl.command_execution_status.COMPLETE)
        events[-1].wait()
        return 1e-9 * float(events[-1].profile.end - start.profile.end)


@functools.cache
def stage(target: str) -> Stage:
    """The device that a target names, set up. Raises NotInstalled where there is none."""
    try:
        device = find(target)
        handle = device.handle
    except (TargetError, ImportError) as error:
        raise NotInstalled(str(error)) from error
    import pyopencl as cl

    context = cl.Context([handle])
    queue = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    items = 4 * ITEMS * device.isa.units
    sink = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4 * items)
    program = cl.Program(context, WAKE).build()
    return Stage(device, context, queue, launch(queue, program, "wake", (items,), (ITEMS,), sink, np.int32(STEPS)))


def scalar(dtype: DType) -> str:
    """The lines atop a source that make `T` the scalar type."""
    if dtype.name == "f64":
        return "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#define T double\n"
    return "#define T float\n"


def launch(
    queue: Any, program: Any, name: str, items: tuple[int, ...], group: tuple[int, ...] | None, *arguments: Any
) -> Enqueue:
    """A kernel's launch with its arguments, which OpenCL itself does not keep alive."""
    import pyopencl as cl

    kernel = cl.Kernel(program, name)
    kernel.set_args(*arguments)

    def enqueue(_alive: Any = arguments) -> Any:
        return cl.enqueue_nd_range_kernel(queue, kernel, items, group)

    return enqueue
