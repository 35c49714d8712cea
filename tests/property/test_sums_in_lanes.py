"""Sums that a compiler leaves scalar run in lanes: backwards, several to an iteration, of complex numbers."""

from __future__ import annotations

from dataclasses import replace
from math import exp

import numpy as np
import pytest
from headers import need_isa

import poly
from poly import f32, f64
from poly.ir.tree import bands

N = poly.sizes("N")


@poly.nest
def backwards(x: f64[N], y: f64[N], s: f64[1]):
    for i in range(N):
        s[0] += x[i] * y[N - 1 - i]


@poly.nest
def stored_and_added(x: f64[N], y: f64[N], z: f64[N], s: f64[1]):
    for i in range(N):
        x[i] = y[i] + 1
        s[0] += x[i]
        z[i] = y[i] - 2
        s[0] += z[i] * z[i]


@poly.nest
def complex_numbers(x: f64[N, 2], y: f64[N, 2], s: f64[2]):
    for i in range(N):
        s[0] += x[i, 0] * y[i, 0]
        s[0] -= x[i, 1] * y[i, 1]
        s[1] += x[i, 0] * y[i, 1]
        s[1] += x[i, 1] * y[i, 0]


@poly.nest
def some_shared(x: f64[N], y: f64[N], s: f64[N]):
    for i in range(N):
        s[0] += x[i]
        s[i] += y[i]


@poly.nest
def sum_and_greatest(x: f64[N], y: f64[N], s: f64[1]):
    for i in range(N):
        s[0] += x[i]
        s[0] = max(s[0], y[i])


@poly.nest
def every_other(x: f64[2 * N], s: f64[1]):
    for i in range(N):
        s[0] += x[2 * i]


@poly.nest
def third_of_four(x: f32[N, 4], y: f32[N], s: f32[1]):
    for i in range(N):
        s[0] += x[i, 2] * y[i]


IN_LANES = [backwards, stored_and_added, complex_numbers, every_other, third_of_four]


@pytest.mark.parametrize("target", ["c:avx512", "c:avx2", "c:portable"])
@pytest.mark.parametrize("nest", [*IN_LANES, some_shared, sum_and_greatest], ids=lambda nest: nest.name)
def test_every_element_is_taken_once(nest: poly.Function, target: str) -> None:
    """Sums of small whole numbers are exact in every order."""
    need_isa(target.removeprefix("c:"))
    kernel = poly.compile(nest, target=target, records=False, threads=1)
    assert any(band.vectorize for band in bands(kernel.schedule.tree)) == (nest in IN_LANES)
    for size in (1, 2, 7, 16, 31, 33, 64, 131):
        shapes = [tuple(extent.evaluate({"N": size}) for extent in array.shape) for array in nest.arguments]
        given = [np.random.default_rng(size).integers(-9, 9, shape).astype(float) for shape in shapes]
        arrays = [x.astype(array.dtype.numpy_name) for x, array in zip(given, nest.arrays, strict=True)]
        expected = [x.copy() for x in arrays]
        nest.reference(*expected)
        kernel(*arrays)
        for got, wanted in zip(arrays, expected, strict=True):
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("nest", IN_LANES, ids=lambda nest: nest.name)
def test_none_is_in_lanes_where_the_order_is_kept(nest: poly.Function) -> None:
    kept = replace(nest, reassociate=False)
    assert not any(band.vectorize for band in bands(poly.compile(kept, records=False).schedule.tree))


@poly.nest
def exp_and_sums(x: f32[N], y: f32[N], s: f32[1]):
    for i in range(N):
        y[i] = exp(x[i])
        s[0] += y[i]
        y[i] = 2 * y[i]
        s[0] += y[i] * y[i]


@poly.nest
def exp_of_exp(x: f32[N], y: f32[N], z: f32[N], s: f32[1]):
    for i in range(N):
        y[i] = exp(-x[i])
        z[i] = exp(y[i]) - y[i]
        s[0] += y[i] + z[i]


@poly.nest
def exp_in_a_local(x: f32[N], y: f32[N], s: f32[1]):
    e: f32[N]
    for i in range(N):
        e[i] = exp(x[i])  # noqa: F821
        s[0] += e[i]  # noqa: F821
    for i in range(N):
        y[i] = e[i] / s[0]  # noqa: F821


@pytest.mark.parametrize("target", ["c:avx512", "c:avx2"])
@pytest.mark.parametrize("nest", [exp_and_sums, exp_in_a_local, exp_of_exp], ids=lambda nest: nest.name)
def test_a_vector_that_was_stored_is_not_loaded_again(nest: poly.Function, target: str) -> None:
    need_isa(target.removeprefix("c:"))
    kernel = poly.compile(nest, target=target, records=False, threads=1)
    assert ("s_lanes.lane[lane] += exp_lanes.lane[lane];" in kernel.source) == (nest is not exp_of_exp)
    for size in (1, 2, 7, 16, 31, 33, 64, 131):
        rng = np.random.default_rng(size)
        arrays = [rng.random(1 if array.name == "s" else size, np.float32) for array in nest.arguments]
        expected = [x.copy() for x in arrays]
        nest.reference(*expected)
        kernel(*arrays)
        for got, wanted in zip(arrays, expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5)
