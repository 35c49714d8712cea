"""How long OpenMP's threads spin for each other before they sleep.

GNU's runtime lets a thread spin 300 000 times at each end of a parallel loop, which it takes for 3 ms. Where the
instruction `pause` takes 140 cycles, as on Intel's CPUs since Skylake, that is 11 ms, longer than an operating system's
time slices. If another process has one of the cores, or two threads are woken on one, a thread then burns its slice in
each parallel loop, waiting for one that does not run. A thread that sleeps leaves its core to the one it waits for.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import cffi

COUNT = "GOMP_SPINCOUNT"
POLICY = "OMP_WAIT_POLICY"

SPINS = 10_000
"""0.1 ms by the runtime's own estimate, 0.4 ms at 140 cycles: longer than most waits for the other threads of a loop,
and than the 30 us that it takes to wake one. With a tenth, loops that wait for each other often are a fifth slower."""


def opened(ffi: cffi.FFI, path: Path) -> Any:
    """A loaded library whose OpenMP threads spin SPINS times, unless the user's environment tells how they wait.

    GNU's runtime reads the environment once, when the process first loads it. Raises OSError if the library can't be
    loaded.
    """
    if COUNT in os.environ or POLICY in os.environ:
        return ffi.dlopen(str(path))
    os.environ[COUNT] = str(SPINS)
    try:
        return ffi.dlopen(str(path))
    finally:
        os.environ.pop(COUNT, None)
