"""A device program as a function of arrays: NumPy's, or pyopencl's, which are already on the device.

The first call with arrays of a new form checks them (`codegen.calls.arguments`); later calls of the same form look up
the sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from codegen.calls.arguments import Values, bind, fit
from codegen.errors import DeviceError
from codegen.ir.signature import Signature
from codegen.opencl.device_arrays import check_alike, check_context, fitted_sizes, memory
from codegen.opencl.devices import Device
from codegen.opencl.failures import device_error
from codegen.opencl.gathering import DeviceGatherer, HostGatherer
from codegen.opencl.host_arrays import Copies, HostArrays
from codegen.opencl.launch_text import Functions, functions
from codegen.opencl.profile import Profile, Recorder, profiling_queue
from codegen.opencl.sessions import Lane, Room, lane_on, session, settle
from codegen.opencl.values import DeviceProgram
from codegen.system.forks import check_drivers
from microkernels.cached import cached_property

LANES = 32
"""The number of queues whose kernels are kept ready."""
FORMS = 512
"""The number of forms of arrays whose sizes are kept."""
COMPLETE = 0
"""OpenCL's CL_COMPLETE: the status of a command that has ended without an error."""
UNCHANGED = "Nothing has been changed."
PARTIAL = "Outputs may hold a part of the results."


@dataclass(frozen=True)
class Extent:
    """The sizes of a call, in order, and the bytes of each scratch array.

    A call is `idle`, and launches nothing, if no output has an element.
    """

    sizes: tuple[int, ...]
    scratch: tuple[int, ...]
    idle: bool


class Orders(NamedTuple):
    """How a call runs: its queue (None: the arrays' or our own), the events to wait for, and the launching function."""

    queue: Any
    wait_for: Sequence[Any]
    enqueue: Callable[..., Any]


