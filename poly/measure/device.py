"""Device programs as candidates: built by the device's compiler, and timed by its clock on arrays in its memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from codegen.errors import ToolchainError
from codegen.opencl.devices import Device, find
from codegen.opencl.runtime import Executable
from codegen.opencl.values_json import from_json
from poly.measure import process
from poly.measure.bench import Bench, Candidate, flusher
from poly.measure.data import GUARD, Arena, Array
from poly.measure.orders import Check, Data, OrderFailed, Setup

NANOSECOND = 1e-9
SET = np.full(1, 0xFF, np.uint8)
"""The byte that fills a guard."""


class DeviceArena(Arena):
    """The arguments of a kernel on a device: `values` are the host's copies, `arguments` those passed to the kernel.

    `alignment` is the required alignment of sub-buffers, in bytes.
    """

    def __init__(self, data: Data, queue: Any, alignment: int) -> None:
        super().__init__(data)
        self._queue = queue
        self._guard = -(-GUARD // alignment) * alignment
        self._buffers: dict[str, Any] = {}
        self._firsts: dict[str, Any] = {}
        self.arguments = {
            name: self._placed(name, value) if isinstance(value, np.ndarray) else value
            for name, value in self.values.items()
        }

    def reset(self) -> None:
        super().reset()
        for name in self.written:
            if name not in self._firsts:
                self._write(name, self.values[name])

    def restart(self) -> None:
        """Restore the initial values of arrays that the kernel updates from copies on the device."""
        from pyopencl import enqueue_copy

        for name, first in self._firsts.items():
            enqueue_copy(self._queue, self.arguments[name].base_data, first, byte_count=self.values[name].nbytes)
        self._queue.finish()

    def forget_events(self) -> None:
        """Forget the arrays' events, for which pyopencl would wait; the queue is in order."""
        for name in self.written:
            self.arguments[name].events.clear()

    def overrun(self) -> str:
        for name, buffer in self._buffers.items():
            end = self._guard + self.values[name].nbytes
            if not all((self._bytes(buffer, start) == SET).all() for start in (0, end)):
                return name
        return ""

    def fetch(self) -> None:
        """Copy the arrays that the kernel has written to the host."""
        for name in self.written:
            if self.values[name].size:
                self.values[name][...] = self.arguments[name].get(self._queue)

    def _placed(self, name: str, values: Array) -> Any:
        """The array on the device with its initial values, inside a buffer with guards on either side."""
        import pyopencl as cl
        from pyopencl.array import Array as DeviceArray

        flags, size = cl.mem_flags.READ_WRITE, values.nbytes
        whole = cl.Buffer(self._queue.context, flags, size + 2 * self._guard)
        cl.enqueue_fill_buffer(self._queue, whole, SET, 0, size + 2 * self._guard)
        self._buffers[name] = whole
        part = whole.get_sub_region(self._guard, max(1, size))
        if size:
            cl.enqueue_copy(self._queue, part, values)
        if name in self._starts:
            self._firsts[name] = cl.Buffer(self._queue.context, flags | cl.mem_flags.COPY_HOST_PTR, hostbuf=values)
        return DeviceArray(self._queue, values.shape, values.dtype, data=part)

    def _write(self, name: str, values: Array) -> None:
        from pyopencl import enqueue_copy

        if values.size:
            enqueue_copy(self._queue, self.arguments[name].base_data, values)

    def _bytes(self, buffer: Any, start: int) -> Array:
        """The bytes of a guard."""
        from pyopencl import enqueue_copy

        found = np.empty(self._guard, np.uint8)
        enqueue_copy(self._queue, found, buffer, src_offset=start)
        return found


class DeviceBench(Bench):
    """The bench of device programs, which all share the same arrays in the device's memory."""

    _arena: DeviceArena

    def __init__(self, setup: Setup) -> None:
        import pyopencl as cl

        process.release(setup.cores.cpus)
        process.keep_device_threads()
        self._device = find(setup.device)
        profiling = cl.command_queue_properties.PROFILING_ENABLE
        self._context = cl.Context([self._device.handle])  # kept, since not every platform's queue holds a reference
        self._queue = cl.CommandQueue(self._context, properties=profiling)
        arena = DeviceArena(setup.data, self._queue, self._device.alignment)
        super().__init__(setup, arena, device_flusher(setup, self._device, self._queue))

    def check(self, order: Check) -> float | OrderFailed:
        try:
            return super().check(order)
        except ToolchainError as error:
            return OrderFailed(f"does not compile: {error}")

    def load(self, path: str) -> Candidate:
        data = self._setup.data
        executable = Executable(from_json(Path(path).read_text()), data.signature, self._device)
        sizes = {name: value for name, value in data.sizes if name in data.signature.given}

        def call() -> Any:
            self._arena.forget_events()
            return executable(*self._arena.arguments.values(), queue=self._queue, **sizes)

        def timed(calls: int) -> float:
            return in_turn(self._queue, call, calls)

        return lambda: timed

    def settle(self) -> None:
        self._arena.fetch()


def in_turn(queue: Any, call: Callable[[], Any], calls: int) -> float:
    """Seconds of `calls` calls in a row on an in-order queue with profiling enabled.

    All are enqueued before the first may start, so the device never waits for this program. The time runs from that
    start to the end of the last launch by the device's clock, including the gaps between launches.
    """
    import pyopencl as cl

    gate = cl.UserEvent(queue.context)
    try:
        start = cl.enqueue_marker(queue, wait_for=[gate])
        for _ in range(calls):
            last = call()
    finally:
        gate.set_status(cl.command_execution_status.COMPLETE)
    last.wait()
    return max(0, int(last.profile.end) - int(start.profile.end)) * NANOSECOND


def device_flusher(setup: Setup, device: Device, queue: Any) -> Callable[[], None]:
    """A function that empties the caches, by streaming on the CPU's cores or by filling a buffer on a GPU."""
    if not setup.flush or not device.isa.is_gpu:
        return flusher(setup.flush, setup.cores.threads)
    import pyopencl as cl

    memory = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, setup.flush)

    def flush() -> None:
        cl.enqueue_fill_buffer(queue, memory, np.zeros(1, np.uint8), 0, setup.flush)
        queue.finish()

    return flush
