"""The matrix-vector kernels by hand and by default: right where the arrays fit them, refused where they don't."""

from __future__ import annotations

import numpy as np
import pytest

import poly
from poly import f32, f64

M, N = poly.sizes("M N")


@poly.nest
def by_rows(A: f64[M, N], x: f64[N], y: f64[M]):
    for i in range(M):
        for j in range(N):
            y[i] += A[i, j] * x[j]


@poly.nest
def by_columns(A: f64[M, N], x: f64[M], y: f64[N]):
    for j in range(N):
        for i in range(M):
            y[j] += A[i, j] * x[i]


@poly.nest
def every_other(A: f64[M, 2 * N], x: f64[N], y: f64[M]):
    for i in range(M):
        for j in range(N):
            y[i] += A[i, 2 * j] * x[j]


@poly.nest
def spread(A: f64[M, N], x: f64[M], y: f64[2 * N]):
    for j in range(N):
        for i in range(M):
            y[2 * j] += A[i, j] * x[i]


@poly.nest
def windows(x: f32[2 * N + 3, M], w: f32[3, M], y: f32[N]):
    for i in range(N):
        for r in range(3):
            for c in range(M):
                y[i] += x[2 * i + r, c] * w[r, c]


def check(nest: poly.Nest, kernel: poly.Kernel) -> None:
    rng = np.random.default_rng(0)
    shapes = [tuple(extent.evaluate({"M": 7, "N": 9}) for extent in array.shape) for array in nest.arguments]
    ours = [rng.random(shape).astype(nest.arguments[0].dtype.numpy_name) for shape in shapes]
    expected = [array.copy() for array in ours]
    kernel(*ours)
    nest.reference(*expected)
    for our, their in zip(ours, expected, strict=True):
        np.testing.assert_allclose(our, their, rtol=1e-5)


@pytest.mark.parametrize("nest", [by_rows, by_columns, every_other, spread, windows], ids=lambda nest: nest.name)
@pytest.mark.parametrize("known", [False, True])
def test_default(nest: poly.Nest, known: bool) -> None:
    check(nest, poly.compile(nest, **({"M": 7, "N": 9} if known else {})))


@pytest.mark.parametrize(("nest", "family"), [(by_rows, "gemvt"), (by_columns, "gemvn")])
def test_the_kernel_that_fits(nest: poly.Nest, family: str) -> None:
    target = poly.machine().isa.name
    check(nest, poly.compile(nest, schedule=poly.schedule(nest).microkernel(f"{family}_{target}")))


@pytest.mark.parametrize(
    ("nest", "family", "message"),
    [
        (by_rows, "gemvn", "neighbours along loop i are not neighbours in A"),
        (by_columns, "gemvt", "neighbours along loop i are not neighbours in A"),
        (every_other, "gemvt", "neighbours along loop j are not neighbours in A"),
        (spread, "gemvn", "neighbours along loop j are not neighbours in y"),
    ],
)
def test_a_kernel_that_does_not_fit_is_refused(nest: poly.Nest, family: str, message: str) -> None:
    with pytest.raises(poly.ScheduleError, match=message):
        poly.schedule(nest).microkernel(f"{family}_portable")


def test_reversed_loops_are_no_neighbours() -> None:
    with pytest.raises(poly.ScheduleError, match="neighbours along loop j are not neighbours in A"):
        poly.schedule(by_rows).reverse("j").microkernel("gemvt_portable")


@pytest.mark.parametrize("name", ["gemv_portable", "gemvx", "gemvn", "gemvt_sse"])
def test_there_is_no_such_kernel(name: str) -> None:
    with pytest.raises(poly.TargetError, match=f"unknown microkernel '{name}'"):
        poly.schedule(by_rows).microkernel(name)


def test_a_kernel_of_another_instruction_set() -> None:
    schedule = poly.schedule(by_rows).microkernel("gemvt_neon")
    with pytest.raises(poly.TargetError, match=r"gemvt_neon\) is made for neon, and the target is 'c:portable'"):
        poly.compile(by_rows, schedule=schedule, target="c:portable")
