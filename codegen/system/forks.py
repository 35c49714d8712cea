"""What keeps this process and its children working after a fork: a child has only the thread that forked.

OpenMP's runtime keeps its threads from one parallel loop to the next, and in a child it would wait for them for ever.
So those of the forking thread end before a fork; parent and child start new ones when they need them. The threads of
OpenCL's drivers cannot be restarted, so a child of a process that has used OpenCL must not use it.
"""

from __future__ import annotations

import _imp
import concurrent.futures.thread  # noqa: F401 - its hooks must be there before ours wait for imports
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import _bootstrap as bootstrap
from typing import Any

from codegen.errors import DeviceError

fork_lock = threading.RLock()
"""Held while other packages, such as cffi's parser, hold locks of their own: a fork waits until it is free."""

PAUSE = "int omp_pause_resource_all(int kind);"
"""The C declaration of OpenMP's function that ends the calling thread's workers."""
SOFT = 1

PATIENCE = 10.0
"""The longest wait of a fork for other threads, in seconds."""


@dataclass
class _Process:
    """The state of this process that matters for a fork."""

    pauses: dict[int, Callable[[int], int]] = field(default_factory=dict)
    """The pause function of each OpenMP runtime, by address."""
    has_drivers: bool = False
    lost_drivers: bool = False


_process = _Process()


def ends_threads(ffi: Any, lib: Any) -> None:
    """End the threads that a library's OpenMP runtime keeps before each fork; `ffi` must have declared `PAUSE`."""
    try:
        pause = lib.omp_pause_resource_all
    except AttributeError:
        return  # a runtime from before OpenMP 5
    _process.pauses.setdefault(int(ffi.cast("intptr_t", ffi.addressof(lib, "omp_pause_resource_all"))), pause)


def uses_drivers() -> None:
    """Record that this process uses OpenCL's drivers.

    Raises DeviceError in a child of a process that had used them before the fork.
    """
    check_drivers()
    _process.has_drivers = True


def check_drivers() -> None:
    """Raise DeviceError if this process was forked from one that had used OpenCL's drivers."""
    if _process.lost_drivers:
        raise DeviceError(
            "OpenCL was used before this process was forked, and its drivers don't work in a child of that. Nothing "
            "has been changed. Remedy: start processes by multiprocessing.get_context('spawn'), or use OpenCL in the "
            "children only."
        )


def _before() -> None:
    _wait_for_others()
    for pause in _process.pauses.values():
        pause(SOFT)


def _wait_for_others() -> None:
    """Acquire `fork_lock` and Python's import lock at a moment when no other thread is importing a module.

    A fork in Python does not wait for imports of other threads, and a child that imports the same module would then
    wait for ever. Here it waits for PATIENCE at most, as an import may itself wait for the forking thread.
    """
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        _imp.acquire_lock()
        if not _others_import() and fork_lock.acquire(blocking=False):
            return
        _imp.release_lock()
        time.sleep(1e-3)
    fork_lock.acquire()
    _imp.acquire_lock()


def _others_import() -> bool:
    """Whether another thread is importing a module; while `_imp.acquire_lock` is held, none can begin to."""
    locks = [reference() for reference in list(getattr(bootstrap, "_module_locks", {}).values())]
    return any(getattr(lock, "owner", None) not in (None, threading.get_ident()) for lock in locks)


def _in_parent() -> None:
    fork_lock.release()
    _imp.release_lock()


def _in_child() -> None:
    _in_parent()
    _process.lost_drivers = _process.has_drivers


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
