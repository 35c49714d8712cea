"""Lanes that go through inner loops together compute what plain loops do, and are refused where they can't."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poly
from poly import f32, f64, i16, i32, u8
from poly.ir.tree import bands

H, K, M, N, R, S = poly.sizes("H K M N R S")


@poly.nest
def filtered(x: u8[H + R, N + S], w: f32[R, S], bias: f32[N], y: u8[H, N], sums: f32[H, N]):
    for i in range(H):
        for j in range(N):
            s: f32 = bias[j]
            m: f32 = -1.0
            for r in range(R):
                for t in range(S):
                    s += w[r, t] * f32(x[i + r, j + t])
                    if j + t > 3:
                        m = max(m, f32(x[i + r, j + t]))
            sums[i, j] = s - m
            y[i, j] = u8(min(max(s + 0.5, 0.0), 255.0))


@poly.nest
def in_memory(x: f64[N + K], h: f64[K], y: f64[N], z: f64[N + 1]):
    for i in range(N):
        y[i] = 0
        for k in range(K):
            y[i] += h[k] * x[i + k]
        for k in range(1, K):
            z[i + 1] = z[i + 1] * h[k] - y[i]


@poly.nest
def triangular(A: i16[M, N], c: i16[M], y: i32[N]):
    for j in range(N):
        for i in range(M):
            for k in range(i):
                y[j] += i32(A[i, j]) * i32(c[k])


@poly.nest
def in_order(x: f64[N + K], h: f64[K]):
    for i in range(N):
        for k in range(K):
            x[i] += h[k] * x[i + k]


@poly.nest
def into_one(x: f64[N, K], y: f64[K]):
    for i in range(N):
        for k in range(K):
            y[k] += x[i, k]


LOOPS = {filtered: "j", in_memory: "i", triangular: "j"}
OVERWRITTEN = {"sums", "y"}


@cache
def kernel(nest: poly.Nest, target: str) -> poly.Kernel:
    made = poly.schedule(nest).vectorize(LOOPS[nest])
    return poly.compile(nest, schedule=made, target=target, threads=1)


@pytest.mark.parametrize("target", ["c", "c:portable"])
@pytest.mark.parametrize("nest", LOOPS, ids=lambda nest: nest.name)
@settings(max_examples=10)
@given(st.data())
def test_lanes_through_loops_compute_what_plain_loops_do(nest, target, data):
    sizes = {name: data.draw(st.sampled_from([0, 1, 2, 3]), name) for name in nest.sizes}
    sizes["N"] = data.draw(st.integers(0, 70), "N")
    rng = np.random.default_rng(data.draw(st.integers(0, 99), "seed"))
    arrays = []
    for array in (one for one in nest.arrays if one.kind != "local"):
        shape = tuple(extent.evaluate(sizes) for extent in array.shape)
        arrays.append(rng.integers(0, 9, shape).astype(array.dtype.numpy_name))
        if nest is not triangular and array.name in OVERWRITTEN and array.dtype.is_float:
            arrays[-1].fill(np.nan)
    expected = [array.copy() for array in arrays]
    kernel(nest, target)(*arrays)
    nest.reference(*expected)
    for mine, theirs in zip(arrays, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)


@pytest.mark.parametrize("nest", [in_order, into_one], ids=lambda nest: nest.name)
def test_iterations_that_need_each_other_are_refused(nest):
    with pytest.raises(poly.ScheduleError, match=r"vectorize\(i\) is illegal"):
        poly.schedule(nest).vectorize("i")


def test_filters_of_open_length_have_lanes_along_their_results():
    made = poly.compile(filtered, target="c:avx2", threads=1, records=False).schedule
    assert [band.name for band in bands(made.tree) if band.vectorize] == ["j"]
