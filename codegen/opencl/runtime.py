"""A device program as a function of arrays: NumPy's, or pyopencl's that lie on the device already.

The first call with arrays of new forms judges them (`codegen.arguments`); later ones with the same forms look up the
sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from codegen.arguments import Fitted, Values, bind, fit
from codegen.errors import DeviceError
from codegen.opencl.device_arrays import Gatherer, check_alike, check_context, fitted_sizes, memory
from codegen.opencl.devices import Device
from codegen.opencl.failures import device_error
from codegen.opencl.host_arrays import Copies, HostArrays
from codegen.opencl.launch_text import Functions, functions
from codegen.opencl.profile import Profile, Recorder, profiling_queue
from codegen.opencl.sessions import Lane, lane_on, session, settle
from codegen.opencl.values import DeviceProgram
from codegen.signature import Signature

LANES = 32
"""Queues whose kernels are kept ready."""
FORMS = 512
"""Forms of arrays whose sizes are kept."""
UNCHANGED = "Nothing has been changed."
PARTIAL = "Outputs may hold a part of the results."


@dataclass(frozen=True)
class Extent:
    """What a call's sizes come to: the sizes in order, and the bytes of each scratch array."""

    sizes: tuple[int, ...]
    scratch: tuple[int, ...]


class Orders(NamedTuple):
    """How a call is to be run: on which queue (None: the arrays' or our own), after which events, launched by what."""

    queue: Any
    wait_for: Sequence[Any]
    enqueue: Callable[..., Any]


