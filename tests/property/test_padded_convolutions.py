"""Convolutions of an image as it is, whose taps outside it are left out: layouts, strides, dilations and paddings."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poly
from poly.autoschedule.rules.attempt import attempt
from poly.autoschedule.rules.isolation import isolated
from poly.autoschedule.rules.microkernels import with_interiors, with_turned_tiles
from poly.autoschedule.rules.non_rectangular import Place, RegisterTile, best_box, tiled_steps
from poly.machine.target import parse
from poly.model.core import Target
from poly.model.host import here
from poly.schedules.schedule import Schedule, schedule


@dataclass(frozen=True)
class Layer:
    """A square filter over an image of `n` pictures, `c` channels, `h` by `w` pixels; `f` channels out."""

    n: int
    c: int
    f: int
    h: int
    w: int
    taps: int
    stride: int
    dilation: int
    pad: int
    first: bool
    """Whether the channels come before the pixels."""

    @property
    def out(self) -> tuple[int, int]:
        reach = self.dilation * (self.taps - 1) + 1
        return tuple((extent + 2 * self.pad - reach) // self.stride + 1 for extent in (self.h, self.w))

    @property
    def text(self) -> str:
        """The seven loops in the order of the layout, with the image's bounds as a condition."""
        (p, q), k, n = self.out, self.taps, self.n
        y, x = (f"{self.stride} * {at} + {self.dilation} * {tap} - {self.pad}" for at, tap in (("p", "r"), ("q", "s")))
        image, weights, out = ("n, c, {0}, {1}", "f, c, r, s", "n, f, p, q")
        order = {"n": n, "f": self.f, "p": p, "q": q, "c": self.c, "r": k, "s": k}
        shapes = [(n, self.c, self.h, self.w), (self.f, self.c, k, k), (n, self.f, p, q)]
        if not self.first:
            image, weights, out = ("n, {0}, {1}, c", "r, s, c, f", "n, p, q, f")
            order = {name: order[name] for name in "npqfrsc"}
            shapes = [(n, self.h, self.w, self.c), (k, k, self.c, self.f), (n, p, q, self.f)]
        types = (f"{name}: 'f32{list(shape)}'" for name, shape in zip("IWO", shapes, strict=True))
        lines = [f"def layer({', '.join(types)}):"]
        lines += [f"{'    ' * (depth + 1)}for {v} in range({e}):" for depth, (v, e) in enumerate(order.items())]
        lines.append(f"{'    ' * 8}if 0 <= {y} < {self.h} and 0 <= {x} < {self.w}:")
        lines.append(f"{'    ' * 9}O[{out}] += I[{image.format(y, x)}] * W[{weights}]")
        return "\n".join(lines)

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The image, the weights and what is in the output before, in this layout."""
        rng, (p, q) = np.random.default_rng(11), self.out
        shapes = (self.n, self.c, self.h, self.w), (self.f, self.c, self.taps, self.taps), (self.n, self.f, p, q)
        found = [rng.standard_normal(shape, np.float32) for shape in shapes]
        if self.first:
            return tuple(found)
        turns = ((0, 2, 3, 1), (2, 3, 1, 0), (0, 2, 3, 1))
        return tuple(np.ascontiguousarray(x.transpose(turn)) for x, turn in zip(found, turns, strict=True))

    def expected(self, image: np.ndarray, weights: np.ndarray, out: np.ndarray) -> np.ndarray:
        """The sums over the taps inside the image, one tap and one row of pixels after the other, in f64."""
        if not self.first:
            turned = image.transpose(0, 3, 1, 2), weights.transpose(3, 2, 0, 1), out.transpose(0, 3, 1, 2)
            return Layer(**{**vars(self), "first": True}).expected(*turned).transpose(0, 2, 3, 1)
        result = out.astype(np.float64)
        for r, s, p, q in np.ndindex(self.taps, self.taps, *self.out):
            y, x = (self.stride * at + self.dilation * tap - self.pad for at, tap in ((p, r), (q, s)))
            if 0 <= y < self.h and 0 <= x < self.w:
                result[:, :, p, q] += image[:, :, y, x].astype(np.float64) @ weights[:, :, r, s].T.astype(np.float64)
        return result


Way = Literal["apart"] | Place
"""Interiors apart from borders, or a place of the loop over the tiles of columns."""


def placed(nest: poly.Nest, place: Place, copied: bool, target: Target) -> Schedule | None:
    """The schedule of the usual box with another place, and a copy of the right operand; None if it has no box, or that
    is illegal."""
    box, alone = best_box(nest, nest.statements[0], target), isolated(schedule(nest), nest.statements[0])
    if box is None or alone is None:
        return None
    base, loops = alone
    return attempt(base, tiled_steps(box, loops, RegisterTile(box.kernel(target.isa), place, copied=copied)))


def check(
    layer: Layer,
    target: str = "c",
    threads: int = 1,
    packed: bool = False,
    way: Way | None = None,
    copied: bool = False,
) -> poly.Kernel:
    """Compare a kernel with the sums; `way` is how it runs, whatever the model says, and `copied` whether by a copy."""
    nest, goal = poly.parse(layer.text), here(parse(target).isa, threads)
    made = with_interiors(nest, goal, pays=inf) if way == "apart" else placed(nest, way, copied, goal) if way else None
    kernel = poly.compile(nest, target=target, threads=threads, schedule=made)
    compare(layer, kernel, packed)
    return kernel


def compare(layer: Layer, kernel: poly.Kernel, packed: bool) -> None:
    image, weights, out = layer.arrays()
    expected = layer.expected(image, weights, out)
    if packed and "microkernel gemm" in str(kernel.schedule):
        kernel.prepack("W", weights)(image, out)
    else:
        kernel(image, weights, out)
    bound = 8 * np.finfo(np.float32).eps * layer.taps * np.sqrt(layer.c) * 8
    np.testing.assert_allclose(out, expected, rtol=0, atol=bound)


RESIDUAL = [
    Layer(1, 3, 21, 19, 19, 7, 2, 1, 3, first=False),
    Layer(1, 3, 21, 19, 19, 7, 2, 1, 3, first=True),
    Layer(1, 19, 13, 9, 9, 3, 2, 1, 1, first=True),
    Layer(2, 33, 17, 7, 7, 3, 1, 1, 1, first=True),
    Layer(2, 17, 65, 7, 7, 3, 1, 1, 1, first=False),
]


@pytest.mark.parametrize("layer", RESIDUAL, ids=str)
def test_it_goes_to_a_microkernel(layer: Layer) -> None:
    """Also with three channels or pixels apart, where no single loop of the reduction or of the columns would do."""
    assert "microkernel" in str(check(layer).schedule)


@pytest.mark.parametrize("layer", RESIDUAL, ids=str)
@pytest.mark.parametrize("target", ["c", "c:avx2"])
def test_weights_are_packed_before(layer: Layer, target: str) -> None:
    """A call at the border has fewer taps, and reads the part of a panel that has them."""
    check(layer, target, packed=True)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("threads", [1, 2])
def test_weights_larger_than_the_cache_are_read_once(first: bool, threads: int) -> None:
    """The loop over their tiles is the outermost."""
    kernel = check(Layer(1, 512, 512, 3, 2, 3, 1, 1, 1, first), threads=threads)
    assert str(kernel.schedule).splitlines()[0].startswith("for f_tile"), kernel.schedule


@pytest.mark.parametrize("place", ["outside", "over all"])
def test_each_tap_finds_its_own_lanes(place: Place) -> None:
    """The panels of three taps are next to each other in the image, and that of the first one begins a pixel later."""
    check(Layer(1, 20, 30, 1, 70, 3, 2, 1, 1, first=True), way=place)


@pytest.mark.parametrize("first", [True, False])
def test_what_lies_outside_takes_no_part(first: bool) -> None:
    """A weight that is not a number and only meets the border does not reach any result."""
    layer = Layer(1, 16, 16, 1, 1, 3, 1, 1, 1, first)
    kernel = poly.compile(poly.parse(layer.text), threads=1)
    image, weights, out = layer.arrays()
    expected = layer.expected(image, weights, out)
    taps = weights.transpose(2, 3, 0, 1) if first else weights
    centre = taps[1, 1].copy()
    taps[...] = np.nan
    taps[1, 1] = centre
    kernel(image, weights, out)
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("target", ["c", "c:avx2"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "layer", [Layer(2, 19, 65, 5, 7, 1, 2, 1, 0, first=True), Layer(1, 70, 34, 5, 5, 1, 1, 1, 0, first=True)]
)
def test_results_of_few_pixels_have_lanes_along_channels(layer: Layer, packed: bool, target: str) -> None:
    nest = poly.parse(layer.text)
    made = with_turned_tiles(nest, here(parse(target).isa, 1))
    assert made is not None
    compare(layer, poly.compile(nest, target=target, schedule=made, threads=1), packed)


def test_weights_packed_before_allow_for_another_choice() -> None:
    """Copies of many weights for few pixels do not pay off in each call."""
    layer = Layer(1, 512, 256, 7, 7, 1, 1, 1, 0, first=True)
    kernel = poly.compile(poly.parse(layer.text), threads=1)
    packed = kernel.prepack("W", layer.arrays()[1])
    assert "p_q" in str(kernel.schedule)
    assert "p_q" not in str(packed.schedule)


LAYERS = st.builds(
    Layer,
    n=st.integers(1, 2),
    c=st.integers(1, 20),
    f=st.sampled_from([1, 7, 16, 33]),
    h=st.integers(5, 9),
    w=st.integers(5, 18),
    taps=st.integers(1, 3),
    stride=st.integers(1, 3),
    dilation=st.integers(1, 2),
    pad=st.integers(0, 3),
    first=st.booleans(),
)


@settings(max_examples=10, deadline=None)
@given(
    layer=LAYERS,
    target=st.sampled_from(["c", "c:avx2"]),
    packed=st.booleans(),
    way=st.sampled_from([None, "apart", *get_args(Place)]),
    copied=st.booleans(),
)
def test_any_layer(layer: Layer, target: str, packed: bool, way: Way | None, copied: bool) -> None:
    check(layer, target, packed=packed, way=way, copied=copied)
