"""Jammed iterations in lanes: depthwise convolutions and other stencils with channels, against plain loops in f64."""

import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import poly
from microkernels.isa import AVX2, AVX512
from poly import f32, f64
from poly.autoschedule.rules.jam import usual_jam
from poly.model.core import Target
from tests.support.machines import LARGE, derived

ISAS = ("c", "c:avx2", "c:portable")


WAYS = {
    "added": ("", "Y[{at}] += {product}", ""),
    "set": ("Y[{at}] = 0.0", "Y[{at}] += {product}", ""),
    "local": ("t: {T} = 0.0", "t += {product}", "Y[{at}] = max(t, -1.0)"),
}
"""What runs before, in and behind the loops over taps."""


def depthwise(channels, image, taps, stride, pad, last, T, way="set"):
    """A depthwise convolution of a padded image: NHWC if the channels come `last`, or NCHW."""
    (H, W), (R, S), C = image, taps, channels
    P, Q = (H + 2 * pad - R) // stride + 1, (W + 2 * pad - S) // stride + 1
    y, x = f"{stride} * p + r - {pad}", f"{stride} * q + s - {pad}"
    at = "p, q, c" if last else "c, p, q"
    product = f"X[{y}, {x}, c] * F[r, s, c]" if last else f"X[c, {y}, {x}] * F[c, r, s]"
    before, inside, behind = (line.format(at=at, product=product, T=f"'{T.name}'") for line in WAYS[way])
    shapes = ([H, W], [R, S], [P, Q])
    types = [f"'{T.name}{[*shape, C] if last else [C, *shape]}'" for shape in shapes]
    loops = [("p", P), ("q", Q), ("c", C)] if last else [("c", C), ("p", P), ("q", Q)]
    lines = [f"def depthwise(X: {types[0]}, F: {types[1]}, Y: {types[2]}):"]
    lines += [f"{'    ' * depth}for {name} in range({extent}):" for depth, (name, extent) in enumerate(loops, 1)]
    body = [
        before,
        f"for r in range({R}):",
        f"    for s in range({S}):",
        f"        if 0 <= {y} < {H} and 0 <= {x} < {W}:",
        f"            {inside}",
        behind,
    ]
    return poly.parse("\n".join([*lines, *(" " * 16 + line for line in body if line)])), (P, Q)


def expected(x, w, y, stride, pad, last, way):
    x, w, y = (np.moveaxis(a, -1, 0) if last else a for a in (x, w, y))
    x = np.pad(x.astype(np.float64), ((0, 0), (pad, pad), (pad, pad)))
    total = y.astype(np.float64) if way == "added" else np.zeros(y.shape)
    for r in range(w.shape[1]):
        for s in range(w.shape[2]):
            part = x[:, r : r + stride * (y.shape[1] - 1) + 1 : stride, s : s + stride * (y.shape[2] - 1) + 1 : stride]
            total = total + part * w[:, r, s].astype(np.float64)[:, None, None]
    total = np.maximum(total, -1) if way == "local" else total
    return np.moveaxis(total, 0, -1) if last else total


