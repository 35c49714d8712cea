"""The affinity of the threads of a CPU's OpenCL device."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "POCL_AFFINITY"


@contextmanager
def kept() -> Iterator[None]:
    """Have PoCL, in processes started meanwhile, pin each of its threads to a core, like those of other contenders.

    PoCL counts the machine's cores, so nothing is done if this process may not use all of them.
    """
    if VARIABLE in os.environ or len(os.sched_getaffinity(0)) != os.cpu_count():
        yield
        return
    os.environ[VARIABLE] = "1"
    try:
        yield
    finally:
        del os.environ[VARIABLE]
