"""Gradients of convolutions as plain loops: of the image by gathering and by scattering, and of the weights."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poly
from microkernels.isa import ISAS
from poly.autoschedule.default import default_schedule
from poly.model.core import Target
from tests.support.machines import LARGE

WAYS = ("scatter", "gather", "weights")


@dataclass(frozen=True)
class Gradient:
    """A gradient of a layer of `n` pictures, `c` and `k` channels, `h` by `w` pixels and `taps` by `taps` taps.

    `scatter` adds each result's share to the image's gradient, `gather` sums up all shares of a pixel, which takes a
    stride of 1, and `weights` is the gradient of the weights.
    """

    way: str
    n: int
    c: int
    k: int
    h: int
    w: int
    taps: int
    stride: int
    pad: int
    first: bool
    """Whether the channels come before the pixels."""

    @property
    def out(self) -> tuple[int, int]:
        return tuple((extent + 2 * self.pad - self.taps) // self.stride + 1 for extent in (self.h, self.w))

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the image, the weights and the results, by the first letters of their subscripts."""
        (p, q), n, c, k = self.out, self.n, self.c, self.k
        if self.first:
            return {"X": (n, c, self.h, self.w), "W": (k, c, self.taps, self.taps), "Y": (n, k, p, q)}
        return {"X": (n, self.h, self.w, c), "W": (self.taps, self.taps, c, k), "Y": (n, p, q, k)}

    @property
    def text(self) -> str:
        """The seven loops in the order of the layout, with the bounds as a condition."""
        gathers, (p, q) = self.way == "gather", self.out
        names = (("h", "r"), ("w", "s")) if gathers else (("p", "r"), ("q", "s"))
        far = [f"{a} - {b} + {self.pad}" if gathers else f"{self.stride} * {a} + {b} - {self.pad}" for a, b in names]
        within = (p, q) if gathers else (self.h, self.w)
        image, results = (("h", "w"), far) if gathers else (far, ("p", "q"))
        picture, weights, output = (
            ("n, c, {}, {}", "k, c, r, s", "n, k, {}, {}")
            if self.first
            else ("n, {}, {}, c", "r, s, c, k", "n, {}, {}, k")
        )
        extents = {"n": self.n, "c": self.c, "k": self.k, "r": self.taps, "s": self.taps}
        extents |= dict(zip("hw" if gathers else "pq", (self.h, self.w) if gathers else (p, q), strict=True))
        order = "nkpqcrs" if self.first else "npqkrsc"
        order = ("nchwkrs" if self.first else "nhwcrsk") if gathers else order
        terms = {"X": picture.format(*image), "W": weights, "Y": output.format(*results)}
        target = "W" if self.way == "weights" else "X"
        left, right = (name for name in "XWY" if name != target)
        types = [f"{name}: 'f32{list(self.shapes[name])}'" for name in (left, right, target)]
        lines = [f"def gradient({', '.join(types)}):"]
        lines += [f"{'    ' * (at + 1)}for {v} in range({extents[v]}):" for at, v in enumerate(order)]
        lines.append(f"{'    ' * 8}if 0 <= {far[0]} < {within[0]} and 0 <= {far[1]} < {within[1]}:")
        product = f"{left}[{terms[left]}] * {right}[{terms[right]}]"
        lines.append(f"{'    ' * 9}{target}[{terms[target]}] += {product}")
        return "\n".join(lines)

    def expected(self, x: np.ndarray, w: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The gradient plus what is there before: of the three arrays, the one that is written is a sum in f64."""
        arrays = [array.astype(np.float64) for array in (x, w, y)]
        if not self.first:
            arrays = [
                a.transpose(turn) for a, turn in zip(arrays, ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2)), strict=True)
            ]
        image, weights, output = arrays
        for r, s, p, q in np.ndindex(self.taps, self.taps, *self.out):
            i, j = self.stride * p + r - self.pad, self.stride * q + s - self.pad
            if not (0 <= i < self.h and 0 <= j < self.w):
                continue
            if self.way == "weights":
                weights[:, :, r, s] += output[:, :, p, q].T @ image[:, :, i, j]
            else:
                image[:, :, i, j] += output[:, :, p, q] @ weights[:, :, r, s]
        if self.way == "weights":
            return weights if self.first else weights.transpose(2, 3, 1, 0)
        return image if self.first else image.transpose(0, 2, 3, 1)


def check(gradient: Gradient, target: str = "c", threads: int = 1, packed: bool = False) -> poly.Kernel:
    kernel = poly.compile(poly.parse(gradient.text), target=target, threads=threads)
    rng = np.random.default_rng(3)
    arrays = {name: rng.standard_normal(shape, np.float32) for name, shape in gradient.shapes.items()}
    expected = gradient.expected(*arrays.values())
    written = arrays.pop("W" if gradient.way == "weights" else "X")
    if packed:
        kernel.prepack("W", arrays.pop("W"))(*arrays.values(), written)
    else:
        kernel(*arrays.values(), written)
    steps = gradient.n * np.prod(gradient.out) if gradient.way == "weights" else gradient.k * gradient.taps**2
    np.testing.assert_allclose(written, expected, rtol=0, atol=64 * np.finfo(np.float32).eps * np.sqrt(steps))
    return kernel


@pytest.mark.parametrize("target", ["c", "c:avx2"])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_it_goes_to_a_microkernel(way: str, first: bool, target: str) -> None:
    """Also where the results are contiguous along three taps or seven pixels only, and the channels are far apart."""
    layer = Gradient(way, 1, 37, 33, 7, 7, 3, 1, 1, first)
    kernel = check(layer, target, packed=False)
    assert "microkernel" in str(kernel.schedule), kernel.schedule
    if way != "weights":
        check(layer, target, packed=True)


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
@pytest.mark.parametrize("channels", [16, 64])
def test_weights_far_apart_are_copied_before_the_taps(channels: int, isa: str) -> None:
    """Nine taps lie next to each other: they are read once, and never in place once they exceed the nearest cache."""
    layer = Gradient("scatter", 1, channels, channels, 7, 7, 3, 1, 1, first=True)
    text = str(default_schedule(poly.parse(layer.text), Target.nominal(ISAS[isa], LARGE, 1)))
    if channels == 64:
        assert re.match(r"for c_tile in .*\n\s*# pack W\n\s*for r in", text), text
    else:
        assert "pack W" not in text, text


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_threads_share_it(way: str, first: bool) -> None:
    check(Gradient(way, 2, 66, 70, 9, 8, 3, 1, 1, first), threads=2)


GRADIENTS = st.builds(
    Gradient,
    way=st.sampled_from(WAYS),
    n=st.integers(1, 2),
    c=st.sampled_from([1, 3, 16, 21]),
    k=st.sampled_from([1, 7, 16, 33]),
    h=st.integers(4, 9),
    w=st.integers(4, 18),
    taps=st.integers(1, 3),
    stride=st.integers(1, 3),
    pad=st.integers(0, 2),
    first=st.booleans(),
).filter(lambda gradient: gradient.way != "gather" or gradient.stride == 1)


@settings(max_examples=12, deadline=None)
@given(gradient=GRADIENTS, target=st.sampled_from(["c", "c:avx2"]))
def test_any_gradient(gradient: Gradient, target: str) -> None:
    check(gradient, target)
