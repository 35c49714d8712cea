"""What a loop goes through again and again, in strips: any type and sizes compute what the loops compute."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import poly
from poly.autoschedule.rules.contiguous import contiguous
from poly.autoschedule.rules.lanes import vectorized
from poly.autoschedule.rules.strips import LEAST, in_strips
from poly.ir.reference import reference

ORTHOGONAL = """def orthogonal(A: '{t}[{m}, {n}]', R: '{t}[{n}, {n}]', Q: '{t}[{m}, {n}]'):
    for k in range({n}):
        s = 0.0
        for i in range({m}):
            s += A[i, k] * A[i, k]
        R[k, k] = sqrt(s)
        for i in range({m}):
            Q[i, k] = A[i, k] / R[k, k]
        for j in range(k + 1, {n}):
            R[k, j] = 0.0
            for i in range({m}):
                R[k, j] += Q[i, k] * A[i, j]
            for i in range({m}):
                A[i, j] -= Q[i, k] * R[k, j]
"""
ELIMINATED = """def eliminated(A: '{t}[{m}, {n}]', R: '{t}[{n}, {n}]', Q: '{t}[{m}, {n}]'):
    for k in range({n}):
        for i in range({m}):
            Q[i, k] = A[i, k] / (2 + A[k, k])
        for j in range(k + 1, {n}):
            R[k, j] = A[k, j]
            for i in range({m}):
                A[i, j] -= Q[i, k] * R[k, j]
"""
MIXED = """def mixed(A: '{t}[{m}, {n}]', R: '{t}[{n}, {n}]', Q: '{t}[{m}, {n}]'):
    for k in range({n}):
        for i in range({m}):
            Q[i, k] = A[i, {n} - 1 - k]
        for j in range({n}):
            for i in range({m}):
                A[i, j] += Q[i, k]
"""


def nest(text: str, dtype: str, m: int, n: int) -> poly.Nest:
    return poly.parse(text.format(t={"float32": "f32", "float64": "f64"}[dtype], m=m, n=n))


@settings(max_examples=5)
@given(
    st.sampled_from([ORTHOGONAL, ELIMINATED]),
    st.sampled_from(["float32", "float64"]),
    st.integers(2 * LEAST + 2, 3 * LEAST + 3),
    st.integers(0, 5),
)
def test_strips_of_any_size_compute_the_same(text: str, dtype: str, n: int, more: int) -> None:
    m = n + more
    loops = nest(text, dtype, m, n)
    cache = 2 * LEAST * m * np.dtype(dtype).itemsize
    (made,) = (made for _, made in in_strips(poly.schedule(loops), cache))
    assert made.on(loops).tree == made.tree
    matrix = np.random.default_rng(n).random((m, n)) / n
    matrix[:n] += 2 * np.eye(n)
    found, expected = ([array.astype(dtype) for array in (matrix, np.zeros((n, n)), matrix)] for _ in range(2))
    poly.compile(loops, schedule=vectorized(contiguous(made)), target="c:portable", threads=1)(*found)
    reference(loops, tuple(expected))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=64 * m * np.finfo(dtype).eps)


def test_what_fits_the_cache_or_needs_later_strips_stays_whole() -> None:
    assert not list(in_strips(poly.schedule(nest(ORTHOGONAL, "float64", 40, 40)), 1 << 14))
    assert not list(in_strips(poly.schedule(nest(MIXED, "float64", 40, 40)), 1 << 13))
