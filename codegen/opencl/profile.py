"""The running times of kernels, by the device's clock."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from codegen.opencl.devices import Device

NANO = 1e-9


@dataclass(frozen=True)
class Profile:
    """The times of a call's kernels: `launches` are names and seconds, in order.

    `seconds` is from the start of the first to the end of the last, including the gaps.
    """

    seconds: float
    launches: tuple[tuple[str, float], ...]


@dataclass
class Recorder:
    """Stands in for pyopencl's `enqueue_nd_range_kernel`, and keeps the events."""

    plain: Callable[..., Any]
    events: list[tuple[str, Any]] = field(default_factory=list)

    def enqueue(self, queue: Any, kernel: Any, *rest: Any) -> Any:
        event = self.plain(queue, kernel, *rest)
        self.events.append((kernel.function_name, event))
        return event

    def profile(self) -> Profile:
        """Wait for all events, and return their times."""
        for _, event in self.events:
            event.wait()
        times = [(name, event.profile.start, event.profile.end) for name, event in self.events]
        first, last = min((t[1] for t in times), default=0), max((t[2] for t in times), default=0)
        return Profile((last - first) * NANO, tuple((name, (end - start) * NANO) for name, start, end in times))


@functools.lru_cache(maxsize=16)
def profiling_queue(context: Any, device: Device) -> Any:
    """A queue whose events record times."""
    import pyopencl as cl

    return cl.CommandQueue(context, device.handle, cl.command_queue_properties.PROFILING_ENABLE)
