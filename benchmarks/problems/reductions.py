"""Reductions that are no products: over pairs of points, arg-min, prefix sums, pooling, normalisation of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import Array, aligned, random
from microkernels.dtypes import DType, i64

BLOCK = 512
"""The points that NumPy takes at a time, so that its differences stay in cache."""
EPSILON = 1e-5
"""What is added to a variance."""


@dataclass(frozen=True)
class ReductionProblem:
    """A reduction, by the name of its nest, with its sizes: M and N."""

    name: str
    m: int
    n: int

    @property
    def size(self) -> dict[str, int]:
        return {"M": self.m, "N": self.n}

    @property
    def flop(self) -> int:
        """For each pair or element; an exponential counts as one."""
        each = {
            "gauss_sum": 12,
            "nearest": 9,
            "argmin_rows": 1,
            "prefix_rows": 1,
            "prefix_columns": 1,
            "max_pool": 4,
            "layer_norm": 7,
        }
        return each[self.name] * self.m * self.n

    @property
    def reduction(self) -> int:
        return self.m if self.name == "prefix_columns" else self.n

    @property
    def written(self) -> tuple[int, ...]:
        return {"gauss_sum": (3,), "nearest": (2,)}.get(self.name, (1,))

    def arrays(self, dtype: DType) -> tuple[Array, ...]:
        m, n = self.m, self.n
        if self.name in ("gauss_sum", "nearest"):
            points = random((m, 3), dtype), random((n, 3), dtype, 1)
            if self.name == "nearest":
                return (*points, aligned((m,), i64))
            return (*points, random((n,), dtype, 2), aligned((m,), dtype))
        if self.name == "argmin_rows":
            return random((m, n), dtype), aligned((m,), i64)
        by = 2 if self.name == "max_pool" else 1
        return random((by * m, by * n), dtype), aligned((m, n), dtype)

    def expected(self, arrays: tuple[Array, ...]) -> NDArray[np.float64]:
        wide = tuple(array.astype(np.float64) for array in arrays[: self.written[0]])
        return np.asarray(self.by_numpy(*wide), np.float64)

    @property
    def by_numpy(self) -> Callable[..., Array]:
        """What NumPy computes of the arrays before the result."""
        return BY_NUMPY[self.name]

    def by_torch(self, torch: Any) -> Callable[..., Any]:
        """The same by PyTorch, of its tensors."""
        return _by_torch(torch)[self.name]

    def traffic(self, dtype: DType) -> int:
        return sum(array.nbytes for array in self.arrays(dtype))


def _squares(x: Array, y: Array) -> Array:
    """The squared distances of a block of points from all others."""
    first, *others = [(x[:, None, d] - y[None, :, d]) ** 2 for d in range(x.shape[1])]
    return sum(others, first)


def _blocked(function: Callable[[Array], Array], x: Array) -> Array:
    return np.concatenate([function(x[start : start + BLOCK]) for start in range(0, len(x), BLOCK)])


def _layer_norm(x: Array) -> Array:
    centred = x - x.mean(axis=1, keepdims=True)
    return np.asarray(centred / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + EPSILON))


BY_NUMPY: dict[str, Callable[..., Array]] = {
    "gauss_sum": lambda x, y, b: _blocked(lambda part: np.exp(-_squares(part, y)) @ b, x),
    "nearest": lambda x, y: _blocked(lambda part: _squares(part, y).argmin(axis=1), x),
    "argmin_rows": lambda x: x.argmin(axis=1),
    "prefix_rows": lambda x: x.cumsum(axis=1),
    "prefix_columns": lambda x: x.cumsum(axis=0),
    "max_pool": lambda x: x.reshape(len(x) // 2, 2, -1, 2).max(axis=(1, 3)),
    "layer_norm": _layer_norm,
}
"""Each reduction as NumPy computes it."""


def _by_torch(torch: Any) -> dict[str, Callable[..., Any]]:
    """Each reduction as PyTorch computes it."""
    functional = torch.nn.functional

    def blocked(function: Callable[[Any], Any], x: Any) -> Any:
        return torch.cat([function(part) for part in x.split(BLOCK)])

    return {
        "gauss_sum": lambda x, y, b: blocked(lambda part: torch.exp(-_squares(part, y)) @ b, x),
        "nearest": lambda x, y: blocked(lambda part: _squares(part, y).argmin(1), x),
        "argmin_rows": lambda x: x.argmin(1),
        "prefix_rows": lambda x: x.cumsum(1),
        "prefix_columns": lambda x: x.cumsum(0),
        "max_pool": lambda x: functional.max_pool2d(x[None], 2)[0],
        "layer_norm": lambda x: functional.layer_norm(x, x.shape[1:], eps=EPSILON),
    }