class Executable:
    """A program on a device, built when it is first called. Calls may run side by side in several threads.

    `copies` counts the copies of NumPy arrays.
    """

    def __init__(self, program: DeviceProgram, signature: Signature, device: Device) -> None:
        self.program = program
        self.signature = signature
        self.device = device
        self.copies = Copies()
        self._names = [buffer.name for buffer in signature.buffers]
        self._outputs = [n for n, buffer in enumerate(signature.buffers) if buffer.kind in ("out", "inout")]
        self._lanes: dict[Any, Lane] = {}
        self._extents: dict[tuple[Any, ...], Extent] = {}

    def __repr__(self) -> str:
        return f"<{self.program.name} for {self.device}, {self.copies}>"

    def __call__(self, *values: Any, queue: Any = None, wait_for: Any = None, **keywords: Any) -> Any:
        """Run the program on arrays and scalars, in order or by name; sizes that no array tells come by keyword.

        NumPy arrays: the outputs are there when the call returns None. Arrays of pyopencl: the call puts the launches
        on `queue`, or the arrays' own, after `wait_for` and the arrays' events, and returns the last one's event.

        Raises ArgumentError with nothing changed, DeviceError, ToolchainError.
        """
        return self._call(values, keywords, Orders(queue, wait_for or (), self._functions.enqueue))

    def profile(self, *values: Any, queue: Any = None, wait_for: Any = None, **keywords: Any) -> Profile:
        """Run the program as a call does, wait for it, and say how long its kernels took by the device's clock.

        A `queue` of the caller's must have been made for profiling. Raises as a call does.
        """
        if queue is None:
            arrays = check_alike(self.signature, bind(self._names, values, keywords))
            context = arrays[0].context if arrays else self._own_queue.context
            queue = profiling_queue(context, self.device)
        recorder = Recorder(self._functions.enqueue)
        self._call(values, keywords, Orders(queue, wait_for or (), recorder.enqueue))
        return recorder.profile()

    @cached_property
    def _functions(self) -> Functions:
        return functions(self.program)

    @cached_property
    def _own_queue(self) -> Any:
        return session(self.device).queue

    @cached_property
    def _gather(self) -> Gatherer:
        return Gatherer(self.signature)

    def _call(self, values: Sequence[Any], keywords: Values, orders: Orders) -> Any:
        gathered = None if keywords else self._gather(values)
        extent = None if gathered is None else self._extents.get(gathered.form)
        if gathered is not None and extent is not None:
            return self._on_device(values, gathered.memories, gathered.arrays, extent, orders)
        bound = bind(self._names, values, keywords)
        given = {name: value for name, value in keywords.items() if name not in bound}
        extra = values[len(self._names) :]
        arrays = check_alike(self.signature, bound)
        if not arrays:
            return self._on_host(fit(self.signature, bound, extra, given, any_strides=True), given, orders)
        scalars, sizes = fitted_sizes(self.signature, bound, extra, given)
        extent = self._extent(sizes.values())
        if gathered is not None:
            self._remember(gathered.form, extent)
        alignment = self.device.alignment
        memories = [
            scalars[b.name] if b.kind == "scalar" else memory(b, bound[b.name], alignment)
            for b in self.signature.buffers
        ]
        return self._on_device([bound[name] for name in self._names], memories, arrays, extent, orders)

    def _extent(self, sizes: Iterable[int]) -> Extent:
        values = tuple(sizes)
        return Extent(values, tuple(max(0, size) for size in self._functions.scratch(*values)))

    def _remember(self, key: tuple[Any, ...], extent: Extent) -> None:
        if len(self._extents) >= FORMS:
            self._extents.clear()
        self._extents[key] = extent

    def _on_device(
        self, values: Sequence[Any], memories: Sequence[Any], arrays: Sequence[Any], extent: Extent, orders: Orders
    ) -> Any:
        """The call on arrays of the device's: returns when the launches are on the queue."""
        queue = orders.queue
        if queue is None:
            queue = next((array.queue for array in arrays if array.queue is not None), None)
        lane = self._lane(queue)
        check_context(arrays, lane.queue, lane.context)
        wait = lane.open([*orders.wait_for, *(event for array in arrays for event in array.events)])
        event = self._run(lane, memories, arrays, extent, wait, orders.enqueue)
        for n in self._outputs:
            values[n].add_event(event)
        return event

    def _on_host(self, fitted: Fitted, given: Values, orders: Orders) -> None:
        """The call on NumPy arrays: returns when the outputs are there."""
        arrays = {b.name: fitted.values[b.name] for b in self.signature.arrays}
        dense = {name: self._dense(array) for name, array in arrays.items()}
        values = {**fitted.values, **dense}
        sizes = fit(self.signature, values, (), given).sizes if self.signature.strided else fitted.sizes
        extent = self._extent(sizes.values())
        lane = self._lane(orders.queue)
        there = HostArrays(self.device, lane.queue, self.copies)
        with self._telling(dense.values(), extent, UNCHANGED):
            there.put(self.signature, dense)
        memories = [there.memory[name] if name in dense else values[name] for name in self._names]
        wait = [*orders.wait_for, *there.events]
        try:
            event = self._run(lane, memories, list(dense.values()), extent, wait, orders.enqueue)
            with self._telling(dense.values(), extent, PARTIAL):
                there.get(self.signature, dense, event)
        except BaseException:
            settle(lane.queue)
            raise
        for b in self.signature.outputs:
            if dense[b.name] is not arrays[b.name]:
                arrays[b.name][...] = dense[b.name]
                self.copies.add("on_host", arrays[b.name].nbytes)

    def _run(
        self,
        lane: Lane,
        memories: Sequence[Any],
        arrays: Sequence[Any],
        extent: Extent,
        wait: list[Any],
        enqueue: Callable[..., Any],
    ) -> Any:
        """Put the launches on the queue. The event of the last one; where there is none, of what was waited for."""
        room = None
        try:
            room = lane.take(extent.scratch, wait)
            launch = self._functions.launch
            launch(enqueue, lane.queue, wait or None, lane.fence, room, *memories, *room.scratch, *extent.sizes)
            event = room.last if room.last is not None else self._functions.marker(lane.queue, wait or None)
        except self._functions.errors as error:
            begun = room is not None and room.last is not None
            raise self._told(error, arrays, extent, PARTIAL if begun else UNCHANGED) from error
        lane.give(room, event)
        return event

    def _lane(self, queue: Any) -> Lane:
        """The lane of a queue, or of our own one."""
        if queue is None:
            queue = self._own_queue
        found = self._lanes.get(queue)
        if found is None:
            if len(self._lanes) >= LANES:
                self._lanes.clear()
            self._lanes[queue] = found = lane_on(queue, self.program, self.device)
        return found

    def _dense(self, array: np.ndarray) -> np.ndarray:
        """The array, or a copy with its elements one after the other."""
        if array.flags.c_contiguous:
            return array
        self.copies.add("on_host", array.nbytes)
        return np.ascontiguousarray(array)

    @contextmanager
    def _telling(self, arrays: Iterable[Any], extent: Extent, outputs: str) -> Iterator[None]:
        try:
            yield
        except self._functions.errors as error:
            raise self._told(error, arrays, extent, outputs) from error

    def _told(self, error: Exception, arrays: Iterable[Any], extent: Extent, outputs: str) -> DeviceError:
        wanted = sum(array.nbytes for array in arrays) + sum(extent.scratch)
        return device_error(error, self.device, wanted, outputs)
