"""Products of narrow operands, which are added up in a wider type."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import Array, aligned, random
from codegen.calls.numpy_types import numpy_type
from microkernels.dtypes import DType, f32, i8, i32


@dataclass(frozen=True)
class MixedMatmul:
    """`C[m, n] += A[m, k] B[k, n]`: operands of i8 are added up in i32, those of bf16 and f16 in f32.

    What is measured against it may round each element to the type of the operands once.
    """

    m: int
    n: int
    k: int
    operands: DType

    @property
    def total(self) -> DType:
        """The type of the result."""
        return f32 if self.operands.is_float else i32

    @property
    def flop(self) -> int:
        return 2 * self.m * self.n * self.k

    @property
    def reduction(self) -> int:
        return self.k

    @property
    def written(self) -> tuple[int, ...]:
        return (2,)

    def arrays(self, dtype: DType) -> tuple[Array, ...]:
        """Whatever `dtype` is: the types are part of the problem."""
        del dtype
        a, b = (self._operand(shape, seed) for seed, shape in enumerate(((self.m, self.k), (self.k, self.n))))
        c = aligned((self.m, self.n), self.total)
        c[...] = 0
        return a, b, c

    def _operand(self, shape: tuple[int, int], seed: int) -> Array:
        if self.operands.is_float:
            return random(shape, f32, seed).astype(numpy_type(self.operands))
        limits = np.iinfo(i8.numpy_name)
        return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape, np.int8)

    def expected(self, arrays: tuple[Array, ...]) -> NDArray[np.float64]:
        a, b, c = (x.astype(np.float64) for x in arrays)
        return np.asarray(c + a @ b)

    def traffic(self, dtype: DType) -> int:
        del dtype
        m, n, k = self.m, self.n, self.k
        return self.operands.size * (m * k + k * n) + 2 * self.total.size * m * n
