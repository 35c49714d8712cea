"""Matrix multiplication, alone or in a batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import Array, random
from microkernels.dtypes import DType


@dataclass(frozen=True)
class Matmul:
    """`C[m, n] += A[m, k] B[k, n]`, for each of `batch`; a transposed operand is stored as `A[k, m]` or `B[n, k]`."""

    m: int
    n: int
    k: int
    transpose: str = "NN"
    batch: int = 1

    @property
    def flop(self) -> int:
        return 2 * self.batch * self.m * self.n * self.k

    @property
    def reduction(self) -> int:
        return self.k

    @property
    def written(self) -> tuple[int, ...]:
        return (2,)

    @property
    def leading(self) -> tuple[int, int, int]:
        """The row lengths of A, B and C in memory."""
        return (
            self.m if self.transpose[0] == "T" else self.k,
            self.k if self.transpose[1] == "T" else self.n,
            self.n,
        )

    def arrays(self, dtype: DType) -> tuple[Array, ...]:
        a, b, c = (self.m, self.k), (self.k, self.n), (self.m, self.n)
        if self.transpose[0] == "T":
            a = a[::-1]
        if self.transpose[1] == "T":
            b = b[::-1]
        batch = (self.batch,) if self.batch > 1 else ()
        return tuple(random(batch + shape, dtype, seed) for seed, shape in enumerate((a, b, c)))

    def operands(self, arrays: tuple[Array, ...]) -> tuple[Array, Array, Array]:
        """The arrays with the transposes undone, as views."""
        a, b, c = arrays
        return (
            a.swapaxes(-1, -2) if self.transpose[0] == "T" else a,
            b.swapaxes(-1, -2) if self.transpose[1] == "T" else b,
            c,
        )

    def expected(self, arrays: tuple[Array, ...]) -> NDArray[np.float64]:
        a, b, c = (x.astype(np.float64) for x in self.operands(arrays))
        return np.asarray(c + a @ b)

    def traffic(self, dtype: DType) -> int:
        m, n, k = self.m, self.n, self.k
        return dtype.size * self.batch * (m * k + k * n + 2 * m * n)
