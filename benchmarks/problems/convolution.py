"""Convolution of one image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import Array, aligned, copy, random
from microkernels.dtypes import DType


@dataclass(frozen=True)
class Convolution:
    """One layer: `c` channels in, `k` out, an `h` by `h` image, an `r` by `r` filter, and `pad` zeros around the image.

    The arrays hold the padded image. Peers that pad by themselves get only the image, and may skip those taps.
    """

    c: int
    k: int
    h: int
    r: int
    stride: int
    pad: int
    layout: str = "NCHW"

    @property
    def out(self) -> int:
        """The output's height and width."""
        return (self.h + 2 * self.pad - self.r) // self.stride + 1

    @property
    def padded(self) -> int:
        """The height and width of the part of the padded image that the taps reach."""
        return self.stride * (self.out - 1) + self.r

    @property
    def flop(self) -> int:
        return 2 * self.k * self.out**2 * self.c * self.r**2

    @property
    def reduction(self) -> int:
        return self.c * self.r**2

    @property
    def written(self) -> tuple[int, ...]:
        return (2,)

    @property
    def sizes(self) -> dict[str, int]:
        return {"N": 1, "C": self.c, "K": self.k, "P": self.out, "Q": self.out, "R": self.r, "S": self.r}

    def arrays(self, dtype: DType) -> tuple[Array, ...]:
        first = self.layout == "NCHW"
        image = aligned((1, self.c, self.padded, self.padded), dtype)
        image.fill(0)
        inner = slice(self.pad, min(self.pad + self.h, self.padded))
        interior = image[:, :, inner, inner]
        interior[...] = random(interior.shape, dtype, 0)
        weights = random((self.k, self.c, self.r, self.r), dtype, 1)
        output = random((1, self.k, self.out, self.out), dtype, 2)
        if first:
            return image, weights, output
        return (
            copy(image.transpose(0, 2, 3, 1)),
            copy(weights.transpose(2, 3, 1, 0)),
            copy(output.transpose(0, 2, 3, 1)),
        )

    def channel_first(self, arrays: tuple[Array, ...]) -> tuple[Array, Array, Array]:
        """Views of the arrays as image[n, c, h, w], weights[k, c, r, s] and output[n, k, p, q]."""
        image, weights, output = arrays
        if self.layout == "NCHW":
            return image, weights, output
        return image.transpose(0, 3, 1, 2), weights.transpose(3, 2, 0, 1), output.transpose(0, 3, 1, 2)

    def expected(self, arrays: tuple[Array, ...]) -> NDArray[np.float64]:
        image, weights, output = (x.astype(np.float64) for x in self.channel_first(arrays))
        reach = self.stride * (self.out - 1) + 1
        for r in range(self.r):
            for s in range(self.r):
                taps = image[0, :, r : r + reach : self.stride, s : s + reach : self.stride]
                output[0] += np.tensordot(weights[:, :, r, s], taps, axes=1)
        return output if self.layout == "NCHW" else output.transpose(0, 2, 3, 1)

    def traffic(self, dtype: DType) -> int:
        image = self.c * self.padded**2
        return dtype.size * (image + self.k * self.c * self.r**2 + 2 * self.k * self.out**2)
