"""Calls whose output is the same array as an input: they compute what a call on a copy computes, or are refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poly
from poly import f32, f64

M, N = poly.sizes("M N")
SHIFTED = """
from poly import f64, sizes
N = sizes("N")
def shifted(x: f64[N], y: f64[N], z: f64[N]):
    for i in range(2, N - 2):
        y[i] = {}
"""


@poly.nest
def scaled(x: f32[M, N], factor: f32, y: f32[M, N]):
    for i in range(M):
        for j in range(N):
            y[i, j] = factor * x[i, j] + 1.0


@poly.nest
def normed(x: f64[M, N], y: f64[M, N]):
    """All reads of a row come before its writes."""
    for i in range(M):
        total: f64 = 0.0
        for j in range(N):
            total += x[i, j]
        for j in range(N):
            y[i, j] = x[i, j] / total


@poly.nest
def swapped(a: f64[N], b: f64[N], c: f64[N], d: f64[N]):
    for i in range(N):
        c[i] = b[i]
        d[i] = a[i]


@poly.nest
def square(A: f32[N, N], B: f32[N, N], C: f32[N, N]):
    for i in range(N):
        for j in range(N):
            C[i, j] = 0.0
            for k in range(N):
                C[i, j] += A[i, k] * B[k, j]


@poly.nest
def layer(X: f32[M, 32], W: f32[32, 64], Z: f32[M, 64], Y: f32[M, 64]):
    for i in range(M):
        for j in range(64):
            Y[i, j] = Z[i, j]
            for k in range(32):
                Y[i, j] += X[i, k] * W[k, j]


def shifted(value: str) -> poly.Function:
    return poly.parse(SHIFTED.format(value))


def test_elements_are_read_before_they_are_written() -> None:
    rng = np.random.default_rng(0)
    for threads in (1, 2):
        x = rng.random((37, 65), np.float32)
        expected = 3 * x + 1
        kernel = poly.compile(scaled, threads=threads)
        kernel(x, 3.0, x)
        np.testing.assert_allclose(x, expected, rtol=1e-6)
        kernel(x, 3.0, x[:])
        np.testing.assert_allclose(x, 3 * expected + 1, rtol=1e-6)
    wide = rng.random((9, 20))
    for part in (wide[:, 3:10], wide[::-1, 9:2:-2]):
        kept, expected = wide.copy(), part / part.sum(axis=1, keepdims=True)
        normed(part, part)
        np.testing.assert_allclose(part, expected)
        np.testing.assert_array_equal(wide[:, 10:], kept[:, 10:])


@settings(max_examples=6, deadline=None)
@given(st.lists(st.integers(-2, 2), min_size=1, max_size=2), st.integers(8, 40))
def test_a_shift_is_taken_if_it_reads_ahead(shifts: list[int], n: int) -> None:
    """Exactly then: with open sizes there is always an element that is written first otherwise."""
    nest = shifted(" + ".join(f"x[i + {shift}] * z[i]" for shift in shifts))
    x, z = np.random.default_rng(n).random((2, n))
    expected = x.copy()
    nest(x.copy(), expected, z)
    if min(shifts) < 0:
        kept = x.copy()
        with pytest.raises(
            poly.ArgumentError, match=r"y is written and shares memory with x: S0\[[34]\] would read it"
        ):
            nest(x, x, z)
        np.testing.assert_array_equal(x, kept)
    else:
        nest(x, x, z)
        np.testing.assert_allclose(x, expected)


def test_what_is_not_the_same_array_or_read_too_late_is_refused() -> None:
    x = np.ones((8, 8), np.float32)
    kept, a, b = x.copy(), np.ones(4), np.ones(4)
    with pytest.raises(poly.ArgumentError, match=r"C is written and shares memory with A: S1.* would read it after S0"):
        square(x, x.copy(), x)
    with pytest.raises(poly.ArgumentError, match=r"d is written and shares memory with b: |c is written and .* a: "):
        swapped(a, b, a, b)
    line = np.ones(20)
    for one, other in ((line[:8], line[4:12]), (line[8:16], line[:16:2])):
        with pytest.raises(poly.ArgumentError, match=r"shares memory|not contiguous"):
            shifted("x[i]")(one, other, np.ones(8))
    np.testing.assert_array_equal(x, kept)
    assert (line == 1).all()


def test_panels_were_packed_for_arrays_that_are_apart() -> None:
    """A kernel with a packed operand refuses; the kernel before does not."""
    kernel = poly.compile(layer, M=9)
    rng = np.random.default_rng(1)
    x, w, y = (rng.random(shape, np.float32) for shape in ((9, 32), (32, 64), (9, 64)))
    expected = y + x @ w
    with pytest.raises(poly.ArgumentError, match="W was packed for arrays that are apart"):
        kernel.prepack("W", w)(x, y, y)
    kernel(x, w, y, y)
    np.testing.assert_allclose(y, expected, rtol=1e-5)


def test_later_calls_are_checked_too() -> None:
    """After a call in place: other arrays, arrays of another shape, and a missing argument."""
    kernel = poly.compile(scaled)
    x, y = np.ones((3, 4), np.float32), np.zeros((3, 4), np.float32)
    kernel(x, 1.0, x)
    kernel(x, 1.0, x)
    assert (x == 3).all()
    kernel(x, 2.0, y)
    assert (y == 7).all()
    assert (x == 3).all()
    for arguments, problem in (
        ((x, 1.0), "Missing: y"),
        ((x[0], 1.0, x[0]), "has 1 dimension"),
        ((None,) * 3, "factor"),
    ):
        with pytest.raises(poly.ArgumentError, match=problem):
            kernel(*arguments)
    row = np.ones(4, np.float32)
    with pytest.raises(poly.ArgumentError, match="has 1 dimension"):
        kernel(row, 1.0, row)