@settings(max_examples=12, deadline=None)
@given(
    channels=st.integers(1, 35) | st.sampled_from([512, 1024]),
    image=st.tuples(st.integers(3, 19), st.integers(3, 35)),
    taps=st.sampled_from([(3, 3), (1, 3), (2, 2), (5, 5), (3, 1)]),
    stride=st.integers(1, 2),
    pad=st.integers(0, 2),
    last=st.booleans(),
    dtype=st.sampled_from([f32, f64]),
    way=st.sampled_from(list(WAYS)),
    isa=st.sampled_from(ISAS),
    threads=st.sampled_from([1, 2]),
)
@example(2, (7, 35), (3, 3), 1, 1, False, f32, "local", "c", 1)
@example(2, (7, 13), (3, 3), 2, 1, False, f32, "local", "c", 1)
@example(2, (9, 35), (3, 3), 1, 1, False, f32, "local", "c:avx2", 1)
@example(1024, (4, 5), (3, 3), 1, 1, True, f32, "added", "c:avx2", 1)
def test_depthwise(channels, image, taps, stride, pad, last, dtype, way, isa, threads):
    image = tuple(max(size, tap) for size, tap in zip(image, taps, strict=True))
    nest, out = depthwise(channels, image, taps, stride, pad, last, dtype, way)
    kernel = poly.compile(nest, target=isa, threads=threads)
    random = np.random.default_rng(0)
    numpy = np.float32 if dtype == f32 else np.float64

    def array(height, width):
        shape = (height, width, channels) if last else (channels, height, width)
        return random.standard_normal(shape).astype(numpy)

    x, w, y = array(*image), array(*taps), array(*out)
    wanted = expected(x, w, y, stride, pad, last, way)
    if way != "added":
        y[...] = np.nan
    kernel(x, w, y)
    bound = 4 * taps[0] * taps[1] * np.finfo(numpy).eps * (np.abs(wanted).max() + 10)
    np.testing.assert_allclose(y, wanted, rtol=0, atol=bound)


def pooling(channels, image, taps, stride, last, T):
    """The greatest and the sum of an image's neighbourhoods, each in a local: NHWC if the channels come `last`."""
    (H, W), (R, S), C = image, taps, channels
    P, Q = (H - R) // stride + 1, (W - S) // stride + 1

    @poly.nest
    def nhwc(X: T[H, W, C], Y: T[P, Q, C], Z: T[P, Q, C]):
        for p in range(P):
            for q in range(Q):
                for c in range(C):
                    most = X[stride * p, stride * q, c]
                    total: T = 0.0
                    for r in range(R):
                        for s in range(S):
                            most = max(most, X[stride * p + r, stride * q + s, c])
                            total += X[stride * p + r, stride * q + s, c]
                    Y[p, q, c] = most
                    Z[p, q, c] = total / (R * S)

    @poly.nest
    def nchw(X: T[C, H, W], Y: T[C, P, Q], Z: T[C, P, Q]):
        for c in range(C):
            for p in range(P):
                for q in range(Q):
                    most = X[c, stride * p, stride * q]
                    total: T = 0.0
                    for r in range(R):
                        for s in range(S):
                            most = max(most, X[c, stride * p + r, stride * q + s])
                            total += X[c, stride * p + r, stride * q + s]
                    Y[c, p, q] = most
                    Z[c, p, q] = total / (R * S)

    return (nhwc if last else nchw), (P, Q)


@settings(max_examples=8, deadline=None)
@given(
    channels=st.integers(1, 35),
    image=st.tuples(st.integers(3, 19), st.integers(3, 35)),
    taps=st.sampled_from([(2, 2), (3, 3), (1, 3), (3, 1)]),
    stride=st.integers(1, 3),
    last=st.booleans(),
    isa=st.sampled_from(ISAS),
    threads=st.sampled_from([1, 2]),
)
@example(32, (8, 8), (2, 2), 2, True, "c", 1)
def test_pooling_with_locals(channels, image, taps, stride, last, isa, threads):
    """Each of the jammed iterations has locals of its own."""
    nest, out = pooling(channels, image, taps, stride, last, f32)
    shapes = [(*size, channels) if last else (channels, *size) for size in (image, out)]
    x = np.random.default_rng(0).standard_normal(shapes[0]).astype(np.float32)
    y, z = (np.full(shapes[1], np.nan, np.float32) for _ in range(2))
    poly.compile(nest, target=isa, threads=threads)(x, y, z)
    wide = np.moveaxis(x, -1, 0) if last else x
    parts = [
        wide[:, r : r + stride * (out[0] - 1) + 1 : stride, s : s + stride * (out[1] - 1) + 1 : stride]
        for r in range(taps[0])
        for s in range(taps[1])
    ]
    most, mean = np.max(parts, axis=0), np.mean(parts, axis=0, dtype=np.float64)
    np.testing.assert_array_equal(np.moveaxis(y, -1, 0) if last else y, most)
    np.testing.assert_allclose(np.moveaxis(z, -1, 0) if last else z, mean, rtol=0, atol=1e-6 * np.abs(parts).max())


