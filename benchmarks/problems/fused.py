"""Products with what stands before and behind them: a layer with its activation, two layers, attention."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import Array, aligned, random
from microkernels.dtypes import DType


@dataclass(frozen=True)
class FusedProblem:
    """A chain of products, by the name of its nest, with its sizes.

    A layer multiplies M rows of K numbers by a matrix and adds a bias for each of N columns; a second layer has L
    columns. Attention has H heads of N tokens with L numbers each.
    """

    name: str
    sizes: tuple[tuple[str, int], ...]

    @property
    def size(self) -> dict[str, int]:
        return dict(self.sizes)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the operands, then that of the result."""
        n = self.size
        if self.name in ("attention", "causal"):
            return ((n["H"], n["N"], n["L"]),) * 4
        layer = (n["M"], n["K"]), (n["K"], n["N"]), (n["N"],)
        return (*layer, (n["N"], n["L"]), (n["M"], n["L"])) if "L" in n else (*layer, (n["M"], n["N"]))

    @property
    def flop(self) -> int:
        """Of the products alone; a causal mask leaves half of them."""
        n = self.size
        if self.name in ("attention", "causal"):
            return (4 if self.name == "attention" else 2) * prod((n["H"], n["N"], n["N"], n["L"]))
        return 2 * n["M"] * n["N"] * (n["K"] + n.get("L", 0))

    @property
    def reduction(self) -> int:
        return max(dict(self.sizes).get(name, 1) for name in "KN")

    @property
    def written(self) -> tuple[int, ...]:
        return (len(self.shapes) - 1,)

    def arrays(self, dtype: DType) -> tuple[Array, ...]:
        *operands, result = self.shapes
        return (*(random(shape, dtype, at) for at, shape in enumerate(operands)), aligned(result, dtype))

    def expected(self, arrays: tuple[Array, ...]) -> NDArray[np.float64]:
        return np.asarray(self.by_numpy(*(array.astype(np.float64) for array in arrays[:-1])))

    @property
    def by_numpy(self) -> Callable[..., Array]:
        """What NumPy computes of the operands."""
        return BY_NUMPY[self.name]

    def by_torch(self, torch: Any) -> Callable[..., Any]:
        """The same by PyTorch, of its tensors."""
        return _by_torch(torch)[self.name]

    def traffic(self, dtype: DType) -> int:
        return sum(map(prod, self.shapes)) * dtype.size


def _attention(masked: bool) -> Callable[[Array, Array, Array], Array]:
    def attention(q: Array, k: Array, v: Array) -> Array:
        s = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[2]).astype(q.dtype)
        s = np.where(np.tri(s.shape[1], dtype=bool), s, -np.inf) if masked else s
        p = np.exp(s - s.max(axis=2, keepdims=True))
        return np.asarray((p / p.sum(axis=2, keepdims=True)) @ v)

    return attention


BY_NUMPY: Mapping[str, Callable[..., Array]] = {
    "linear_relu": lambda x, w, b: np.maximum(x @ w + b, 0),
    "two_layers": lambda x, w, b, v: np.maximum(x @ w + b, 0) @ v,
    "attention": _attention(masked=False),
    "causal": _attention(masked=True),
}
"""Each chain as NumPy computes it."""


def _by_torch(torch: Any) -> dict[str, Callable[..., Any]]:
    """Each chain as PyTorch computes it."""
    attention = torch.nn.functional.scaled_dot_product_attention
    return {
        "linear_relu": lambda x, w, b: torch.addmm(b, x, w).relu_(),
        "two_layers": lambda x, w, b, v: torch.addmm(b, x, w).relu_() @ v,
        "attention": lambda q, k, v: attention(q[None], k[None], v[None])[0],
        "causal": lambda q, k, v: attention(q[None], k[None], v[None], is_causal=True)[0],
    }
