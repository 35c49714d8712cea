"""The clock: a C loop that calls a function repeatedly and takes the time, with no Python in between.

Everything that has a C entry point is timed by such a loop: candidates of a search, our kernels and the peers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cffi

from codegen.toolchain.build import Library, load

NOW = """#include <stdint.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
"""

Timed = Callable[[int], float]
"""Does the work the given number of times, and returns the total in seconds."""


@dataclass(frozen=True)
class CFunction:
    """A C function and its arguments: `pointer` is cffi's, of type `result (*)(types)`.

    `owner` is the library that contains the function: cffi unloads a library without references.
    """

    pointer: Any
    result: str
    types: tuple[str, ...]
    arguments: tuple[Any, ...]
    owner: Any

    @staticmethod
    def of(function: Any, arguments: tuple[Any, ...], owner: Any) -> CFunction:
        """A function of a library, with the types that cffi knows."""
        type_ = cffi.FFI().typeof(function)
        return CFunction(function, type_.result.cname, tuple(arg.cname for arg in type_.args), arguments, owner)

    def timed(self) -> Timed:
        loop = repeater(self.result, self.types)
        return lambda times: float(loop.lib.repeat(self.pointer, *self.arguments, times))


@functools.lru_cache(maxsize=64)
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
