"""Sums and extremes over pairs in register tiles, and pooling in lanes over its results, are those of plain loops."""

from __future__ import annotations

from functools import cache
from math import exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poly
from microkernels.isa import ISAS
from poly import f32, f64, i32, i64
from poly.ir.tree import bands

C, H, M, N, W = poly.sizes("C H M N W")


@poly.nest
def gaussians(X: f64[M, 3], Y: f64[N, 3], b: f64[N], out: f64[M]):
    for i in range(M):
        out[i] = 0
        for j in range(N):
            s = 0.0
            for k in range(3):
                s += (X[i, k] - Y[j, k]) * (X[i, k] - Y[j, k])
            out[i] += exp(-s) * b[j]


@poly.nest
def written_out(X: f32[M, 2], Y: f32[N, 2], out: f32[M]):
    for i in range(M):
        for j in range(N):
            out[i] += exp(-((X[i, 0] - Y[j, 0]) * (X[i, 0] - Y[j, 0]) + (X[i, 1] - Y[j, 1]) * (X[i, 1] - Y[j, 1])))


@poly.nest
def nearest(X: f32[M, 2], Y: f32[N, 2], best: f32[M], where: i64[M]):
    for i in range(M):
        best[i] = 1e30
        where[i] = -1
        for j in range(N):
            d: f32 = (X[i, 0] - Y[j, 0]) * (X[i, 0] - Y[j, 0]) + (X[i, 1] - Y[j, 1]) * (X[i, 1] - Y[j, 1])
            if d <= best[i]:
                best[i] = d
                where[i] = j


@poly.nest
def in_batches(x: i32[C, M], y: i32[C, N], most: i32[C, M]):
    for c in range(C):
        for i in range(M):
            for j in range(N):
                most[c, i] = max(most[c, i], x[c, i] * y[c, j])


@poly.nest
def two_results(x: f32[M], y: f32[N], low: f32[M], high: f32[M]):
    for i in range(M):
        for j in range(N):
            low[i] = min(low[i], abs(x[i] - y[j]))
            high[i] = max(high[i], x[i] + y[j])


@poly.nest
def average(X: f32[C, 2 * H + 1, 2 * W + 1], Y: f32[C, H, W]):
    for c in range(C):
        for h in range(H):
            for w in range(W):
                Y[c, h, w] = 0
                for r in range(3):
                    for s in range(3):
                        Y[c, h, w] += X[c, 2 * h + r, 2 * w + s]


@poly.nest
def greatest(X: f32[C, H + 2, W + 2], Y: f32[C, H, W]):
    for c in range(C):
        for h in range(H):
            for w in range(W):
                m = X[c, h, w]
                for r in range(3):
                    for s in range(3):
                        m = max(m, X[c, h + r, w + s])
                Y[c, h, w] = m


TILED = [gaussians, written_out, nearest, in_batches, two_results]
POOLING = [average, greatest]
TARGETS = [f"c:{name}" for name in ("avx512", "avx2", "portable") if ISAS[name].runs_here()]


@cache
def compiled(nest: poly.Nest, target: str) -> poly.Kernel:
    """One kernel for all tests."""
    return poly.compile(nest, target=target, records=False, threads=1)


@pytest.mark.parametrize("nest", TILED, ids=lambda nest: nest.name)
@pytest.mark.parametrize("target", TARGETS)
def test_loops_over_pairs_are_tiled(nest: poly.Function, target: str) -> None:
    made = compiled(nest, target)
    assert "_tile[1];" in made.source
    assert any(step.name == "interchange" for step in made.schedule.steps)
    assert "_key" in made.source or "_sum" in made.source or "_max" in made.source, "few results have lanes along j"


@pytest.mark.parametrize("nest", POOLING, ids=lambda nest: nest.name)
def test_pooling_has_lanes_over_its_results(nest: poly.Function) -> None:
    lanes = [band.name for band in bands(compiled(nest, TARGETS[0]).schedule.tree) if band.vectorize]
    assert lanes == ["w"]


@settings(deadline=None, max_examples=8)
@given(st.data())
@pytest.mark.parametrize("nest", [*TILED, *POOLING], ids=lambda nest: nest.name)
def test_results_are_those_of_plain_loops(nest: poly.Function, data: st.DataObject) -> None:
    lengths = st.sampled_from([1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33])
    sizes = {size: data.draw(lengths) for size in nest.sizes}
    sizes |= {size: min(3, sizes[size]) for size in "CH" if size in sizes}
    draw = np.random.default_rng(data.draw(st.integers(0, 99)))
    arrays = []
    for array in (one for one in nest.arrays if one.kind != "local"):
        shape = tuple(extent.evaluate(sizes) for extent in array.shape)
        arrays.append(draw.integers(-3, 4, shape).astype(array.dtype.numpy_name))
    expected = [x.copy() for x in arrays]
    nest.reference(*expected)
    for target in TARGETS:
        own = [x.copy() for x in arrays]
        compiled(nest, target)(*own)
        for got, wanted in zip(own, expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_a_result_is_read_only_where_it_is_kept() -> None:
    """An array with two kinds of subscripts stays in memory."""

    @poly.nest
    def shifted(x: f32[M + 1], y: f32[N]):
        for i in range(M):
            for j in range(N):
                x[i] += x[i + 1] * y[j]

    kernel = poly.compile(shifted, schedule=poly.schedule(shifted), records=False)
    assert "_tile" not in kernel.source
    x, y = np.arange(18.0, dtype="f4"), np.ones(3, "f4")
    expected = x.copy()
    shifted.reference(expected, y)
    kernel(x, y)
    np.testing.assert_array_equal(x, expected)
