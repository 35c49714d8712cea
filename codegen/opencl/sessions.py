"""What calls share: a context and a queue for each device, and the kernels ready to launch on each queue."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from codegen.errors import ArgumentError
from codegen.opencl.builds import built
from codegen.opencl.devices import Device
from codegen.opencl.values import Argument, DeviceKernel, DeviceProgram

LEAST = 64
"""The bytes of the smallest buffer, as OpenCL has no empty ones."""
EVENTS = 64
"""The number of a queue's latest events that are remembered as its own."""


@dataclass(frozen=True)
class Session:
    """A context for one device, and an in-order queue."""

    context: Any
    queue: Any


_lock = threading.Lock()


def session(device: Device) -> Session:
    """The session for calls without a queue of their own."""
    with _lock:
        return _session(device)


@functools.cache
def _session(device: Device) -> Session:
    import pyopencl as cl

    context = cl.Context([device.handle])
    return Session(context, cl.CommandQueue(context))


def settle(queue: Any) -> None:
    """Finish a queue after a failure, so that no kernel uses memory that the caller frees."""
    import pyopencl as cl

    with suppress(cl.Error):
        queue.finish()


@dataclass
class Room:
    """What one call at a time uses: kernel objects, which store their arguments, and scratch arrays of `sizes` bytes.

    `last` is the event of the last launch.
    """

    kernels: tuple[Any, ...]
    scratch: tuple[Any, ...] = ()
    sizes: tuple[int, ...] = ()
    last: Any = None


@dataclass
class Lane:
    """A program on one queue. Each call takes a room and gives it back, so several threads may call concurrently.

    A room is given back while its kernels may still run, as later commands on the queue run after them. On an
    out-of-order queue, `fence` makes each launch, and the next call in the room, wait for the previous one.

    Appending to a list and popping from it are atomic in CPython, so no lock is needed.
    """

    queue: Any
    context: Any
    fence: bool
    make: Callable[[], tuple[Any, ...]]
    rooms: list[Room] = field(default_factory=list)
    _own: dict[Any, None] = field(default_factory=dict)

    def take(self, sizes: tuple[int, ...], wait: list[Any]) -> Room:
        """A room with scratch arrays of at least `sizes` bytes. The event that must end first is added to `wait`."""
        try:
            room = self.rooms.pop()
        except IndexError:
            room = Room(self.make())
        if self.fence and room.last is not None:
            wait.append(room.last)
        room.last = None
        if room.sizes != sizes and not (room.sizes and all(map(int.__ge__, room.sizes, sizes))):
            room.scratch, room.sizes = (), ()
            room.scratch = tuple(_memory(self.context, size) for size in sizes)
            room.sizes = sizes
        return room

    def give(self, room: Room, event: Any) -> None:
        """Take a room back, once the call's last event is enqueued."""
        self.rooms.append(room)
        if not self.fence:
            if len(self._own) >= EVENTS:
                self._own = {}
            self._own[event] = None

    def open(self, events: list[Any]) -> list[Any]:
        """The events that a launch must wait for explicitly: on an in-order queue, all but the queue's own."""
        own = self._own
        return [event for event in events if event not in own]


def lane_on(queue: Any, program: DeviceProgram, device: Device) -> Lane:
    """A lane for a program on a queue, with the program built for the queue's context.

    Raises ArgumentError if the queue belongs to another device, and ToolchainError.
    """
    import pyopencl as cl

    if (queue.device.name.strip(), queue.device.driver_version.strip()) != (device.name, device.driver):
        raise ArgumentError(
            f"queue belongs to {queue.device.name.strip()}, and the kernel is made for {device.label}. Remedy: a queue "
            f"of that device, or poly.compile(…, target='opencl:{queue.device.name.strip()}')"
        )
    fence = bool(queue.properties & cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE)
    compiled = built(program.source, queue.context, device.label, program.registers)
    return Lane(queue, queue.context, fence, lambda: tuple(_kernel(compiled, kernel) for kernel in program.kernels))


def _kernel(compiled: Any, kernel: DeviceKernel) -> Any:
    import pyopencl as cl

    made = cl.Kernel(compiled, kernel.name)
    made.set_arg_types([_packed(argument) for argument in kernel.arguments])
    return made


def _packed(argument: Argument) -> Any:
    """The NumPy type of an argument that is passed by value, which pyopencl packs; None for memory."""
    if argument.kind == "integer":
        return np.int64
    if argument.kind == "scalar":
        assert argument.dtype is not None
        return np.dtype(argument.dtype.numpy_name)
    return None


def _memory(context: Any, size: int) -> Any:
    import pyopencl as cl

    return cl.Buffer(context, cl.mem_flags.READ_WRITE, max(size, LEAST))
