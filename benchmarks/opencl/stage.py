"""The stage of OpenCL contenders: a device with a profiling queue, arrays in its memory, and the clock.

The clock is the device's own. A gate holds the queue until all launches of a few calls are in it, so the host's time to
enqueue them is not measured. A call that isn't counted goes first: it wakes the device's threads and warms its caches.
The time runs from its end to the end of the last launch, and so includes the gaps between launches.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.arrays import Array
from benchmarks.contender import Failed, NotInstalled
from codegen.calls.clock import Timed
from codegen.opencl.devices import Device, find
from microkernels.dtypes import DType
from microkernels.errors import TargetError

CALLS = 7
"""The calls that are timed at once: with more than a dozen events, pyopencl's arrays wait for the oldest."""

Enqueue = Callable[[], Any]
"""Enqueues launches, and returns the last one's event."""


@dataclass(frozen=True)
class Stage:
    """A device, its context, and a profiling queue."""

    device: Device
    context: Any
    queue: Any

    def upload(self, arrays: Sequence[Array]) -> tuple[Any, ...]:
        """Copies of the arrays on the device."""
        from pyopencl.array import to_device

        return tuple(to_device(self.queue, array) for array in arrays)

    def buffer(self, size: int) -> Any:
        """A buffer of `size` bytes on the device."""
        import pyopencl as cl

        return cl.Buffer(self.context, cl.mem_flags.READ_WRITE, size)

    def build(self, source: str) -> Any:
        """The built program. Raises Failed with the device's log."""
        import pyopencl as cl

        try:
            return cl.Program(self.context, source).build()
        except cl.Error as error:
            raise Failed(f"the device's compiler: {error}") from error

    def timed(self, enqueue: Enqueue) -> Timed:
        """The clock: the device's seconds for a number of calls."""
        return lambda times: sum(self._calls(enqueue, min(CALLS, times - n)) for n in range(0, times, CALLS))

    def _calls(self, enqueue: Enqueue, count: int) -> float:
        import pyopencl as cl

        gate = cl.UserEvent(self.context)
        try:
            cl.enqueue_barrier(self.queue, wait_for=[gate])
            first, *_, last = (enqueue() for _ in range(count + 1))
            self.queue.flush()
        finally:
            gate.set_status(cl.command_execution_status.COMPLETE)
        last.wait()
        return 1e-9 * float(last.profile.end - first.profile.end)


@functools.cache
def stage(target: str) -> Stage:
    """The stage on the device that a target names. Raises NotInstalled if there is none."""
    try:
        device = find(target)
        handle = device.handle
    except (TargetError, ImportError) as error:
        raise NotInstalled(str(error)) from error
    import pyopencl as cl

    context = cl.Context([handle])
    return Stage(device, context, cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE))


def scalar(dtype: DType) -> str:
    """The first lines of a source, which make `T` the scalar type."""
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
