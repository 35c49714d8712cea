"""Nests that are called like functions: which kernel serves a call."""

from __future__ import annotations

import numpy as np
import pytest

import poly
from poly import ArgumentError, f32, f64
from poly.function import SPECIALISED

M, N = poly.sizes("M N")


@poly.nest
def copy(A: f32[M], B: f32[M]):
    for i in range(M):
        B[i] = A[i]


@poly.nest
def first_column(A: f32[M, N], x: f32[M]):
    for i in range(M):
        x[i] = A[i, 0]


def copied(nest: poly.Function, size: int) -> bool:
    source, target = np.arange(size, dtype=np.float32), np.zeros(size, np.float32)
    nest(source, target)
    return bool((source == target).all())


def test_a_nest_with_sizes_fixed_has_kernels_of_its_own() -> None:
    """Neither serves the other's calls, also beyond the number of sizes that get a kernel each."""
    fixed = copy.with_sizes({"M": 3})
    assert copied(fixed, 3)
    assert all(copied(copy, size) for size in range(2 * SPECIALISED))
    with pytest.raises(ArgumentError, match=r"expected \(3,\)"):
        copied(fixed, 4)
    assert copied(fixed, 3)


@pytest.mark.parametrize("given", [False, True])
def test_an_array_without_elements_is_not_touched(given: bool) -> None:
    """Also with a given schedule: its steps are made on the nest whose iterations on empty arrays do not run."""
    schedule = poly.schedule(first_column).split(i=4) if given else None
    kernel = poly.compile(first_column, schedule=schedule, threads=1)
    for columns, expected in ((0, 7.0), (2, 1.0)):
        taken = np.full(6, 7.0, np.float32)
        kernel(np.ones((6, columns), np.float32), taken)
        assert (taken == expected).all()


@pytest.mark.parametrize("size", ["lane", "thread", "half"])
def test_a_size_that_no_array_tells_may_have_a_name_of_generated_code(size: str) -> None:
    T = poly.sizes(size)

    @poly.nest
    def steps(y: f64[3]):
        for t in range(T):
            y[1] += t

    y = np.zeros(3)
    poly.compile(steps, records=False)(y, **{size: 4})
    assert y.tolist() == [0.0, 6.0, 0.0]
    with pytest.raises(poly.ArgumentError, match=f"pass it by keyword, {size}="):
        poly.compile(steps, records=False)(y)
