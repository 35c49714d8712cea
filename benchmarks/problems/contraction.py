"""Contraction of two tensors."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import Array, aligned, random
from microkernels.dtypes import DType


@dataclass(frozen=True)
class ContractionProblem:
    """`output[…] = sum of first[…] * second[…]`: index strings, and the extent of each index."""

    output: str
    first: str
    second: str
    extents: tuple[tuple[str, int], ...]

    @property
    def subscripts(self) -> str:
        """The subscripts for `numpy.einsum`."""
        return f"{self.first},{self.second}->{self.output}"

    @property
    def flop(self) -> int:
        return 2 * prod(extent for _, extent in self.extents)

    @property
    def reduction(self) -> int:
        return prod(extent for index, extent in self.extents if index not in self.output)

    @property
    def written(self) -> tuple[int, ...]:
        return (2,)

    def shape(self, indices: str) -> tuple[int, ...]:
        extents = dict(self.extents)
        return tuple(extents[index] for index in indices)

    def arrays(self, dtype: DType) -> tuple[Array, ...]:
        output = aligned(self.shape(self.output), dtype)
        output.fill(0)
        return random(self.shape(self.first), dtype, 0), random(self.shape(self.second), dtype, 1), output

    def expected(self, arrays: tuple[Array, ...]) -> NDArray[np.float64]:
        first, second = (x.astype(np.float64) for x in arrays[:2])
        return np.asarray(np.einsum(self.subscripts, first, second, optimize=True))

    def traffic(self, dtype: DType) -> int:
        return dtype.size * sum(prod(self.shape(indices)) for indices in (self.first, self.second, self.output))
