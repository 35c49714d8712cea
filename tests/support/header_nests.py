"""Nests for the tests of headers: the product that C programs call, and small ones of other kinds."""

import classic_nests

import poly
from poly import bf16, f16, f32, f64, i8, i32

K, M, N = poly.sizes("K M N")


@poly.nest
def axpy(a: f64, x: f64[N], y: f64[N]):
    for i in range(N):
        y[i] += a * x[i]


@poly.nest
def row_sums(A: f64[M, N], x: f64[M]):
    for i in range(M):
        x[i] = 0
        for j in range(N):
            x[i] += A[i, j]


@poly.nest
def wide(A: f32[M, N, K], B: f32[M, K], C: f32[M, N]):
    """Three dimensions, so two strides; a reduction whose result is written once."""
    for i in range(M):
        for j in range(N):
            C[i, j] = 0
            for k in range(K):
                C[i, j] += A[i, j, k] * B[i, k]


@poly.nest
def narrow(A: i8[M, K], B: i8[K, N], C: i32[M, N]):
    """A product that some CPUs have instructions for beside their instruction set."""
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += i32(A[i, k]) * i32(B[k, j])


@poly.nest
def halves(A: bf16[M, K], B: f16[K, N], C: f32[M, N], D: f16[M, N]):
    """Operands of both kinds of half precision, and a result that is rounded to it."""
    for i in range(M):
        for j in range(N):
            C[i, j] = 0
            for k in range(K):
                C[i, j] += f32(A[i, k]) * f32(B[k, j])
            D[i, j] = f16(C[i, j])


@poly.nest
def without_arguments():
    t: f32[4]
    for i in range(4):
        t[i] = i


@poly.nest
def without_results(A: f32[M, N], alpha: f32):
    t: f32[N]
    for i in range(M):
        for j in range(N):
            t[j] = alpha * A[i, j]


KINDS = (
    classic_nests.softmax,
    classic_nests.seidel,
    classic_nests.trisolve,
    classic_nests.covariance,
    classic_nests.conv1d,
    classic_nests.strided,
    classic_nests.ints,
    classic_nests.tanhs,
    classic_nests.gemv_like,
    classic_nests.batched,
    classic_nests.transpose,
    wide,
    halves,
)
"""Nests of every kind, which have nothing in common with `matmul` except the frame."""
