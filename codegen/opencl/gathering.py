"""One walk over a call's arguments collects what decides whether they fit, a key for later calls of the same form.

This walk is most of a call's overhead. It gives up on arguments that need a closer look.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from codegen.ir.program import Buffer
from codegen.ir.promotion import limits
from codegen.ir.signature import Signature

REAL = (float, int)
"""Python's number types that any real scalar accepts."""


class OnDevice(NamedTuple):
    """Arguments on the device: each array is a whole buffer, and no output shares its buffer with another array.

    `form` is what else decides whether they fit. `memories` are the kernel's arguments: buffers and scalars' values.
    """

    form: tuple[Any, ...]
    memories: list[Any]
    arrays: list[Any]


class ArgumentPlace(NamedTuple):
    """What one argument must be: an array, or a scalar from `numbers` (None: a real number)."""

    is_scalar: bool
    numbers: range | None
    written: bool

    @staticmethod
    def of(buffer: Buffer) -> ArgumentPlace:
        low, high = limits(buffer.dtype)
        numbers = None if buffer.dtype.is_float else range(low, high + 1)
        return ArgumentPlace(buffer.kind == "scalar", numbers, buffer.kind in ("out", "inout"))


def array_class() -> Any:
    """The class of pyopencl's arrays; None if its module was never imported, as nobody can have one then."""
    module = sys.modules.get("pyopencl.array")
    return None if module is None else module.Array


class DeviceGatherer:
    """Gathers arguments on the device."""

    def __init__(self, signature: Signature) -> None:
        import pyopencl as cl

        self._buffer = cl.Buffer
        self._parent = cl.mem_info.ASSOCIATED_MEMOBJECT
        self._places = [ArgumentPlace.of(b) for b in signature.buffers]
        self._written = [n for n, b in enumerate(signature.arrays) if b.kind != "in"]

    def __call__(self, values: Sequence[Any]) -> OnDevice | None:
        """The arguments; None if they are of another kind, or need a closer look."""
        kind = array_class()
        if kind is None or len(values) != len(self._places):
            return None
        form: list[Any] = []
        memories, arrays, pointers = [], [], []
        for value, (is_scalar, numbers, _) in zip(values, self._places, strict=True):
            if is_scalar:
                if not (value.__class__ is int and value in numbers if numbers else value.__class__ in REAL):
                    return None
                memories.append(value)
                continue
            if value.__class__ is not kind:
                return None
            memory = value.base_data
            if memory.__class__ is not self._buffer or value.offset or memory.get_info(self._parent) is not None:
                return None
            form += (value.shape, value.strides, value.dtype)
            memories.append(memory)
            arrays.append(value)
            pointers.append(memory.int_ptr)
        if len({*pointers}) < len(pointers) and any(pointers.count(pointers[n]) > 1 for n in self._written):
            return None
        return OnDevice(tuple(form), memories, arrays)


class HostGatherer:
    """Gathers NumPy arrays."""

    def __init__(self, signature: Signature) -> None:
        self._places = [ArgumentPlace.of(b) for b in signature.buffers]

    def __call__(self, values: Sequence[Any]) -> tuple[Any, ...] | None:
        """The form of dense arrays of which no output overlaps another; None for any other arguments."""
        if len(values) != len(self._places):
            return None
        form: list[Any] = []
        spans: list[tuple[int, int, bool]] = []
        for value, (is_scalar, numbers, written) in zip(values, self._places, strict=True):
            if is_scalar:
                if not (value.__class__ is int and value in numbers if numbers else value.__class__ in REAL):
                    return None
                continue
            if value.__class__ is not np.ndarray:
                return None
            flags = value.flags
            if not (flags.carray if written else flags.c_contiguous and flags.aligned):
                return None
            form += (value.shape, value.dtype)
            start = value.__array_interface__["data"][0]
            spans.append((start, start + value.nbytes, written))
        return None if _overlap(spans) else tuple(form)


def _overlap(spans: list[tuple[int, int, bool]]) -> bool:
    """Whether a span of memory that is written overlaps another one."""
    return any(
        sum(other < end and start < other_end for other, other_end, _ in spans) > 1
        for start, end, written in spans
        if written
    )
