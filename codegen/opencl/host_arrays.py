"""NumPy arrays on a device: in place if the device shares the host's memory, else in copies, which are counted."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from codegen.ir.program import Buffer
from codegen.opencl.devices import Device
from codegen.opencl.failures import amount

BYTES = np.dtype(np.uint8)


@dataclass
class Copies:
    """The copies of arrays that calls have made: to the device, from it, and on the host to make an array dense."""

    to_device: int = 0
    to_device_bytes: int = 0
    from_device: int = 0
    from_device_bytes: int = 0
    on_host: int = 0
    on_host_bytes: int = 0
    _lock: Any = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def count(self) -> int:
        return self.to_device + self.from_device + self.on_host

    @property
    def bytes(self) -> int:
        return self.to_device_bytes + self.from_device_bytes + self.on_host_bytes

    def add(self, way: str, size: int) -> None:
        with self._lock:
            setattr(self, way, getattr(self, way) + 1)
            setattr(self, f"{way}_bytes", getattr(self, f"{way}_bytes") + size)

    def __str__(self) -> str:
        ways = {"to_device": "to the device", "from_device": "from the device", "on_host": "to make arrays dense"}
        parts = [
            f"{getattr(self, way)} {words} ({amount(getattr(self, f'{way}_bytes'))})"
            for way, words in ways.items()
            if getattr(self, way)
        ]
        return f"copies: {', '.join(parts) or 'none'}"


class HostArrays:
    """The arrays of one call in memory that kernels can use once the `events` are complete.

    `memories` are in the order of the arguments: scalars unchanged, None for an array without elements. The arrays must
    be dense.
    """

    def __init__(
        self, device: Device, queue: Any, copies: Copies, buffers: Sequence[Buffer], values: Sequence[Any]
    ) -> None:
        self.device = device
        self.context = queue.context
        self.queue = queue
        self.copies = copies
        self.events: list[Any] = []
        self._buffers = buffers
        self._values = values
        self._shared: list[tuple[np.ndarray, Any]] = []
        self.memories = [
            value if buffer.kind == "scalar" else self._put(buffer, value)
            for buffer, value in zip(buffers, values, strict=True)
        ]

    def get(self, after: Any) -> None:
        """Copy the outputs to the host after an event, and wait until they are there."""
        import pyopencl as cl

        event, maps = after, []
        for buffer, array, memory in zip(self._buffers, self._values, self.memories, strict=True):
            if memory is None or buffer.kind not in ("out", "inout"):
                continue
            if any(memory is shared for _, shared in self._shared):
                mapped, event = cl.enqueue_map_buffer(
                    self.queue, memory, cl.map_flags.READ, 0, (array.nbytes,), BYTES, "C", None, [event], False
                )
                maps.append(mapped)
            else:
                event = cl.enqueue_copy(self.queue, array, memory, wait_for=[event], is_blocking=False)
                self.copies.add("from_device", array.nbytes)
        event.wait()
        for mapped in maps:
            mapped.base.release(self.queue)

    def _put(self, buffer: Buffer, array: np.ndarray) -> Any:
        """Memory for an array. An output is copied in too, as a kernel need not write all of it."""
        if array.size == 0:
            return None
        if not self.device.shares_memory:
            return self._copied(buffer, array)
        for other, memory in self._shared:
            if np.may_share_memory(array, other):
                same = array.nbytes == other.nbytes and array.ctypes.data == other.ctypes.data
                return memory if same else self._copied(buffer, array)
        memory = self._at(array)
        self._shared.append((array, memory))
        return memory

    def _at(self, array: np.ndarray) -> Any:
        """A buffer in place of the array. OpenCL allows only one such buffer for a piece of memory.

        Some platforms copy read-only buffers, so only arrays that are not writeable become one.
        """
        import pyopencl as cl

        access = cl.mem_flags.READ_WRITE if array.flags.writeable else cl.mem_flags.READ_ONLY
        return cl.Buffer(self.context, access | cl.mem_flags.USE_HOST_PTR, hostbuf=array)

    def _copied(self, buffer: Buffer, array: np.ndarray) -> Any:
        import pyopencl as cl

        access = cl.mem_flags.READ_ONLY if buffer.kind == "in" else cl.mem_flags.READ_WRITE
        memory = cl.Buffer(self.context, access, array.nbytes)
        self.events.append(cl.enqueue_copy(self.queue, memory, array, is_blocking=False))
        self.copies.add("to_device", array.nbytes)
        return memory
