"""Turns on a machine: a measurement runs alone, builds run beside each other.

The system's locks on two files order all workers of a user on a machine, whatever cluster they belong to, and end with
the process that holds them. Who waits to measure holds back later builds.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone() -> Iterator[None]:
    """Inside this context, no other turn is taken on this machine."""
    with _locked("door", fcntl.LOCK_EX), _locked("room", fcntl.LOCK_EX):
        yield


@contextmanager
def beside() -> Iterator[None]:
    """Inside this context, nobody is `alone`."""
    with _locked("door", fcntl.LOCK_EX):
        room = _locked("room", fcntl.LOCK_SH)
        room.__enter__()
    try:
        yield
    finally:
        room.__exit__(None, None, None)


@contextmanager
def _locked(name: str, how: int) -> Iterator[None]:
    path = Path(tempfile.gettempdir()) / f"poly-turns-{os.getuid()}.{name}"
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, how)
        yield
    finally:
        os.close(handle)
