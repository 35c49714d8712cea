"""The measuring process: an environment without variables that slow libraries down, and pinned threads."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

CLEARED = (
    "ATEN_CPU_CAPABILITY",
    "BLIS_ARCH_TYPE",
    "BLIS_NUM_THREADS",
    "DNNL_MAX_CPU_ISA",
    "DNNL_VERBOSE",
    "GOMP_CPU_AFFINITY",
    "GOMP_SPINCOUNT",
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "LIBXSMM_TARGET",
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
    "MKL_NUM_THREADS",
    "MKL_VERBOSE",
    "OMP_DYNAMIC",
    "OMP_NUM_THREADS",
    "OMP_PLACES",
    "OMP_PROC_BIND",
    "OMP_THREAD_LIMIT",
    "OMP_WAIT_POLICY",
    "ONEDNN_MAX_CPU_ISA",
    "ONEDNN_VERBOSE",
    "OPENBLAS_CORETYPE",
    "OPENBLAS_L2_SIZE",
    "OPENBLAS_NUM_THREADS",
    "OPENBLAS_THREAD_TIMEOUT",
)
"""Variables that slow a library down or change its thread count."""


def clear_environment() -> tuple[str, ...]:
    """Remove these variables from the environment, also of future child processes, and return those that were set."""
    found = tuple(name for name in CLEARED if name in os.environ)
    for name in found:
        del os.environ[name]
    return found


def keep_device_threads() -> None:
    """Tell PoCL, before it starts, to pin each of its threads to a core, as `pin` does for C.

    PoCL assumes all cores of the machine, so this does nothing if the process may not use all of them.
    """
    if len(allowed()) == os.cpu_count():
        os.environ.setdefault("POCL_AFFINITY", "1")


def allowed() -> tuple[int, ...]:
    """The CPUs that this process may use, ascending."""
    return tuple(sorted(os.sched_getaffinity(0)))


def choose(cpus: Sequence[int], threads: int) -> tuple[int, ...]:
    """The CPUs for a run: the last ones, since the first CPU serves most interrupts."""
    return tuple(cpus[-threads:])


def release(cpus: Sequence[int]) -> None:
    """Let every thread of this process run on all of `cpus`; later threads inherit this."""
    for thread in _threads():
        _set(thread, cpus)


def pin(cpus: Sequence[int]) -> None:
    """Pin the main thread to the first CPU and keep all others off it, so that no two spinning threads share a CPU."""
    main = os.getpid()
    for thread in _threads():
        _set(thread, cpus[:1] if thread == main or len(cpus) == 1 else cpus[1:])


@contextmanager
def spread(cpus: Sequence[int]) -> Iterator[None]:
    """Let this thread run on all of `cpus` inside the context; processes started there inherit this."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _threads() -> list[int]:
    return [int(path.name) for path in Path("/proc/self/task").iterdir()]


def _set(thread: int, cpus: Sequence[int]) -> None:
    try:
        os.sched_setaffinity(thread, cpus)
    except ProcessLookupError:
        return  # the thread has ended meanwhile
