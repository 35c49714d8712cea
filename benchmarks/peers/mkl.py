"""Intel's MKL, from the PyPI package `mkl`."""

from __future__ import annotations

import functools
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arrays import Array
from benchmarks.case import Problem
from benchmarks.contender import Contender, NotInstalled
from benchmarks.peers.cblas import CBlas, entry_points
from benchmarks.peers.package import Package, Packaged
from benchmarks.problems.matmul import Matmul

CONTROL = """
typedef struct {
    int MajorVersion, MinorVersion, UpdateVersion;
    char *ProductStatus, *Build, *Processor, *Platform;
} MKLVersion;
void MKL_Get_Version(MKLVersion *);
void MKL_Set_Num_Threads(int);
"""

COMMON = {"libmkl_rt", "libmkl_core", "libmkl_intel_lp64", "libmkl_intel_thread"}
"""Libraries that are loaded on every CPU."""


class Mkl(Packaged):
    """Products by `cblas_sgemm`; MKL chooses its own kernels."""

    name = "mkl"
    package = Package("pip", "mkl")

    def find(self) -> str:
        return library()

    def prepare(self, problem: Problem, arrays: tuple[Array, ...], threads: int) -> Contender | None:
        if not isinstance(problem, Matmul):
            return None
        path = library()
        _control(path).MKL_Set_Num_Threads(threads)
        timed = _blas(path).product(problem, arrays).timed()
        return Contender(self.name, metadata.version("mkl"), kernels(path), timed, lambda: arrays[2])


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
def kernels(path: str) -> str:
    """The kernels that MKL chose: the CPUs that it says they are for, and the library that it loads with them."""
    one = np.ones((1, 1), np.float32)
    _blas(path).product(Matmul(1, 1, 1), (one, one, one.copy())).timed()(1)
    version = _ffi().new("MKLVersion *")
    _control(path).MKL_Get_Version(version)
    maps = Path("/proc/self/maps").read_text()
    libraries = {Path(line.split()[-1]).name.split(".")[0] for line in maps.splitlines() if "libmkl_" in line}
    chosen = sorted(name for name in libraries if name not in COMMON and "_vml_" not in name)
    return f"{_ffi().string(version.Processor).decode()} ({', '.join(chosen)})"


@functools.cache
def _blas(path: str) -> CBlas:
    return entry_points(path, "int")


@functools.cache
def _ffi() -> Any:
    import cffi

    ffi = cffi.FFI()
    ffi.cdef(CONTROL)
    return ffi


@functools.cache
def _control(path: str) -> Any:
    return _ffi().dlopen(path)