@pytest.mark.parametrize(("last", "lanes", "jam"), [(True, "c", "q"), (False, "q", "p")])
def test_depthwise_has_lanes_along_contiguous_elements(last, lanes, jam):
    nest, _ = depthwise(32, (14, 14), (3, 3), 1, 1, last, f32)
    text = str(poly.compile(nest, threads=1).schedule)
    assert re.search(rf"for {lanes} in .*# vectorize\n\s*for {jam} in .*# unroll 7", text)


CROWDED = {
    ("added", 1024): (1, "r"),
    ("added", 512): (5, "r"),
    ("added", 256): (4, ""),
    ("added", 264): (7, ""),
    ("set", 1024): (1, "r"),
    ("set", 256): (4, ""),
}
"""How many pixels are jammed, and the loop around the lanes, by what is computed and the number of channels."""


@pytest.mark.parametrize(("way", "channels"), CROWDED)
def test_lines_of_jammed_pixels_fit_in_the_ways_of_their_set(way, channels):
    """Of 256 channels, four columns of pixels begin in one set, of 1024 all; vectors that are lines come once."""
    nest, _ = depthwise(channels, (14, 14), (3, 3), 1, 1, True, f32, way)
    for isa in (AVX2, AVX512):
        size, around = CROWDED[way, channels] if isa == AVX2 else (7, "")
        text = str(usual_jam(nest, Target.nominal(isa, LARGE, 1)).tried)
        before, inside = text.split("for c in")
        assert f"for q_tile in range({-(-14 // size)})" in before or size == 1
        assert ("for r in" in before) == (around == "r")
        assert "for s in" in inside


def test_how_many_iterations_are_jammed_is_a_knob():
    nest, _ = depthwise(32, (14, 14), (3, 3), 1, 1, True, f32)
    space = derived(nest)
    chosen = space.structures[space.choice.structure]
    assert [(knob.name, knob.values) for knob in chosen.knobs] == [("jam", (1, 2, 3, 4, 5, 7))]
    for size in (1, 5, 7):
        assert f"for q_tile in range({-(-14 // size)})" in str(chosen.schedule({"jam": size}))


def test_taps_of_a_single_jammed_iteration_are_written_out():
    nest, _ = depthwise(32, (7, 7), (3, 3), 1, 1, True, f32)
    made = poly.schedule(nest).split(q=1).order("p q_tile c q").unroll(q=2, r=3, s=3).vectorize("c")
    assert not re.search(r"for \(int64_t [rs] =", poly.compile(nest, schedule=made, threads=1).source)


def test_lanes_that_read_every_second_element_have_no_masks():
    nest, _ = depthwise(2, (4, 61), (3, 3), 2, 1, False, f32)
    source = poly.compile(nest, target="c:avx2", threads=1).source
    assert "_lanes" not in source
    assert not re.search(r"if \(.*\bq\b", source)


@pytest.mark.parametrize("way", ["set", "local"])
def test_infinite_weights_outside_the_image_are_not_multiplied(way):
    nest, _ = depthwise(2, (7, 7), (3, 3), 1, 1, False, f32, way)
    w = np.zeros((2, 3, 3), np.float32)
    w[:, :, 0] = np.inf
    x, y = np.ones((2, 7, 7), np.float32), np.full((2, 7, 7), np.nan, np.float32)
    kernel = poly.compile(nest, threads=1)
    kernel(x, w, y)
    assert "f32x16_lanes" in kernel.source or kernel.isa.name != "avx512"
    assert np.all(y[:, :, 0] == 0)
    assert np.all(np.isinf(y[:, :, 1:]))


def test_a_loop_may_be_longer_than_what_is_written_out_of_it():
    nest, _ = depthwise(32, (14, 14), (3, 3), 1, 1, True, f32)
    cut = poly.schedule(nest).split(q=4).order("p q_tile c q").unroll(q=2, r=3, s=3)
    assert cut.vectorize("c"), "lanes go through it together"
    assert cut.unroll(q=4).vectorize("c")
