"""NumPy: its bundled OpenBLAS called from C if its symbols are found, else `numpy.matmul`; and `numpy.einsum`."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.arrays import Array
from benchmarks.case import Problem
from benchmarks.contender import Contender
from benchmarks.peers.cblas import CBlas, entry_points
from benchmarks.problems.contraction import ContractionProblem
from benchmarks.problems.fused import FusedProblem
from benchmarks.problems.matmul import Matmul
from benchmarks.problems.reductions import ReductionProblem
from poly.timing.benchmark import python_timed

NAMES = (("int64_t", "scipy_", "64_"), ("int64_t", "", "64_"), ("int", "scipy_", ""), ("int", "", ""))
"""Integer type, prefix and suffix of `cblas_sgemm` in the builds of OpenBLAS that NumPy bundles."""


@dataclass(frozen=True)
class OpenBlas:
    """The OpenBLAS that NumPy loaded: its entry points, and the kernels it chose."""

    blas: CBlas
    config: str


class Numpy:
    """Products by OpenBLAS, contractions by `numpy.einsum(optimize=True)`, reductions by NumPy's functions."""

    name = "numpy"

    def prepare(self, problem: Problem, arrays: tuple[Array, ...], threads: int) -> Contender | None:
        limit_threads(threads)
        found = openblas()
        match problem:
            case Matmul() if found:
                timed = found.blas.product(problem, arrays).timed()
                return Contender(self.name, np.__version__, found.config, timed, lambda: arrays[2])
            case Matmul():
                a, b, c = problem.operands(arrays)
                start, product = c.copy(), np.empty_like(c)
                run = python_timed(lambda: np.matmul(a, b, out=product))
                return Contender(self.name, np.__version__, "numpy.matmul", run, lambda: start + product, in_c=False)
            case ContractionProblem():
                first, second, output = arrays
                run = python_timed(lambda: np.einsum(problem.subscripts, first, second, out=output, optimize=True))
                config = "einsum(optimize=True)" + (f" on {found.config}" if found else "")
                return Contender(self.name, np.__version__, config, run, lambda: output, in_c=False)
            case ReductionProblem() | FusedProblem():
                work = functools.partial(problem.by_numpy, *arrays[: problem.written[0]])
                return Contender(self.name, np.__version__, problem.name, python_timed(work), work, in_c=False)
        return None


@functools.cache
def openblas() -> OpenBlas | None:
    """NumPy's OpenBLAS; None if NumPy uses another library, or if threadpoolctl is not installed."""
    for pool in pools():
        if pool["internal_api"] != "openblas" or "scipy.libs" in pool["filepath"]:
            continue
        for integer, prefix, suffix in NAMES:
            try:
                blas = entry_points(pool["filepath"], integer, prefix, suffix)
            except AttributeError:
                continue
            return OpenBlas(blas, f"OpenBLAS {pool['version']}, {pool['architecture']} kernels")
    return None


def pools() -> list[dict[str, Any]]:
    """What threadpoolctl reports on the libraries loaded so far; nothing if it is not installed."""
    try:
        import threadpoolctl
    except ImportError:
        return []
    return list(threadpoolctl.threadpool_info())


def limit_threads(threads: int) -> None:
    """Set the thread count of the BLAS libraries loaded so far."""
    try:
        import threadpoolctl
    except ImportError:
        return
    threadpoolctl.threadpool_limits(threads, user_api="blas")
