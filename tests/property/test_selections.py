"""Arg-min and arg-max in lanes: the first or the last of equal keys as written, NaN as the loops have it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poly
from microkernels.isa import ISAS
from poly import f32, f64, i16, i32, i64, u8
from poly.ir.tree import bands

M, N = poly.sizes("M N")


@poly.nest
def first_least(x: f32[N], best: f32[1], where: i64[1]):
    for i in range(N):
        if x[i] < best[0]:
            best[0] = x[i]
            where[0] = i


@poly.nest
def last_greatest(x: f64[N], best: f64[1], where: i64[1]):
    for i in range(N):
        if best[0] <= x[i]:
            where[0] = i
            best[0] = x[i]


@poly.nest
def with_two_values(x: i32[N], label: i32[N], best: i32[1], where: i64[1], which: i32[1]):
    for i in range(N):
        where[0] = 2 * i + 1 if x[i] > best[0] else where[0]
        which[0] = label[i] if x[i] > best[0] else which[0]
        best[0] = max(best[0], x[i])


@poly.nest
def of_rows(A: f32[M, N], where: i32[M]):
    for i in range(M):
        best: f32 = A[i, 0]
        where[i] = 0
        for j in range(1, N):
            if A[i, j] < best:
                best = A[i, j]
                where[i] = j


@poly.nest
def of_columns(A: f32[M, N], best: f32[N], where: i64[N]):
    for j in range(N):
        for i in range(M):
            if A[i, j] < best[j]:
                best[j] = A[i, j]
                where[j] = i


@poly.nest
def nearest(X: f32[M, 3], Y: f32[N, 3], best: f32[M], where: i64[M]):
    for i in range(M):
        for j in range(N):
            s: f32 = 0.0
            for k in range(3):
                s += (X[i, k] - Y[j, k]) * (X[i, k] - Y[j, k])
            if s < best[i]:
                best[i] = s
                where[i] = j


@poly.nest
def of_bytes(A: u8[M, N], where: i32[M]):
    for i in range(M):
        best: u8 = A[i, 0]
        where[i] = 0
        for j in range(1, N):
            if A[i, j] < best:
                best = A[i, j]
                where[i] = j


@poly.nest
def first_of_words(x: i16[N], best: i16[1], where: i64[1]):
    for i in range(N):
        if best[0] < x[i]:
            where[0] = i
            best[0] = x[i]


@poly.nest
def two_greatest(A: f32[M, N], best: f32[M, 2], where: i64[M, 2]):
    for i in range(M):
        last: f32 = inf
        before: i64 = -1
        for t in range(2):
            top: f32 = -inf
            at: i64 = -1
            for j in range(N):
                if A[i, j] > top and (A[i, j] < last or (A[i, j] == last and j > before)):
                    top = A[i, j]
                    at = j
            last = top
            before = at
            best[i, t] = top
            where[i, t] = at


@poly.nest
def least_of_some(x: i32[N], mask: i16[N], best: i32[1], where: i64[1]):
    for i in range(N):
        if mask[i] > 7 and x[i] < best[0]:
            best[0] = x[i]
            where[0] = i


NESTS = [first_least, last_greatest, with_two_values, of_rows, of_columns, nearest, of_bytes, first_of_words]
NESTS += [two_greatest, least_of_some]
TARGETS = [f"c:{name}" for name in ("avx512", "avx2", "portable") if ISAS[name].runs_here()]
FEW = st.sampled_from([-1.0, -0.0, 0.0, 1.0, 2.0, np.inf, -np.inf, np.nan])
"""Values among which many are equal or not comparable."""


@cache
def compiled(nest: poly.Nest, target: str) -> poly.Kernel:
    """One kernel for all tests."""
    return poly.compile(nest, target=target, records=False, threads=1)


@pytest.mark.parametrize("nest", NESTS, ids=lambda nest: nest.name)
def test_it_runs_in_lanes(nest: poly.Function) -> None:
    made = compiled(nest, TARGETS[0])
    assert any(band.vectorize for band in bands(made.schedule.tree))


@settings(deadline=None, max_examples=16)
@given(st.data())
@pytest.mark.parametrize("nest", NESTS, ids=lambda nest: nest.name)
def test_the_iteration_is_the_one_that_the_loops_select(nest: poly.Function, data: st.DataObject) -> None:
    size = data.draw(st.sampled_from([0, 1, 2, 15, 16, 17, 33, 63, 64, 65, 129, 600]))
    sizes = {"N": max(size, 1), "M": data.draw(st.integers(1, 5))}
    few = np.array(data.draw(st.lists(FEW, min_size=1, max_size=6) | st.sampled_from([[-np.inf, np.nan]])))
    draw = np.random.default_rng(data.draw(st.integers(0, 99)))
    run = data.draw(st.sampled_from([1, 1, 130, 260]))  # whole chunks of one value
    arrays = []
    for array in (one for one in nest.arrays if one.kind != "local"):
        shape = tuple(extent.evaluate(sizes) for extent in array.shape)
        values = np.resize(draw.choice(few, shape).repeat(run), shape)
        if not array.dtype.is_float:
            values = np.nan_to_num(values, posinf=7, neginf=-7) + 7
        arrays.append(values.astype(array.dtype.numpy_name))
    expected = [x.copy() for x in arrays]
    nest.reference(*expected)
    for target in TARGETS:
        own = [x.copy() for x in arrays]
        compiled(nest, target)(*own)
        for got, wanted in zip(own, expected, strict=True):
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("whole", [np.nan, -np.inf])
def test_a_chunk_of_nan_is_no_chunk_of_infinities(target: str, whole: float) -> None:
    x, best, where = np.full(600, np.nan), np.full(1, -np.inf), np.zeros(1, np.int64)
    x[3], x[300:] = -np.inf, whole
    compiled(last_greatest, target)(x, best, where)
    assert where[0] == (3 if np.isnan(whole) else 599)


def test_the_order_of_sums_does_not_matter_to_a_selection() -> None:
    kept = poly.compile(replace(first_least, reassociate=False), records=False)
    assert any(band.vectorize for band in bands(kept.schedule.tree))


@poly.nest
def key_of_the_selected(x: f32[N], best: f32[1], where: i64[1]):
    for i in range(N):
        where[0] = where[0] + i if x[i] < best[0] else where[0]
        best[0] = min(best[0], x[i])


@poly.nest
def other_test(x: f32[N], best: f32[1], where: i64[1]):
    for i in range(N):
        where[0] = i if x[i] <= best[0] else where[0]
        best[0] = min(best[0], x[i])


@poly.nest
def value_first(x: f32[N], best: f32[1], where: i64[1]):
    for i in range(N):
        best[0] = min(best[0], x[i])
        where[0] = i if x[i] < best[0] else where[0]


@poly.nest
def last_of_some(x: f32[N], mask: f32[N], best: f32[1], where: i64[1]):
    for i in range(N):
        where[0] = i if x[i] <= best[0] and mask[i] > 0 else where[0]
        best[0] = x[i] if x[i] <= best[0] and mask[i] > 0 else best[0]


@poly.nest
def mask_of_the_selected(x: f32[N], best: f32[1], where: i64[1]):
    for i in range(N):
        where[0] = i if x[i] < best[0] and where[0] < 5 else where[0]
        best[0] = x[i] if x[i] < best[0] and where[0] < 5 else best[0]


LOOK_ALIKES = [key_of_the_selected, other_test, value_first, last_of_some, mask_of_the_selected]


@pytest.mark.parametrize("nest", LOOK_ALIKES, ids=lambda nest: nest.name)
def test_what_only_looks_like_a_selection_stays_scalar(nest: poly.Function) -> None:
    assert not any(band.vectorize for band in bands(poly.compile(nest, records=False).schedule.tree))
