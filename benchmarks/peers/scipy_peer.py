"""SciPy: triangular solves by the BLAS that it brings, in place."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.arrays import Array
from benchmarks.case import Problem
from benchmarks.contender import Contender
from benchmarks.peers.numpy_peer import limit_threads, pools
from benchmarks.problems.loops import LoopsProblem
from poly.timing.benchmark import python_timed

PREFIX = {"float32": "s", "float64": "d"}
"""BLAS's letters of the types."""


class SciPy:
    """`trsv` and `trsm` of `scipy.linalg.blas`.

    BLAS stores columns one after the other: to it our rows are columns, and the lower triangle is an upper one that is
    transposed.
    """

    name = "scipy"

    def prepare(self, problem: Problem, arrays: tuple[Array, ...], threads: int) -> Contender | None:
        if not isinstance(problem, LoopsProblem) or problem.name not in SOLVES:
            return None
        import scipy
        from scipy.linalg import blas

        limit_threads(threads)
        triangle, right = arrays
        call = SOLVES[problem.name](blas, PREFIX[right.dtype.name], triangle, right)
        config = f"{PREFIX[right.dtype.name]}{problem.name}, {_library()}"
        return Contender(self.name, scipy.__version__, config, python_timed(call), lambda: right, in_c=False)


def _trsv(blas: object, letter: str, triangle: Array, right: Array) -> Callable[[], object]:
    solve = getattr(blas, f"{letter}trsv")
    return lambda: solve(triangle.T, right, lower=0, trans=1, overwrite_x=1)


def _trsm(blas: object, letter: str, triangle: Array, right: Array) -> Callable[[], object]:
    solve = getattr(blas, f"{letter}trsm")
    return lambda: solve(1.0, triangle.T, right.T, side=1, lower=0, trans_a=0, overwrite_b=1)


SOLVES = {"trsv": _trsv, "trsm": _trsm}


def _library() -> str:
    """SciPy's BLAS, with its version and the kernels that it chose, where that is known."""
    own = (pool for pool in pools() if pool["user_api"] == "blas" and "scipy.libs" in pool["filepath"])
    return next((f"OpenBLAS {pool['version']}, {pool['architecture']} kernels" for pool in own), "its BLAS")
