"""Additions to the C clock of `codegen.clock`: a clock for peers without a C entry point, and arrays as C pointers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from codegen.clock import Timed


def python_timed(call: Callable[[], object]) -> Timed:
    """The clock's loop in Python, for peers without a C entry point; it adds some tens of nanoseconds per call."""

    def run(times: int) -> float:
        start = perf_counter()
        for _ in range(times):
            call()
        return perf_counter() - start

    return run


def renewed(timed: Timed, arrays: Sequence[Any]) -> Timed:
    """A clock whose calls all start from what the arrays hold now; putting it back is not timed."""
    kept = [array.copy() for array in arrays]

    def run(times: int) -> float:
        seconds = 0.0
        for _ in range(times):
            for array, first in zip(arrays, kept, strict=True):
                array[...] = first
            seconds += timed(1)
        return seconds

    return run


def pointers(arrays: Sequence[Any]) -> tuple[Any, ...]:
    """The arrays as cffi's pointers, to pass to C; they keep the arrays alive."""
    import cffi

    ffi = cffi.FFI()
    names = {"float32": "float[]", "float64": "double[]"}
    return tuple(ffi.from_buffer(names[array.dtype.name], array) for array in arrays)
