"""NumPy arrays on a device: on their own memory where the device shares it, else in copies that are counted."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from codegen.opencl.devices import Device
from codegen.opencl.failures import amount
from codegen.program import Buffer
from codegen.signature import Signature


@dataclass
class Copies:
    """Copies of arrays that calls have made: to the device, back from it, and on the host to make an array dense."""

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
        told = [
            f"{getattr(self, way)} {words} ({amount(getattr(self, f'{way}_bytes'))})"
            for way, words in ways.items()
            if getattr(self, way)
        ]
        return f"copies: {', '.join(told) or 'none'}"


class HostArrays:
    """The arrays of one call in memory that kernels can use, when the `events` have come.

    `memory` is by name; None for an array without elements.
    """

    def __init__(self, device: Device, queue: Any, copies: Copies) -> None:
        self.device = device
        self.context = queue.context
        self.queue = queue
        self.copies = copies
        self.memory: dict[str, Any] = {}
        self.events: list[Any] = []
        self._shared: dict[str, np.ndarray] = {}

    def put(self, signature: Signature, values: Mapping[str, np.ndarray]) -> None:
        """Make the memory of all arrays; `values` are dense.

        An output is put there with what it holds: a kernel need not write all of it.
        """
        for buffer in signature.arrays:
            array = values[buffer.name]
            self.memory[buffer.name] = self._put(buffer, array) if array.size else None

    def get(self, signature: Signature, values: Mapping[str, np.ndarray], after: Any) -> None:
        """Bring the outputs to the host after an event, and wait until they are there."""
        events, maps = [after], []
        for buffer in signature.outputs:
            array, memory = values[buffer.name], self.memory[buffer.name]
            if buffer.name in self._shared:
                mapped, event = self._mapped(array, memory, after)
                maps.append(mapped)
                events.append(event)
            elif memory is not None:
                events.append(self._copied_back(array, memory, after))
        for event in reversed(events):
            event.wait()
        for mapped in maps:
            mapped.base.release(self.queue)

    def _put(self, buffer: Buffer, array: np.ndarray) -> Any:
        for name, other in self._shared.items():
            if other.ctypes.data == array.ctypes.data and other.nbytes == array.nbytes:
                self._shared[buffer.name] = array
                return self.memory[name]
        overlaps = any(np.may_share_memory(array, other) for other in self._shared.values())
        if self.device.shares_memory and not overlaps:
            self._shared[buffer.name] = array
            return self._at(buffer, array)
        return self._copied(buffer, array)

    def _at(self, buffer: Buffer, array: np.ndarray) -> Any:
        """Memory where the array lies. OpenCL allows one such buffer for a piece of memory."""
        import pyopencl as cl

        return cl.Buffer(self.context, _access(buffer) | cl.mem_flags.USE_HOST_PTR, hostbuf=array)

    def _copied(self, buffer: Buffer, array: np.ndarray) -> Any:
        import pyopencl as cl

        memory = cl.Buffer(self.context, _access(buffer), array.nbytes)
        self.events.append(cl.enqueue_copy(self.queue, memory, array, is_blocking=False))
        self.copies.add("to_device", array.nbytes)
        return memory

    def _mapped(self, array: np.ndarray, memory: Any, after: Any) -> tuple[Any, Any]:
        """Lets the host see what a kernel wrote where the array lies."""
        import pyopencl as cl

        mapped, event = cl.enqueue_map_buffer(
            self.queue,
            memory,
            cl.map_flags.READ,
            0,
            (array.nbytes,),
            np.dtype(np.uint8),
            wait_for=[after],
            is_blocking=False,
        )
        return mapped, event

    def _copied_back(self, array: np.ndarray, memory: Any, after: Any) -> Any:
        import pyopencl as cl

        self.copies.add("from_device", array.nbytes)
        return cl.enqueue_copy(self.queue, array, memory, wait_for=[after], is_blocking=False)


def _access(buffer: Buffer) -> Any:
    import pyopencl as cl

    return cl.mem_flags.READ_ONLY if buffer.kind == "in" else cl.mem_flags.READ_WRITE
