"""The nests of all BLAS routines: a matrix product, and a matrix-vector product for both layouts of the matrix.

Their arrays have symbolic strides, which cover transposed operands, column-major order and increments. The C text
around them handles the arguments, beta, and the triangle of `syrk`. The scalar type is declared as `Any`, since nothing
else that is passed is a type to a type checker.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from microkernels.dtypes import DType
from poly.function import nest, sizes
from poly.ir.nest import Nest

M, N, K = sizes("M N K")


def gemm_panels(dtype: Any) -> Nest:
    """C += alpha A B with A and B transposed or not: both have arbitrary strides in both dimensions."""

    @nest
    def gemm_panels(alpha: dtype, A: dtype[M, K], B: dtype[K, N], C: dtype[M, N]) -> None:
        for i in range(M):
            for j in range(N):
                for k in range(K):
                    C[i, j] += alpha * A[i, k] * B[k, j]

    return _with_strides(gemm_panels, dtype, A=("A_down", "A_along"), B=("B_down", "B_along"), C=("C_down", 1))


def gemm_small(dtype: Any) -> Nest:
    """The same with B's rows contiguous, so that it can be read in place."""

    @nest
    def gemm_small(alpha: dtype, A: dtype[M, K], B: dtype[K, N], C: dtype[M, N]) -> None:
        for i in range(M):
            for j in range(N):
                for k in range(K):
                    C[i, j] += alpha * A[i, k] * B[k, j]

    return _with_strides(gemm_small, dtype, A=("A_down", "A_along"), B=("B_down", 1), C=("C_down", 1))


def gemv_dots(dtype: Any) -> Nest:
    """y += alpha A x with A's rows contiguous: a dot product for each row."""

    @nest
    def gemv_dots(alpha: dtype, A: dtype[M, N], x: dtype[N], y: dtype[M]) -> None:
        for i in range(M):
            for j in range(N):
                y[i] += alpha * A[i, j] * x[j]

    return _with_strides(gemv_dots, dtype, A=("A_down", 1), y=("y_step",))


def gemv_sums(dtype: Any) -> Nest:
    """y += alpha A x with A's columns contiguous: a sum of columns, where `A[j]` is column j."""

    @nest
    def gemv_sums(alpha: dtype, A: dtype[N, M], x: dtype[N], y: dtype[M]) -> None:
        for j in range(N):
            for i in range(M):
                y[i] += alpha * x[j] * A[j, i]

    return _with_strides(gemv_sums, dtype, A=("A_down", 1), x=("x_step",))


def _with_strides(plain: Nest, dtype: DType, **strides: tuple[str | int, ...]) -> Nest:
    """The nest with the type in its name, and with these strides of its arrays."""
    arrays = tuple(replace(array, strides=strides.get(array.name)) for array in plain.arrays)
    return replace(plain, name=f"{plain.name}_{dtype.name}", arrays=arrays)
