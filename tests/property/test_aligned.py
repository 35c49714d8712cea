"""Vector loops begin where whole vectors lie in whole lines, wherever arrays start, and write what the loops write."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poly
from microkernels.isa import ISAS
from poly import f32, f64, u8

M, N = poly.sizes("M N")


@poly.nest
def inside(x: f64[N + 2], y: f64[N + 2]):
    for i in range(1, N):
        y[i] = x[i - 1] + x[i + 1] + x[i + 2]


@poly.nest
def rows(A: f32[M, N], B: f32[M, N]):
    for i in range(M):
        for j in range(N):
            t = A[i, j] * 2.0
            B[i, j] += t


@poly.nest
def reads_ahead(x: u8[N + 2], y: u8[N + 2]):
    for i in range(N):
        y[i] = x[i]
        x[i] = y[i + 1]


@poly.nest
def complex_numbers(x: f32[N, 2], y: f32[N, 2]):
    for i in range(N):
        y[i, 0] = x[i, 0] - x[i, 1]
        y[i, 1] += x[i, 0] + x[i, 1]


@poly.nest
def summed(x: f64[N], s: f64[1]):
    for i in range(N):
        s[0] += x[i]


@poly.nest
def stored_and_summed(x: f32[N + 1], y: f32[N + 1]):
    for i in range(N):
        x[i] = y[i] + 1
        y[N] += x[i]


NESTS = [inside, rows, reads_ahead, complex_numbers, summed, stored_and_summed]
TARGETS = [f"c:{name}" for name in ("avx512", "avx2", "portable") if ISAS[name].runs_here()]
AROUND = 3
"""Elements around an array that nothing may write."""


@cache
def compiled(nest: poly.Function, target: str) -> poly.Kernel:
    return poly.compile(nest, target=target, threads=1)


def placed(values: np.ndarray, start: int) -> tuple[np.ndarray, np.ndarray]:
    """A copy that starts `start` elements behind a line, and the memory around it."""
    size = values.itemsize
    raw = np.zeros(values.nbytes + 128 + (2 * AROUND + start) * size, np.uint8)
    first = -(raw.ctypes.data + AROUND * size) % 64 + (AROUND + start) * size
    whole = raw[first - AROUND * size : first + values.nbytes + AROUND * size].view(values.dtype)
    own = whole[AROUND : whole.size - AROUND].reshape(values.shape)
    own[...] = values
    return own, whole


@settings(deadline=None, max_examples=20)
@given(
    n=st.sampled_from([1, 2, 31, 64, 65, 127, 130, 300, 1100]),
    starts=st.tuples(st.integers(0, 15), st.integers(0, 15)),
    seed=st.integers(0, 99),
)
@pytest.mark.parametrize("nest", NESTS, ids=lambda nest: nest.name)
def test_results_are_those_of_the_loops(nest: poly.Function, n: int, starts: tuple[int, int], seed: int) -> None:
    draw = np.random.default_rng(seed)
    shapes = [tuple(extent.evaluate({"N": n, "M": 3}) for extent in array.shape) for array in nest.arrays[:2]]
    arrays = [draw.integers(0, 99, shape).astype(nest.arrays[0].dtype.numpy_name) for shape in shapes]
    expected = [array.copy() for array in arrays]
    nest.reference(*expected)
    for target in TARGETS:
        own = [placed(array, start) for array, start in zip(arrays, starts, strict=True)]
        compiled(nest, target)(*(array for array, _ in own))
        for (got, whole), wanted in zip(own, expected, strict=True):
            np.testing.assert_array_equal(got, wanted)
            assert not whole[:AROUND].any() and not whole[-AROUND:].any()


def test_pairs_have_lanes_from_whole_vectors_on() -> None:
    kernel = compiled(complex_numbers, TARGETS[0])
    assert "# vectorize" in str(kernel.schedule)
    assert ("_whole" in kernel.source) == (not TARGETS[0].endswith("portable"))


@pytest.mark.parametrize("target", TARGETS)
def test_vectors_as_long_as_lines_are_made_of_their_neighbours(target: str) -> None:
    assert ("by2_behind_f64x8(&" in compiled(inside, target).source) == target.endswith("avx512")


@pytest.mark.parametrize("target", TARGETS)
def test_only_long_vectors_begin_so(target: str) -> None:
    for nest in (inside, summed, stored_and_summed):
        assert ("_whole" in compiled(nest, target).source) == (not target.endswith("portable"))
