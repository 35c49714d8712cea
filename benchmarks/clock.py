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


def pointers(arrays: Sequence[Any]) -> tuple[Any, ...]:
    """The arrays as cffi's pointers, to pass to C; they keep the arrays alive."""
    import cffi

    ffi = cffi.FFI()
    names = {"float32": "float[]", "float64": "double[]"}
    return tuple(ffi.from_buffer(names[array.dtype.name], array) for array in arrays)
