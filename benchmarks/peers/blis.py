"""BLIS. On CPUs that it does not know it falls back to slow kernels, so the fastest of a few choices is used."""

from __future__ import annotations

import ctypes.util
import functools
import os
import subprocess
from typing import Any

from benchmarks.arrays import Array
from benchmarks.case import Problem
from benchmarks.contender import Contender, NotInstalled
from benchmarks.peers.cblas import CBlas, entry_points
from benchmarks.peers.package import Package, Packaged
from benchmarks.problems.matmul import Matmul
from codegen.system.processes import PYTHON, with_own_path

CHOICES = ("", "0", "3", "8")
"""Values of BLIS_ARCH_TYPE to try: BLIS's own choice, Skylake-X, Haswell, Zen (the numbers are those of BLIS 0.9)."""

TURNS = 2
"""How often each choice is tried, in turn, so that a disturbance of a second does not decide."""

BETTER = 0.95
"""The part of the time of BLIS's own choice that another one has to stay below: else noise would choose."""

CONTROL = """
void bli_thread_set_num_threads(long);
int bli_arch_query_id(void);
char *bli_arch_string(int);
char *bli_info_get_version_str(void);
"""


class Blis(Packaged):
    """Products by its `cblas_sgemm`."""

    name = "blis"
    package = Package("apt", "libblis-dev")

    def find(self) -> str:
        return library()

    def prepare(self, problem: Problem, arrays: tuple[Array, ...], threads: int) -> Contender | None:
        if not isinstance(problem, Matmul):
            return None
        blas, ffi, control = _loaded()
        control.bli_thread_set_num_threads(threads)
        architecture = ffi.string(control.bli_arch_string(control.bli_arch_query_id())).decode()
        version = ffi.string(control.bli_info_get_version_str()).decode()
        timed = blas.product(problem, arrays).timed()
        return Contender(self.name, version, f"{architecture} kernels", timed, lambda: arrays[2])


@functools.cache
def _loaded() -> tuple[CBlas, Any, Any]:
    """The library, loaded with the environment's choice or the best one.

    BLIS reads the variable once, so each is tried in a process of its own.
    """
    import cffi

    path = library()
    given = os.environ.get("BLIS_ARCH_TYPE")
    choices = CHOICES if given is None else (given,)
    turns = ((seconds(path, choice) * (1 if choice else BETTER), choice) for _ in range(TURNS) for choice in choices)
    _, choice = min(turns)
    os.environ["BLIS_ARCH_TYPE"] = choice
    if not choice:
        del os.environ["BLIS_ARCH_TYPE"]
    ffi = cffi.FFI()
    ffi.cdef(CONTROL)
    return entry_points(path, "int"), ffi, ffi.dlopen(path)


def library() -> str:
    """The name of the shared library. Raises NotInstalled."""
    path = ctypes.util.find_library("blis")
    if path is None:
        raise NotInstalled("the shared library libblis (Debian: libblis-dev)")
    return path


def seconds(path: str, choice: str) -> float:
    """The time of a 512³ product with one BLIS_ARCH_TYPE, in a process of its own; infinite if it fails."""
    environment = {name: value for name, value in with_own_path().items() if name != "BLIS_ARCH_TYPE"}
    if choice:
        environment["BLIS_ARCH_TYPE"] = choice
    command = [*PYTHON, "-m", "benchmarks.peers.blis_trial", path]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return float(done.stdout) if done.returncode == 0 else float("inf")
