"""Additions to the C clock of `codegen.calls.clock`: one that starts from the same data, and arrays as C pointers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from codegen.calls.clock import Timed
from poly.timing.benchmark import restorer


def renewed(timed: Timed, arrays: Sequence[Any], most: int = 1) -> Timed:
    """A clock that puts back what the arrays hold now before each `most` calls in a row, which is not timed."""
    restore = restorer(arrays)

    def run(times: int) -> float:
        seconds = 0.0
        for done in range(0, times, most):
            restore()
            seconds += timed(min(most, times - done))
        return seconds

    return run


def pointers(arrays: Sequence[Any]) -> tuple[Any, ...]:
    """The arrays as cffi's pointers, to pass to C; they keep the arrays alive."""
    import cffi

    ffi = cffi.FFI()
    names = {"float32": "float[]", "float64": "double[]"}
    return tuple(ffi.from_buffer(names[array.dtype.name], array) for array in arrays)
