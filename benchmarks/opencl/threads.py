"""Where the threads of a CPU's OpenCL device run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "POCL_AFFINITY"


@contextmanager
def kept() -> Iterator[None]:
    """Tell PoCL in processes that start meanwhile to keep each of its threads on a core, as other contenders' are.

    It counts the machine's cores, so it is left alone where this process may not use all of them.
    """
    if VARIABLE in os.environ or len(os.sched_getaffinity(0)) != os.cpu_count():
        yield
        return
    os.environ[VARIABLE] = "1"
    try:
        yield
    finally:
        del os.environ[VARIABLE]
