"""The clock: a C loop that calls a function again and again and takes the time, so no Python lies in between.

Every contender that has a C entry point is timed by such a loop, ours and the peers alike.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from codegen.build import Library, load

NOW = """#include <stdint.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
"""

Timed = Callable[[int], float]
"""Does the work as many times as it is told, and returns the seconds for all of them together."""


@dataclass(frozen=True)
class CFunction:
    """A C function with its arguments at hand: `pointer` is cffi's, of type `result (*)(types)`.

    `owner` is the library that the function lies in: cffi unloads a library that nobody holds.
    """

    pointer: Any
    result: str
    types: tuple[str, ...]
    arguments: tuple[Any, ...]
    owner: Any

    def timed(self) -> Timed:
        loop = repeater(self.result, self.types)
        return lambda times: float(loop.lib.repeat(self.pointer, *self.arguments, times))


@functools.cache
def repeater(result: str, types: tuple[str, ...]) -> Library:
    """A library with `double repeat(function, arguments…, times)` for functions of one type."""
    parameters = "".join(f", {type_} a{n}" for n, type_ in enumerate(types))
    arguments = ", ".join(f"a{n}" for n in range(len(types)))
    head = f"double repeat({result} (*function)({', '.join(types)}){parameters}, int64_t times)"
    body = f"""
{{
    const double start = now();
    for (int64_t n = 0; n < times; n++) function({arguments});
    return now() - start;
}}
"""
    return load(f"{NOW}\n{head}{body}", f"{head};")


def python_timed(call: Callable[[], object]) -> Timed:
    """The same in Python, for peers that have no C entry point: some tens of nanoseconds a round are its own."""

    def run(times: int) -> float:
        start = perf_counter()
        for _ in range(times):
            call()
        return perf_counter() - start

    return run


def pointers(arrays: Sequence[Any]) -> tuple[Any, ...]:
    """The arrays as cffi sees them, to be passed where C wants a pointer; they keep the arrays alive."""
    import cffi

    ffi = cffi.FFI()
    names = {"float32": "float[]", "float64": "double[]"}
    return tuple(ffi.from_buffer(names[array.dtype.name], array) for array in arrays)
