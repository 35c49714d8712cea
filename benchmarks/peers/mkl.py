"""Intel's MKL, from the PyPI package `mkl`."""

from __future__ import annotations

import functools
import os
from importlib import metadata
from typing import Any

from benchmarks.arrays import Array
from benchmarks.case import Problem
from benchmarks.contender import Contender, NotInstalled
from benchmarks.peers.cblas import CBlas, entry_points
from benchmarks.problems.matmul import Matmul

SPIN = "20"
"""The milliseconds that idle threads spin. MKL's default of 200 would disturb the next contender."""


class Mkl:
    """Products by `cblas_sgemm`; MKL chooses its own kernels."""

    name = "mkl"

    def prepare(self, problem: Problem, arrays: tuple[Array, ...], threads: int) -> Contender | None:
        if not isinstance(problem, Matmul):
            return None
        path = library()
        os.environ["KMP_BLOCKTIME"] = SPIN
        _control(path).MKL_Set_Num_Threads(threads)
        timed = _blas(path).product(problem, arrays).timed()
        return Contender(
            self.name, metadata.version("mkl"), "cblas, kernels of its own choice", timed, lambda: arrays[2]
        )


@functools.cache
def library() -> str:
    """The path of `libmkl_rt.so`, which loads all of MKL. Raises NotInstalled."""
    try:
        files = metadata.files("mkl") or []
    except metadata.PackageNotFoundError:
        raise NotInstalled("the PyPI package mkl") from None
    for file in files:
        if file.name.startswith("libmkl_rt.so"):
            return str(file.locate())
    raise NotInstalled("libmkl_rt.so in the PyPI package mkl")


@functools.cache
def _blas(path: str) -> CBlas:
    return entry_points(path, "int")


@functools.cache
def _control(path: str) -> Any:
    import cffi

    ffi = cffi.FFI()
    ffi.cdef("void MKL_Set_Num_Threads(int);")
    return ffi.dlopen(path)
