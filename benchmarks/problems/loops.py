"""Nests that are not contractions: stencils over time, and triangular solves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import Array, copy, random
from microkernels.dtypes import DType

Solution = NDArray[np.float64]


@dataclass(frozen=True)
class LoopsProblem:
    """Loops that are no contraction, by the name of their nest, with their sizes."""

    name: str
    sizes: tuple[tuple[str, int], ...]

    @property
    def size(self) -> dict[str, int]:
        return dict(self.sizes)

    @property
    def flop(self) -> int:
        n, t, m = (self.size.get(name, 0) for name in "NTM")
        return {
            "jacobi_2d": 2 * t * (n - 2) ** 2 * 5,
            "heat_3d": 2 * t * (n - 2) ** 3 * 15,
            "seidel_2d": t * (n - 2) ** 2 * 9,
            "trsv": n * n,
            "trsm": n * n * m,
        }[self.name]

    @property
    def reduction(self) -> int:
        return 10 * self.size["T"] if "T" in self.size else self.size["N"]

    @property
    def written(self) -> tuple[int, ...]:
        return {"jacobi_2d": (0, 1), "heat_3d": (0, 1), "seidel_2d": (0,), "trsv": (1,), "trsm": (1,)}[self.name]

    def shapes(self) -> tuple[tuple[int, ...], ...]:
        n, m = self.size["N"], self.size.get("M", 0)
        return {
            "jacobi_2d": ((n, n), (n, n)),
            "heat_3d": ((n, n, n), (n, n, n)),
            "seidel_2d": ((n, n),),
            "trsv": ((n, n), (n,)),
            "trsm": ((n, n), (n, m)),
        }[self.name]

    def arrays(self, dtype: DType) -> tuple[Array, ...]:
        arrays = tuple(random(shape, dtype, seed) for seed, shape in enumerate(self.shapes()))
        if self.name in ("trsv", "trsm"):
            return (_well_conditioned(arrays[0]), *arrays[1:])
        if len(arrays) == 2:
            return arrays[0], copy(arrays[0])
        return arrays

    def expected(self, arrays: tuple[Array, ...]) -> Solution:
        return SOLVERS[self.name](self.size, tuple(a.astype(np.float64) for a in arrays))

    def traffic(self, dtype: DType) -> int:
        return 2 * self.bytes(dtype)

    def bytes(self, dtype: DType) -> int:
        """The bytes of all arrays."""
        return dtype.size * sum(int(np.prod(shape)) for shape in self.shapes())


def _well_conditioned(triangle: Array) -> Array:
    """Small numbers below a diagonal of ones, so that repeated solves neither grow nor vanish."""
    triangle /= len(triangle)
    np.fill_diagonal(triangle, 1)
    return triangle


def _jacobi(size: dict[str, int], arrays: tuple[Solution, ...]) -> Solution:
    a, b = arrays
    for _ in range(size["T"]):
        for x, y in ((a, b), (b, a)):
            y[1:-1, 1:-1] = 0.2 * (x[1:-1, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + x[2:, 1:-1] + x[:-2, 1:-1])
    return a


def _heat(size: dict[str, int], arrays: tuple[Solution, ...]) -> Solution:
    a, b = arrays
    inner = slice(1, -1)
    for _ in range(size["T"]):
        for x, y in ((a, b), (b, a)):
            around = (
                x[2:, inner, inner] + x[:-2, inner, inner]
                + x[inner, 2:, inner] + x[inner, :-2, inner]
                + x[inner, inner, 2:] + x[inner, inner, :-2]
            )  # fmt: skip
            y[inner, inner, inner] = 0.125 * around + 0.25 * x[inner, inner, inner]
    return a


def _seidel(size: dict[str, int], arrays: tuple[Solution, ...]) -> Solution:
    """Row by row: within a row, `a[j] = (a[j - 1] + known[j]) / 9` is a linear filter."""
    from scipy.signal import lfilter

    (a,) = arrays
    for _ in range(size["T"]):
        for i in range(1, len(a) - 1):
            rows = a[i - 1] + a[i + 1]
            known = rows[:-2] + rows[1:-1] + rows[2:] + a[i, 1:-1] + a[i, 2:]
            a[i, 1:-1] = lfilter([1 / 9], [1, -1 / 9], known, zi=[a[i, 0] / 9])[0]
    return a


def _solve(size: dict[str, int], arrays: tuple[Solution, ...]) -> Solution:
    from scipy.linalg import solve_triangular

    return np.asarray(solve_triangular(arrays[0], arrays[1], lower=True))


SOLVERS: dict[str, Callable[[dict[str, int], tuple[Solution, ...]], Solution]] = {
    "jacobi_2d": _jacobi,
    "heat_3d": _heat,
    "seidel_2d": _seidel,
    "trsv": _solve,
    "trsm": _solve,
}
"""Reference solutions in float64, independent of the loops."""
