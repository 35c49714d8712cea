"""A layer of a network on images as they are, without zeros around them: its results, and its gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import Array, copy, random
from microkernels.dtypes import DType

Part = Literal["results", "image", "weights"]
"""What is computed: the results, or from their gradient that of the image or of the weights."""

IMAGE, WEIGHTS, RESULTS = range(3)

TURNS = ((0, 2, 3, 1), (2, 3, 1, 0), (0, 2, 3, 1))
"""From channel-first image, weights and results to channel-last ones."""

BACK = ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))


@dataclass(frozen=True)
class Layer:
    """A convolution of `n` images of `h` by `h` pixels: `c` channels in, `k` out, a filter of `r` by `r` taps.

    The taps reach `pad` pixels beyond the image, where nothing is added.
    """

    c: int
    k: int
    h: int
    r: int
    stride: int
    pad: int
    layout: str = "NCHW"
    n: int = 1
    part: Part = "results"

    @property
    def out(self) -> int:
        """The results' height and width."""
        return (self.h + 2 * self.pad - self.r) // self.stride + 1

    @property
    def flop(self) -> int:
        """As libraries count: also of the taps outside the image."""
        return 2 * self.n * self.k * self.out**2 * self.c * self.r**2

    @property
    def reduction(self) -> int:
        return {
            "results": self.c * self.r**2,
            "image": self.k * self.r**2,
            "weights": self.n * self.out**2,
        }[self.part]

    @property
    def written(self) -> tuple[int, ...]:
        return (2,)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of the image, the weights and the results, channel first."""
        results = (self.n, self.k, self.out, self.out)
        return (self.n, self.c, self.h, self.h), (self.k, self.c, self.r, self.r), results

    @property
    def operands(self) -> tuple[int, int, int]:
        """The operands and the output, as the nest takes them: which of the image, the weights and the results."""
        return {
            "results": (IMAGE, WEIGHTS, RESULTS),
            "image": (RESULTS, WEIGHTS, IMAGE),
            "weights": (IMAGE, RESULTS, WEIGHTS),
        }[self.part]

    def arrays(self, dtype: DType) -> tuple[Array, ...]:
        first = [random(self.shapes[which], dtype, which) for which in self.operands]
        if self.layout == "NCHW":
            return tuple(first)
        return tuple(copy(array.transpose(TURNS[which])) for array, which in zip(first, self.operands, strict=True))

    def channel_first(self, arrays: tuple[Array, ...]) -> dict[int, Array]:
        """Views of the arrays as image[n, c, h, w], weights[k, c, r, s] and results[n, k, p, q]."""
        found = dict(zip(self.operands, arrays, strict=True))
        return found if self.layout == "NCHW" else {which: a.transpose(BACK[which]) for which, a in found.items()}

    def turned(self, output: Array) -> Array:
        """A channel-first output in the problem's layout."""
        return output if self.layout == "NCHW" else output.transpose(TURNS[self.operands[2]])

    def expected(self, arrays: tuple[Array, ...]) -> NDArray[np.float64]:
        found = {which: array.astype(np.float64) for which, array in self.channel_first(arrays).items()}
        image, weights, results = (found[which] for which in (IMAGE, WEIGHTS, RESULTS))
        for r in range(self.r):
            for s in range(self.r):
                (rows, ys), (columns, xs) = self._inside(r), self._inside(s)
                taps, reached = image[:, :, ys, xs], results[:, :, rows, columns]
                match self.part:
                    case "results":
                        reached += np.einsum("kc,ncpq->nkpq", weights[:, :, r, s], taps, optimize=True)
                    case "image":
                        taps += np.einsum("kc,nkpq->ncpq", weights[:, :, r, s], reached, optimize=True)
                    case "weights":
                        weights[:, :, r, s] += np.einsum("nkpq,ncpq->kc", reached, taps, optimize=True)
        return self.turned(found[self.operands[2]])

    def _inside(self, tap: int) -> tuple[slice, slice]:
        """The results along one axis whose tap is inside the image, and the pixels that they reach."""
        first = max(0, -((tap - self.pad) // self.stride))
        last = min(self.out - 1, (self.h - 1 + self.pad - tap) // self.stride)
        begin = self.stride * first + tap - self.pad
        end = self.stride * last + tap - self.pad + 1
        return slice(first, last + 1), slice(begin, max(begin, end), self.stride)

    def traffic(self, dtype: DType) -> int:
        sizes = [int(np.prod(self.shapes[which])) for which in self.operands]
        return dtype.size * (sum(sizes) + sizes[2])
