"""The arrays that candidates are run on, in a device's memory, with guards around them."""

from __future__ import annotations

from typing import Any

import numpy as np

from poly.measure.data import GUARD, Arena, Array
from poly.measure.orders import Data

SET = np.full(1, 0xFF, np.uint8)
"""What fills a guard."""


class DeviceArena(Arena):
    """The same arguments as a C kernel's, on a device: `values` are the host's copies, `arguments` what a kernel takes.

    `alignment` is what a part of a buffer must start at a multiple of, in bytes.
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
        """What the kernel reads gets its first values, which the device keeps."""
        from pyopencl import enqueue_copy

        for name, first in self._firsts.items():
            enqueue_copy(self._queue, self.arguments[name].base_data, first, byte_count=self.values[name].nbytes)
        self._queue.finish()

    def forget_events(self) -> None:
        """The queue keeps the order; pyopencl would wait for an array's events where there are several."""
        for name in self.written:
            self.arguments[name].events.clear()

    def overrun(self) -> str:
        for name, buffer in self._buffers.items():
            end = self._guard + self.values[name].nbytes
            if not all((self._bytes(buffer, start) == SET).all() for start in (0, end)):
                return name
        return ""

    def fetch(self) -> None:
        """Bring what the kernel has written to the host."""
        for name in self.written:
            if self.values[name].size:
                self.values[name][...] = self.arguments[name].get(self._queue)

    def _placed(self, name: str, values: Array) -> Any:
        """The array on the device, its first values there, within a buffer that is filled with guards."""
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
        """A guard's bytes."""
        from pyopencl import enqueue_copy

        found = np.empty(self._guard, np.uint8)
        enqueue_copy(self._queue, found, buffer, src_offset=start)
        return found
