"""Device programs as candidates: built by the device's compiler, and timed by the device's own clock."""

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
from poly.measure.bench import Bench, Candidate
from poly.measure.device_data import DeviceArena
from poly.measure.flush import flusher
from poly.measure.orders import Check, Failed, Setup

NANOSECOND = 1e-9


class DeviceBench(Bench):
    """The bench of device programs, each on the same arrays in the device's memory."""

    _arena: DeviceArena

    def __init__(self, setup: Setup) -> None:
        import pyopencl as cl

        process.release(setup.cores.cpus)
        process.keep_device_threads()
        self._device = find(setup.device)
        profiling = cl.command_queue_properties.PROFILING_ENABLE
        self._context = cl.Context([self._device.handle])  # not every platform's queue keeps it
        self._queue = cl.CommandQueue(self._context, properties=profiling)
        super().__init__(setup, DeviceArena(setup.data, self._queue, self._device.alignment))
        self._flush = device_flusher(setup, self._device, self._queue)

    def check(self, order: Check) -> float | Failed:
        try:
            return super().check(order)
        except ToolchainError as error:
            return Failed(f"does not compile: {error}")

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

    def flush(self) -> None:
        self._flush()

    def settle(self) -> None:
        self._arena.fetch()


def in_turn(queue: Any, call: Callable[[], Any], calls: int) -> float:
    """Seconds of so many calls in a row on an in-order queue that keeps the times of events.

    All are in the queue before the first may start, so the device never waits for this program: what is told is the
    time from that start to the end of the last launch, by the device's clock, with whatever lies between launches.
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
    """A function that empties the caches: streaming through this CPU's cores, or filling a buffer on a GPU."""
    if not setup.flush or not device.isa.is_gpu:
        return flusher(setup.flush, setup.cores.threads)
    import pyopencl as cl

    memory = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, setup.flush)

    def flush() -> None:
        cl.enqueue_fill_buffer(queue, memory, np.zeros(1, np.uint8), 0, setup.flush)
        queue.finish()

    return flush
