"""Cold caches: streaming a buffer larger than the last level through every core that a kernel uses."""

from __future__ import annotations

from collections.abc import Callable

import cffi
import numpy as np

from codegen.build import load

SOURCE = """#include <stdint.h>

/* One byte of each cache line is changed, so the line comes in and what was there goes out. */
void flush(char *bytes, int64_t count, int threads)
{
    #pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < count; i += 64) bytes[i]++;
}
"""
OPENMP = ("-fopenmp", "-Wl,-z,nodelete")


def flusher(size: int, threads: int) -> Callable[[], None]:
    """A function that streams `size` bytes, each core its part; one that does nothing where that is 0."""
    if not size:
        return lambda: None
    library = load(SOURCE, "void flush(char *bytes, int64_t count, int threads);", OPENMP if threads > 1 else ())
    memory = cffi.FFI().from_buffer("char[]", np.zeros(size, np.uint8))

    def flush() -> None:
        library.lib.flush(memory, size, threads)

    return flush