class Executable:
    """A program on a device, built when it is first called. Several threads may call it at the same time.

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
        """Run the program on arrays and scalars, by position or name; sizes that no array determines go by keyword.

        With NumPy arrays the outputs are complete when the call returns None. With pyopencl's arrays the call enqueues
        the launches on `queue`, or the arrays' own, after `wait_for` and the arrays' events, and returns the last
        launch's event.

        Raises ArgumentError with nothing changed, DeviceError, ToolchainError.
        """
        return self._call(values, keywords, Orders(queue, wait_for or (), self._functions.enqueue))

    def build(self) -> None:
        """Build the program now, rather than in the first call. Raises ToolchainError, and pyopencl's errors."""
        lane = self._lane(None)
        lane.rooms.append(Room(lane.make()))

    def profile(self, *values: Any, queue: Any = None, wait_for: Any = None, **keywords: Any) -> Profile:
        """Run the program as a call does, wait for it, and return its kernels' times by the device's clock.

        A `queue` passed by the caller must have profiling enabled. Raises as a call does.
        """
        check_drivers()
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
    def _gather_on_device(self) -> DeviceGatherer:
        return DeviceGatherer(self.signature)

    @cached_property
    def _gather_on_host(self) -> HostGatherer:
        return HostGatherer(self.signature)

    def _call(self, values: Sequence[Any], keywords: Values, orders: Orders) -> Any:
        """Run a call: by a fast path for positional arguments of a known form, else after a check of the arguments."""
        check_drivers()
        form = None
        if not keywords:
            there = self._gather_on_device(values)
            form = self._gather_on_host(values) if there is None else there.form
            extent = None if form is None else self._extents.get(form)
            if extent is not None:
                if there is None:
                    return self._on_host(values, extent, orders)
                return self._on_device(values, there.memories, there.arrays, extent, orders)
        bound = bind(self._names, values, keywords)
        given = {name: value for name, value in keywords.items() if name not in bound}
        extra = values[len(self._names) :]
        arrays = check_alike(self.signature, bound)
        if arrays:
            return self._judge_on_device(bound, extra, given, arrays, form, orders)
        return self._judge_on_host(bound, extra, given, form, orders)

    def _judge_on_device(
        self, bound: Values, extra: Sequence[Any], given: Values, arrays: Sequence[Any], form: Any, orders: Orders
    ) -> Any:
        scalars, sizes = fitted_sizes(self.signature, bound, extra, given)
        extent = self._extent(sizes.values(), form)
        alignment = self.device.alignment
        memories = [
            scalars[b.name] if b.kind == "scalar" else memory(b, bound[b.name], alignment)
            for b in self.signature.buffers
        ]
        return self._on_device([bound[name] for name in self._names], memories, arrays, extent, orders)

    def _judge_on_host(self, bound: Values, extra: Sequence[Any], given: Values, form: Any, orders: Orders) -> None:
        """The call on arrays that are dense, or are copied to be."""
        fitted = fit(self.signature, bound, extra, given, any_strides=True)
        values = dict(fitted.values)
        for b in self.signature.arrays:
            values[b.name] = self._dense(values[b.name])
        sizes = fit(self.signature, values, (), given).sizes if self.signature.strided else fitted.sizes
        self._on_host([values[name] for name in self._names], self._extent(sizes.values(), form), orders)
        for b in self.signature.outputs:
            if values[b.name] is not fitted.values[b.name]:
                fitted.values[b.name][...] = values[b.name]
                self.copies.add("on_host", values[b.name].nbytes)

    def _extent(self, sizes: Iterable[int], form: Any) -> Extent:
        """The extent for some sizes, kept for arguments of this form."""
        values = tuple(sizes)
        idle = self._is_idle(dict(zip(self.signature.sizes, values, strict=True)))
        scratch = () if idle else tuple(max(0, size) for size in self._functions.scratch(*values))
        extent = Extent(values, scratch, idle)
        if form is not None:
            if len(self._extents) >= FORMS:
                self._extents.clear()
            self._extents[form] = extent
        return extent

    def _is_idle(self, sizes: Values) -> bool:
        """Whether no output has an element, so that a call has nothing to do."""
        return all(any(extent.evaluate(sizes) == 0 for extent in b.shape) for b in self.signature.outputs)

    def _on_device(
        self, values: Sequence[Any], memories: Sequence[Any], arrays: Sequence[Any], extent: Extent, orders: Orders
    ) -> Any:
        """The call on the device's arrays: returns when the launches are enqueued."""
        queue = orders.queue
        wait = [*orders.wait_for]
        for array in arrays:
            wait += array.events
            if queue is None:
                queue = array.queue
        lane = self._lane(queue)
        others = arrays if queue is None else [array for array in arrays if array.queue is not queue]
        check_context(others, lane.queue, lane.context)
        foreign = lane.open(wait) if wait else wait
        if foreign and not lane.fence:
            foreign = _pending(foreign, arrays)
        event = self._run(lane, memories, arrays, extent, foreign, orders.enqueue)
        for n in self._outputs:
            if foreign or lane.fence:
                values[n].add_event(event)
            else:
                values[n].events[:] = (event,)  # the queue runs in order: what is left out ends before it
        return event

    def _on_host(self, values: Sequence[Any], extent: Extent, orders: Orders) -> None:
        """The call on dense NumPy arrays: returns when the outputs are complete."""
        lane = self._lane(orders.queue)
        arrays = [value for value, b in zip(values, self.signature.buffers, strict=True) if b.kind != "scalar"]
        outputs = UNCHANGED
        try:
            there = HostArrays(self.device, lane.queue, self.copies, self.signature.buffers, values)
            wait = [*orders.wait_for, *there.events]
            event = self._run(lane, there.memories, arrays, extent, wait, orders.enqueue)
            outputs = PARTIAL
            there.get(event)
        except self._functions.errors as error:
            settle(lane.queue)
            raise self._device_error(error, arrays, extent, outputs) from error
        except BaseException:
            settle(lane.queue)
            raise

    def _run(
        self,
        lane: Lane,
        memories: Sequence[Any],
        arrays: Sequence[Any],
        extent: Extent,
        wait: list[Any],
        enqueue: Callable[..., Any],
    ) -> Any:
        """Enqueue the launches, and return the event of the last one, or a marker's if there is none."""
        room = None
        try:
            if extent.idle:
                return self._functions.marker(lane.queue, wait or None)
            room = lane.take(extent.scratch, wait)
            launch = self._functions.launch
            launch(enqueue, lane.queue, wait or None, lane.fence, room, *memories, *room.scratch, *extent.sizes)
            event = room.last if room.last is not None else self._functions.marker(lane.queue, wait or None)
        except self._functions.errors as error:
            begun = room is not None and room.last is not None
            raise self._device_error(error, arrays, extent, PARTIAL if begun else UNCHANGED) from error
        lane.give(room, event)
        return event

    def _lane(self, queue: Any) -> Lane:
        """The lane of a queue (None: our own)."""
        if queue is None:
            queue = self._own_queue
        found = self._lanes.get(queue)
        if found is None:
            if len(self._lanes) >= LANES:
                self._lanes.clear()
            self._lanes[queue] = found = lane_on(queue, self.program, self.device)
        return found

    def _dense(self, array: np.ndarray) -> np.ndarray:
        """The array, or a contiguous copy."""
        if array.flags.c_contiguous:
            return array
        self.copies.add("on_host", array.nbytes)
        return np.ascontiguousarray(array)

    def _device_error(self, error: Exception, arrays: Iterable[Any], extent: Extent, outputs: str) -> DeviceError:
        wanted = sum(array.nbytes for array in arrays) + sum(extent.scratch)
        return device_error(error, self.device, wanted, outputs)


def _pending(events: list[Any], arrays: Sequence[Any]) -> list[Any]:
    """The events that have not ended well yet; the arrays forget the others, which each call would look at again."""
    ended = {event for event in events if event.command_execution_status == COMPLETE}
    for array in arrays:
        if not ended.isdisjoint(array.events):
            array.events[:] = [event for event in array.events if event not in ended]
    return [event for event in events if event not in ended]
