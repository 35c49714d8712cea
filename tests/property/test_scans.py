"""Prefix sums, products and extremes run a vector at a time, in both of the usual forms, and are those of the loops."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poly
from microkernels.isa import ISAS
from poly import f32, f64, i32, i64, u8
from poly.ir.tree import bands

M, N = poly.sizes("M N")


@poly.nest
def of_rows(A: f32[M, N], B: f32[M, N]):
    for i in range(M):
        s = 0.0
        for j in range(N):
            s += A[i, j]
            B[i, j] = s


@poly.nest
def of_columns(A: f64[M, N], B: f64[M, N]):
    for j in range(N):
        s = 0.0
        for i in range(M):
            s += A[i, j]
            B[i, j] = s


@poly.nest
def exclusive(x: i64[N], y: i64[N], z: i64[N], s: i64[1]):
    for i in range(N):
        y[i] = s[0]
        s[0] += x[i] * x[i]
        z[i] = s[0] - x[i]


@poly.nest
def from_the_element_before(x: f64[N], y: f64[N]):
    for i in range(1, N):
        y[i] = y[i - 1] + x[i]


@poly.nest
def in_place(A: i32[M, N]):
    for i in range(M):
        for j in range(1, N):
            A[i, j] += A[i, j - 1]


@poly.nest
def greatest_so_far(x: f32[N], y: f32[N]):
    for i in range(1, N):
        y[i] = max(y[i - 1], x[i])


@poly.nest
def least_so_far(x: f32[N], y: f32[N], m: f32[1]):
    for i in range(N):
        m[0] = min(m[0], x[i])
        y[i] = m[0]


@poly.nest
def products(x: i32[N], y: i32[N], s: i32[1]):
    for i in range(N):
        s[0] *= x[i]
        y[i] = s[0]


NESTS = [of_rows, exclusive, from_the_element_before, in_place, greatest_so_far, least_so_far, products]
TARGETS = [f"c:{name}" for name in ("avx512", "avx2", "portable") if ISAS[name].runs_here()]


@cache
def compiled(nest: poly.Nest, target: str) -> poly.Kernel:
    """One kernel for all tests."""
    return poly.compile(nest, target=target, records=False, threads=1)


@pytest.mark.parametrize("nest", NESTS, ids=lambda nest: nest.name)
def test_it_runs_a_vector_at_a_time(nest: poly.Function) -> None:
    assert all("_scan_" in compiled(nest, target).source for target in TARGETS)


@settings(deadline=None, max_examples=15)
@given(st.data())
@pytest.mark.parametrize("nest", [*NESTS, of_columns], ids=lambda nest: nest.name)
def test_results_are_those_of_the_loops(nest: poly.Function, data: st.DataObject) -> None:
    """Small whole numbers have exact sums in every order; NaN and infinity only where nothing is added."""
    sizes = {"N": data.draw(st.sampled_from([1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 18, 33, 40])), "M": 3}
    draw = np.random.default_rng(data.draw(st.integers(0, 99)))
    special = [np.nan, np.inf, -np.inf, -0.0] if "so_far" in nest.name else []
    arrays = []
    for array in (one for one in nest.arrays if one.kind != "local"):
        shape = tuple(extent.evaluate(sizes) for extent in array.shape)
        arrays.append(draw.choice([*range(-3, 4), *special], shape).astype(array.dtype.numpy_name))
    expected = [x.copy() for x in arrays]
    nest.reference(*expected)
    for target in TARGETS:
        own = [x.copy() for x in arrays]
        compiled(nest, target)(*own)
        for got, wanted in zip(own, expected, strict=True):
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("nest", [of_rows, from_the_element_before], ids=lambda nest: nest.name)
def test_the_order_of_a_sum_is_kept_where_that_is_asked(nest: poly.Function) -> None:
    kept = poly.compile(replace(nest, reassociate=False), records=False)
    assert not any(band.vectorize for band in bands(kept.schedule.tree))


@pytest.mark.parametrize("nest", [greatest_so_far, in_place], ids=lambda nest: nest.name)
def test_exact_scans_need_no_permission(nest: poly.Function) -> None:
    assert "_scan_" in poly.compile(replace(nest, reassociate=False), records=False).source


@poly.nest
def of_bytes(x: u8[N], y: u8[N]):
    for i in range(1, N):
        y[i] = y[i - 1] + x[i]


@poly.nest
def where_asked(x: f32[N], y: f32[N]):
    for i in range(1, N):
        if i % 3 != 1:
            y[i] = y[i - 1] + x[i]


@pytest.mark.parametrize("nest", [of_bytes, where_asked], ids=lambda nest: nest.name)
def test_a_scan_that_is_not_printed_in_vectors_runs_in_order(nest: poly.Function) -> None:
    kernel = poly.compile(nest, records=False)
    assert "_scan_" not in kernel.source
    x, y = (np.arange(40).astype(array.dtype.numpy_name) for array in nest.arrays)
    expected = y.copy()
    nest.reference(x, expected)
    kernel(x, y)
    np.testing.assert_array_equal(y, expected)


@poly.nest
def two_sums(x: f32[N], y: f32[N], s: f32[2]):
    for i in range(N):
        s[0] += x[i]
        s[1] += s[0]
        y[i] = s[1]


@poly.nest
def beside_a_sum(x: f32[N], y: f32[N], s: f32[2]):
    for i in range(N):
        s[0] += x[i]
        y[i] = s[1] + x[i]


@poly.nest
def two_before(x: f32[N], y: f32[N]):
    for i in range(2, N):
        y[i] = y[i - 2] + x[i]


@poly.nest
def made_of_itself(x: f32[N], y: f32[N]):
    for i in range(1, N):
        y[i] = y[i - 1] + y[0] * x[i]


@poly.nest
def of_its_own_array(x: f32[N], y: f32[N]):
    for i in range(N):
        for j in range(N):
            for _ in range(9):
                y[i] += y[j] * x[i]


@poly.nest
def looked_at_elsewhere(x: f32[N], y: f32[N], z: f32[N]):
    for i in range(N):
        for j in range(N):
            y[i] += x[j]
            z[j] = y[j]


@poly.nest
def looked_at_further_inside(x: f32[N], y: f32[N], z: f32[N]):
    for i in range(3):
        for j in range(3, N):
            y[i] += x[j]
            for k in range(3):
                z[j] = min(z[j], y[k])


OTHERS = [
    looked_at_further_inside,
    two_sums,
    beside_a_sum,
    two_before,
    made_of_itself,
    of_its_own_array,
    looked_at_elsewhere,
]


@pytest.mark.parametrize("nest", OTHERS, ids=lambda nest: nest.name)
def test_other_recurrences_stay_as_they_are(nest: poly.Function) -> None:
    kernel = poly.compile(nest, records=False)
    assert "_scan_" not in kernel.source
    sizes = {"N": 20}
    shapes = [tuple(extent.evaluate(sizes) for extent in array.shape) for array in nest.arrays]
    arrays = [np.linspace(0.01, 0.02, shape[0], dtype="f4") for shape in shapes]
    expected = [x.copy() for x in arrays]
    nest.reference(*expected)
    kernel(*arrays)
    for got, wanted in zip(arrays, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5)
