"""How long a library's threads spin after its last call, in case there is another one soon.

A contender that is measured meanwhile has to share its CPUs with them. OpenBLAS's threads spin for a tenth of a second,
and made the next contender, which follows it in every round, three times slower.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLES = {"OPENBLAS_THREAD_TIMEOUT": "24", "KMP_BLOCKTIME": "20"}
"""Spin for 2^24 cycles and for 20 ms, which is less than the runner waits, and more than a loop of calls needs."""


@contextmanager
def short() -> Iterator[None]:
    """Have the libraries of processes started meanwhile spin for a shorter time than the runner waits."""
    before = {name: os.environ.get(name) for name in VARIABLES}
    os.environ.update(VARIABLES)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
