"""Matrix multiplication `C += A B`: squares, skinny and odd shapes, the four transposes, and a batch of small ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import Array, random
from benchmarks.case import Case
from benchmarks.workloads import nests
from microkernels.dtypes import DType

SQUARES = (13, 32, 64, 128, 256, 512, 1024, 2048, 4096)
SHAPES = (
    (7, 333, 1001),
    (49, 512, 2048),
    (3136, 64, 64),
    (512, 512, 64),
    (2048, 2048, 32),
    (1, 4096, 4096),
)
"""Rows, columns, reduction."""
TRANSPOSES = ("NT", "TN", "TT")
BATCH = (10_000, 16)
"""How many products, and their size."""
QUICK = {
    "f32": {"13", "32", "64", "128", "256", "512", "1024", "2048", "512 NT", "10000 x 16", *("x".join(map(str, s)) for s in SHAPES)},
    "f64": {"64", "256", "512", "1024"},
}


@dataclass(frozen=True)
class Matmul:
    """`C[m, n] += A[m, k] B[k, n]`, `batch` times side by side; a transposed operand lies as `A[k, m]` or `B[n, k]`."""

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
        """The row lengths of A, B and C as they lie in memory."""
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


def cases(dtype: DType) -> Iterator[Case]:
    """Every shape; the transposes at 512."""
    for size in SQUARES:
        yield _case(str(size), Matmul(size, size, size), dtype)
    for m, n, k in SHAPES:
        yield _case(f"{m}x{n}x{k}", Matmul(m, n, k), dtype)
    for transpose in TRANSPOSES:
        yield _case(f"512 {transpose}", Matmul(512, 512, 512, transpose), dtype)
    count, size = BATCH
    yield _case(f"{count} x {size}", Matmul(size, size, size, batch=count), dtype)


def _case(size: str, problem: Matmul, dtype: DType) -> Case:
    sizes = {"M": problem.m, "N": problem.n, "K": problem.k}
    name = f"gemm_{problem.transpose.lower()}"
    if problem.batch > 1:
        sizes["B"] = problem.batch
        name = "gemm_batched"
    return Case("gemm", size, dtype, problem, partial(nests.make, name, dtype), sizes, size in QUICK[dtype.name])
