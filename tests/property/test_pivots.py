"""Sums over all that is finished look ahead where that makes their accesses contiguous."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poly

PAIRS = """def pairs(w: 'i32[{n}]', T: 'i32[{n}, {n}]'):
    for i in range({n} - 1, -1, -1):
        for j in range(i + 1, {n}):
            T[i, j] = max(T[i, j], T[i, j - 1])
            T[i, j] = max(T[i, j], T[i + 1, j] + w[j])
            for k in range(i + 1, j):
                T[i, j] = max(T[i, j], T[i, k] + T[k + 1, j])
"""
SOLVE = """def solve(U: '{t}[{n}, {n}]', x: '{t}[{n}]'):
    for j in range({n}):
        for k in range(j):
            x[j] -= U[k, j] * x[k]
        x[j] = x[j] / U[j, j]
"""
AHEAD = "pivot"


def triangle(n: int, dtype: str) -> np.ndarray:
    """A matrix above a diagonal of about 2, and NaN below it, which nothing reads."""
    made = np.random.default_rng(3).random((n, n)) / n + 2 * np.eye(n)
    made[np.tril_indices(n, -1)] = np.nan
    return made.astype(dtype)


def check_pairs(n: int, threads: int = 1, target: str = "c") -> str:
    nest = poly.parse(PAIRS.format(n=n))
    random = np.random.default_rng(n)
    weights, table = (random.integers(-9, 9, shape, np.int32) for shape in (n, (n, n)))
    expected, got = table.copy(), table.copy()
    nest.reference(weights, expected)
    kernel = poly.compile(nest, threads=threads, target=target)
    kernel(weights, got)
    np.testing.assert_array_equal(got, expected)
    return str(kernel.schedule)


def check_solve(n: int, dtype: str, target: str = "c") -> str:
    nest = poly.parse(SOLVE.format(n=n, t={"float32": "f32", "float64": "f64"}[dtype]))
    matrix, right = triangle(n, dtype), np.random.default_rng(4).random(n).astype(dtype)
    expected, got = right.copy(), right.copy()
    nest.reference(matrix, expected)
    kernel = poly.compile(nest, threads=1, target=target)
    kernel(matrix, got)
    np.testing.assert_allclose(got, expected, rtol=8 * (n + 1) * np.finfo(dtype).eps)
    return str(kernel.schedule)


@given(st.integers(1, 35), st.sampled_from([1, 2]))
@settings(max_examples=10, deadline=None)
def test_the_best_of_all_pairs(n: int, threads: int) -> None:
    check_pairs(n, threads)


@given(st.integers(1, 35), st.sampled_from(["float32", "float64"]))
@settings(max_examples=10, deadline=None)
def test_triangular_solves(n: int, dtype: str) -> None:
    check_solve(n, dtype)


@pytest.mark.parametrize("target", ["c", "c:avx2"])
def test_sums_look_ahead_in_lanes(target: str) -> None:
    for text in (check_pairs(67, target=target), check_solve(67, "float64", target)):
        loop = text.splitlines()[-2]
        assert AHEAD in loop, text
        assert loop.endswith("# vectorize"), text


def test_rows_that_are_read_in_order_look_back() -> None:
    nest = poly.parse(SOLVE.replace("U[k, j]", "U[j, k]").format(n=67, t="f64"))
    assert AHEAD not in str(poly.compile(nest, threads=1).schedule)


def test_what_needs_the_whole_sum_looks_back() -> None:
    """Here the sum is read before it is finished: by every later iteration, not only by those whose sums it enters."""
    nest = poly.parse(
        "def last(A: 'f64[40, 40]', x: 'f64[40]', y: 'f64[40]'):\n"
        "    for j in range(40):\n"
        "        y[j] = x[39]\n"
        "        for k in range(j):\n"
        "            x[j] += A[k, j] * x[k]\n"
    )
    random = np.random.default_rng(6)
    matrix, vector = random.random((40, 40)) / 40, random.random(40)
    expected, got = [vector.copy(), np.full(40, np.nan)], [vector.copy(), np.full(40, np.nan)]
    nest.reference(matrix, *expected)
    poly.compile(nest, threads=1)(matrix, *got)
    for want, have in zip(expected, got, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-12)
