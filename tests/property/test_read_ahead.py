"""Vector lanes read first what later iterations write, where every iteration may do so, and nowhere else."""

from __future__ import annotations

import shutil
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poly
from microkernels.isa import ISAS
from poly import f32, f64
from poly.analysis.legality import lane_conflict

M, N = poly.sizes("M N")


@poly.nest
def overwritten_twice(a: f64[N + 3], b: f64[N + 3], c: f64[N + 3]):
    for i in range(N):
        a[i] = b[i] + c[i]
        b[i] = a[i] + c[i] * 0.5
        a[i] = b[i] + a[i + 1] * c[i]


@poly.nest
def both_neighbours(a: f32[N + 3], b: f32[N + 3], c: f32[N + 3]):
    for i in range(N):
        a[i] *= c[i]
        b[i] += a[i + 1] * a[i + 3] - b[i + 2]
        c[i] = a[i] + a[i + 1]


@poly.nest
def alone(a: f64[N + 3], b: f64[N + 3], c: f64[N + 3]):
    for i in range(N):
        a[i] = a[i + 1] + b[i] * c[i]


@poly.nest
def of_rows(A: f64[N, N + 3], b: f64[N + 3], c: f64[N + 3]):
    for i in range(N):
        for j in range(N):
            A[i, j] = A[i, j + 2] * b[j]
            c[j] = A[i, j] + c[j + 1]


@poly.nest
def with_gaps(A: f64[N, 4 * N + 3], b: f64[N + 3], c: f64[N + 3]):
    """What is written has gaps, which a mask leaves out."""
    for i in range(N):
        for j in range(N):
            A[i, 4 * j + 1] += b[j] / c[0]


@poly.nest
def with_neighbours_in_between(A: f64[N, 2 * N + 3], b: f64[N + 3], c: f64[N + 3]):
    for i in range(N):
        for j in range(N):
            A[i, 2 * j] = b[j] - A[i, 2 * j]


@poly.nest
def unrolled(a: f64[3 * N + 3], b: f64[3 * N + 3], c: f64[N + 3]):
    """By hand: the loop over all elements runs instead."""
    for i in range(N):
        a[3 * i] = a[3 * i] * b[3 * i] + a[3 * i + 2]
        a[3 * i + 1] = a[3 * i + 1] * b[3 * i + 1] + a[3 * i + 3]
        a[3 * i + 2] = a[3 * i + 2] * b[3 * i + 2] + a[3 * i + 4]


@poly.nest
def unlike(a: f64[2 * N + 3], b: f64[2 * N + 3], c: f64[N + 3]):
    """The second element is another function of its neighbours."""
    for i in range(N):
        a[2 * i] += a[2 * i + 2] * b[2 * i]
        a[2 * i + 1] += a[2 * i + 2] * b[2 * i + 1]


@poly.nest
def written_in_between(a: f64[N + 3], b: f64[N + 3], c: f64[N + 3]):
    """What an iteration reads of the next one it has written itself."""
    for i in range(N):
        a[i + 1] = b[i]
        c[i] = a[i + 1]
        a[i] = c[i] * 0.5


@poly.nest
def met_once(a: f64[2 * N + 3], b: f64[N + 3], c: f64[N + 3]):
    """One iteration reads what it has written, others what later ones write."""
    for i in range(N):
        a[2 * i] = b[i]
        c[i] = a[i + 3]


@poly.nest
def beside_a_sum(a: f64[N + 3], b: f64[N + 3], c: f64[N + 3]):
    for i in range(N):
        a[i] = b[i]
        c[0] += a[i + 1]


@poly.nest
def at_other_iterations(a: f64[N + 3], b: f64[N + 3], c: f64[N + 3]):
    for i in range(N):
        if i > 2:
            a[i] = b[i]
        c[i] = a[i + 1]


@poly.nest
def from_before(a: f64[N + 3], b: f64[N + 3], c: f64[N + 3]):
    for i in range(1, N):
        a[i] = b[i] + c[i]
        b[i] = a[i - 1] + a[i + 1]


IN_LANES = [overwritten_twice, both_neighbours, alone, of_rows, with_gaps, with_neighbours_in_between, unrolled, unlike]
NOT = [written_in_between, met_once, beside_a_sum, at_other_iterations, from_before]
TARGETS = [f"c:{name}" for name in ("avx512", "avx2", "portable") if ISAS[name].runs_here()]
COMPILERS = [name for name in ("gcc", "clang", "clang-22", "clang-19") if shutil.which(name)] or [None]


@cache
def compiled(nest: poly.Function) -> list[poly.Kernel]:
    if nest in NOT:
        return [poly.compile(nest, threads=1, records=False)]
    made = poly.schedule(nest).vectorize("iiijjjii"[IN_LANES.index(nest)])
    ways = product(TARGETS, COMPILERS)
    return [poly.compile(nest, schedule=made, target=to, compiler=compiler, threads=1) for to, compiler in ways]


@pytest.mark.parametrize("nest", NOT, ids=lambda nest: nest.name)
def test_other_loops_have_no_lanes(nest: poly.Function) -> None:
    assert lane_conflict(nest, nest.tree, "i") is not None


def test_what_is_read_first_is_in_the_text() -> None:
    *_, before, after = compiled(overwritten_twice)[0].source.partition("const double a_value = a[i + 1];")
    assert "a[i] = b[i] + c[i];" in after, "it is read before anything is written"
    assert before
    assert "a[i] = a[i] * b[i] + a_value;" in compiled(unrolled)[0].source


@settings(deadline=None, max_examples=15)
@given(n=st.sampled_from([1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100]), seed=st.integers(0, 99))
@pytest.mark.parametrize("nest", [*IN_LANES, *NOT], ids=lambda nest: nest.name)
def test_results_are_those_of_the_loops(nest: poly.Function, n: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    shapes = [tuple(extent.evaluate({"N": n}) for extent in array.shape) for array in nest.arrays]
    dtype = nest.arrays[0].dtype.numpy_name
    arrays = [draw.integers(-3, 4, shape).astype(dtype) for shape in shapes]
    expected = [array.copy() for array in arrays]
    nest.reference(*expected)
    for kernel in compiled(nest):
        own = [array.copy() for array in arrays]
        kernel(*own)
        for got, wanted in zip(own, expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5 if dtype == "float32" else 1e-13)
