"""Rows of few elements behind each other in memory are one loop, and have the results of plain loops."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import poly
from poly import f32

B, C, H, W = poly.sizes("B C H W")


@poly.nest
def averages(x: f32[B, C, H, W], y: f32[B, C]):
    for b in range(B):
        for c in range(C):
            total: f32 = 0.0
            for i in range(H):
                for j in range(W):
                    total += x[b, c, i, j]
            y[b, c] = total / (H * W)


@poly.nest
def scaled(x: f32[B, C, H, W], a: f32[C], y: f32[B, C, H, W]):
    for b in range(B):
        for c in range(C):
            for i in range(H):
                for j in range(W):
                    y[b, c, i, j] = x[b, c, i, j] * a[c]


@poly.nest
def inner(x: f32[B, C, H + 1, W + 1], y: f32[B, C, H, W]):
    for b in range(B):
        for c in range(C):
            for i in range(H):
                for j in range(W):
                    y[b, c, i, j] = x[b, c, i + 1, j + 1]


@poly.nest
def indices(y: f32[B, C, H, W]):
    for b in range(B):
        for c in range(C):
            for i in range(H):
                for j in range(W):
                    y[b, c, i, j] = 64 * b + 16 * c + 4 * i + j


@settings(max_examples=9, deadline=None)
@given(
    sizes=st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 20), st.integers(1, 40)),
    target=st.sampled_from(["c", "c:avx2", "c:portable"]),
    threads=st.sampled_from([1, 2]),
)
@example((2, 5, 7, 7), "c", 1)
@example((2, 5, 7, 7), "c:avx2", 2)
def test_results(sizes, target, threads):
    b, c, h, w = sizes
    known = dict(zip("BCHW", sizes, strict=True))
    rng = np.random.default_rng(0)
    x, a = rng.standard_normal((b, c, h, w), np.float32), rng.standard_normal(c, np.float32)
    wide = rng.standard_normal((b, c, h + 1, w + 1), np.float32)

    def ran(nest, shape, *arrays):
        y = np.full(shape, np.nan, np.float32)
        poly.compile(nest, sizes=known, target=target, threads=threads)(*arrays, y)
        return y

    mean = x.astype(np.float64).mean(axis=(2, 3))
    bound = h * w * np.finfo(np.float32).eps * np.abs(x).max()
    np.testing.assert_allclose(ran(averages, (b, c), x), mean, rtol=0, atol=bound)
    np.testing.assert_array_equal(ran(scaled, x.shape, x, a), x * a[:, None, None])
    np.testing.assert_array_equal(ran(inner, x.shape, wide), wide[:, :, 1:, 1:])
    places = np.einsum("i...->...i", np.indices(x.shape)) @ [64, 16, 4, 1]
    np.testing.assert_array_equal(ran(indices, x.shape), places.astype(np.float32))


@pytest.mark.parametrize(
    ("nest", "loops"),
    [
        (averages, "for i_j in range(49):  # vectorize"),
        (scaled, "for i_j in range(49):  # vectorize"),
        (inner, "for j in range(7):  # vectorize"),
    ],
    ids=["averages", "scaled", "inner"],
)
def test_loops_that_go_on_where_the_inner_one_ends_are_one(nest, loops):
    kernel = poly.compile(nest, sizes={"B": 2, "C": 5, "H": 7, "W": 7}, threads=1)
    assert loops in str(kernel.schedule)
    assert "% 7" not in kernel.source.rpartition("*/")[2]
