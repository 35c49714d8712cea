"""Softmax of each row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import Array, aligned, random
from microkernels.dtypes import DType


@dataclass(frozen=True)
class Softmax:
    """`Y[i, :] = exp(X[i, :] - max) / sum`, with `rows` rows of `columns` elements."""

    rows: int
    columns: int

    @property
    def flop(self) -> int:
        """A comparison, a difference, an exponential, a sum and a quotient for each element."""
        return 5 * self.rows * self.columns

    @property
    def reduction(self) -> int:
        return self.columns

    @property
    def written(self) -> tuple[int, ...]:
        return (1,)

    def arrays(self, dtype: DType) -> tuple[Array, ...]:
        shape = (self.rows, self.columns)
        return random(shape, dtype), aligned(shape, dtype)

    def expected(self, arrays: tuple[Array, ...]) -> NDArray[np.float64]:
        x = arrays[0].astype(np.float64)
        powers = np.exp(x - x.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    def traffic(self, dtype: DType) -> int:
        return dtype.size * 2 * self.rows * self.columns
