"""A convolution over any number of axes, of images as they are or with zeros around them, and its gradients."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import Array, aligned, copy, random
from microkernels.dtypes import DType

Layout = Literal["NCHW", "NHWC"]
"""Channels before the pixels or behind them, with any number of axes."""

Part = Literal["results", "image", "weights"]
"""What is computed: the results, or from their gradient that of the image or of the weights."""

IMAGE, WEIGHTS, RESULTS = range(3)

PIXELS = "xyz"
"""Subscripts of the axes."""


@dataclass(frozen=True)
class Convolution:
    """`n` images of `h` pixels along each of `axes` axes: `c` channels in, `k` out, a filter of `r` taps along each.

    A result sees the channels of its group only. Taps are `dilation` pixels apart and reach `pad` pixels beyond the
    image. Nothing is added there, unless the arrays hold `zeros` around the image: peers that pad by themselves then
    get the image without these.
    """

    c: int
    k: int
    h: int
    r: int
    stride: int
    pad: int
    layout: Layout = "NCHW"
    n: int = 1
    part: Part = "results"
    groups: int = 1
    axes: int = 2
    zeros: bool = False
    dilation: int = 1

    @property
    def out(self) -> int:
        """The results' extent along each axis."""
        return (self.h + 2 * self.pad - self.reach) // self.stride + 1

    @property
    def reach(self) -> int:
        """The extent of a filter over the image."""
        return self.dilation * (self.r - 1) + 1

    @property
    def padded(self) -> int:
        """The extent of the part of the padded image that the taps reach."""
        return self.stride * (self.out - 1) + self.reach

    @property
    def height(self) -> int:
        """The extent of the image in its array."""
        return self.padded if self.zeros else self.h

    @property
    def beyond(self) -> int:
        """How many pixels before its array the taps reach."""
        return 0 if self.zeros else self.pad

    @property
    def is_textbook(self) -> bool:
        """Whether it is what a simple routine takes: the results of one image with its zeros, two axes, one group."""
        plain = (self.part, self.n, self.groups, self.axes, self.dilation) == ("results", 1, 1, 2, 1)
        return self.zeros and plain

    @property
    def sizes(self) -> dict[str, int]:
        """The open sizes of the loops over an image with its zeros."""
        return {"N": self.n, "C": self.c, "K": self.k, "P": self.out, "Q": self.out, "R": self.r, "S": self.r}

    @property
    def flop(self) -> int:
        """As libraries count: also of the taps outside the image."""
        return 2 * prod(self.shapes[RESULTS]) * prod(self.shapes[WEIGHTS][1:])

    @property
    def reduction(self) -> int:
        _, (k, *filters), (n, _, *pixels) = self.shapes
        return {
            "results": prod(filters),
            "image": k // self.groups * prod(filters[1:]),
            "weights": n * prod(pixels),
        }[self.part]

    @property
    def written(self) -> tuple[int, ...]:
        return (2,)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of the image, the weights and the results, channel first."""
        pixels, taps, results = ((extent,) * self.axes for extent in (self.height, self.r, self.out))
        return (self.n, self.c, *pixels), (self.k, self.c // self.groups, *taps), (self.n, self.k, *results)

    @property
    def operands(self) -> tuple[int, int, int]:
        """The operands and the output, as the nest takes them: which of the image, the weights and the results."""
        return {
            "results": (IMAGE, WEIGHTS, RESULTS),
            "image": (RESULTS, WEIGHTS, IMAGE),
            "weights": (IMAGE, RESULTS, WEIGHTS),
        }[self.part]

    def arrays(self, dtype: DType) -> tuple[Array, ...]:
        first = [self._array(which, dtype) for which in self.operands]
        if self.layout == "NCHW":
            return tuple(first)
        return tuple(copy(a.transpose(self.turn(which))) for a, which in zip(first, self.operands, strict=True))

    def _array(self, which: int, dtype: DType) -> Array:
        """One of the three, channel first."""
        if which != IMAGE or not self.zeros:
            return random(self.shapes[which], dtype, which)
        image = aligned(self.shapes[IMAGE], dtype)
        image.fill(0)
        inner = self.inner(image)
        inner[...] = random(inner.shape, dtype, which)
        return image

    def inner(self, image: Array) -> Array:
        """A channel-first image without the zeros around it."""
        inner = slice(self.pad, min(self.pad + self.h, self.padded)) if self.zeros else slice(None)
        found: Array = image[_at(*(inner,) * self.axes)]
        return found

    def turn(self, which: int) -> tuple[int, ...]:
        """The dimensions of the channel-first array in the order of the channel-last one."""
        pixels = range(2, 2 + self.axes)
        return (*pixels, 1, 0) if which == WEIGHTS else (0, *pixels, 1)

    def channel_first(self, arrays: tuple[Array, ...]) -> dict[int, Array]:
        """Views of the arrays as image[n, c, pixels], weights[k, c of a group, taps] and results[n, k, pixels]."""
        found = dict(zip(self.operands, arrays, strict=True))
        if self.layout == "NCHW":
            return found
        return {which: a.transpose(np.argsort(self.turn(which))) for which, a in found.items()}

    def turned(self, output: Array) -> Array:
        """A channel-first output in the problem's layout."""
        return output if self.layout == "NCHW" else output.transpose(self.turn(self.operands[2]))

    def expected(self, arrays: tuple[Array, ...]) -> NDArray[np.float64]:
        found = {which: array.astype(np.float64) for which, array in self.channel_first(arrays).items()}
        image, weights, results = (self._by_group(found[which], which) for which in (IMAGE, WEIGHTS, RESULTS))
        at = PIXELS[: self.axes]
        for taps in np.ndindex((self.r,) * self.axes):
            inside = [self._inside(self.dilation * tap) for tap in taps]
            reached = results[_at(*(there for there, _ in inside))]
            seen = image[_at(*(here for _, here in inside))]
            filters = weights[_at(*taps)]
            match self.part:
                case "results":
                    reached += np.einsum(f"gkc,ngc{at}->ngk{at}", filters, seen, optimize=True)
                case "image":
                    seen += np.einsum(f"gkc,ngk{at}->ngc{at}", filters, reached, optimize=True)
                case "weights":
                    filters += np.einsum(f"ngk{at},ngc{at}->gkc", reached, seen, optimize=True)
        return self.turned(found[self.operands[2]])

    def _by_group(self, array: NDArray[np.float64], which: int) -> NDArray[np.float64]:
        """A view whose channels, of weights those of the results, are split into groups and channels of a group."""
        before, channels, after = array.shape[:1], array.shape[1], array.shape[2:]
        if which == WEIGHTS:
            before, channels, after = (), array.shape[0], array.shape[1:]
        return array.reshape(*before, self.groups, channels // self.groups, *after)

    def _inside(self, tap: int) -> tuple[slice, slice]:
        """The results along one axis whose tap, by its pixel, is inside the image, and the pixels that they reach."""
        first = max(0, -((tap - self.beyond) // self.stride))
        last = min(self.out - 1, (self.height - 1 + self.beyond - tap) // self.stride)
        begin = self.stride * first + tap - self.beyond
        end = self.stride * last + tap - self.beyond + 1
        return slice(first, last + 1), slice(begin, max(begin, end), self.stride)

    def traffic(self, dtype: DType) -> int:
        sizes = [prod(self.shapes[which]) for which in self.operands]
        return dtype.size * (sum(sizes) + sizes[2])


def _at(*axes: slice | int) -> Any:
    """The index of some elements along the last axes, along all others of all."""
    return (..., *axes)
