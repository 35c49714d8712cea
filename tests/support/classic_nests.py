"""Classic nests of linear algebra, stencils and statistics, each with sizes that are mostly no multiples of vectors."""

from collections.abc import Callable
from math import exp, sqrt, tanh
from typing import Any

import numpy as np

import poly
from codegen.calls.numpy_types import numpy_type
from poly import f32, f64, i32

K, L, M, N, T = poly.sizes("K L M N T")


@poly.nest
def gemm(alpha: f64, beta: f64, A: f64[M, K], B: f64[K, N], C: f64[M, N]):
    for i in range(M):
        for j in range(N):
            C[i, j] *= beta
        for k in range(K):
            for j in range(N):
                C[i, j] += alpha * A[i, k] * B[k, j]


@poly.nest
def two_mm(alpha: f64, beta: f64, A: f64[M, K], B: f64[K, N], C: f64[N, L], D: f64[M, L]):
    tmp: f64[M, N]
    for i in range(M):
        for j in range(N):
            tmp[i, j] = 0
            for k in range(K):
                tmp[i, j] += alpha * A[i, k] * B[k, j]
    for i in range(M):
        for j in range(L):
            D[i, j] *= beta
            for k in range(N):
                D[i, j] += tmp[i, k] * C[k, j]


@poly.nest
def cholesky(A: f64[N, N]):
    for i in range(N):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[j, k]
            A[i, j] /= A[j, j]
        for k in range(i):
            A[i, i] -= A[i, k] * A[i, k]
        A[i, i] = sqrt(A[i, i])


@poly.nest
def lu(A: f64[N, N]):
    for i in range(N):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[k, j]
            A[i, j] /= A[j, j]
        for j in range(i, N):
            for k in range(i):
                A[i, j] -= A[i, k] * A[k, j]


@poly.nest
def floyd(D: f64[N, N]):
    for k in range(N):
        for i in range(N):
            for j in range(N):
                D[i, j] = min(D[i, j], D[i, k] + D[k, j])


@poly.nest
def jacobi1d(A: f64[N], B: f64[N], S: f64[T]):
    for t in range(T):
        for i in range(1, N - 1):
            B[i] = 0.33333 * (A[i - 1] + A[i] + A[i + 1])
        for i in range(1, N - 1):
            A[i] = 0.33333 * (B[i - 1] + B[i] + B[i + 1])


@poly.nest
def seidel(A: f64[N, N], S: f64[T]):
    for t in range(T):
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                A[i, j] = (
                    A[i - 1, j - 1]
                    + A[i - 1, j]
                    + A[i - 1, j + 1]
                    + A[i, j - 1]
                    + A[i, j]
                    + A[i, j + 1]
                    + A[i + 1, j - 1]
                    + A[i + 1, j]
                    + A[i + 1, j + 1]
                ) / 9.0


@poly.nest
def softmax(X: f64[M, N], Y: f64[M, N]):
    for i in range(M):
        m = X[i, 0]
        for j in range(1, N):
            m = max(m, X[i, j])
        s = 0.0
        for j in range(N):
            Y[i, j] = exp(X[i, j] - m)
            s += Y[i, j]
        for j in range(N):
            Y[i, j] /= s


@poly.nest
def trisolve(Lo: f64[N, N], b: f64[N], x: f64[N]):
    for i in range(N):
        x[i] = b[i]
        for j in range(i):
            x[i] -= Lo[i, j] * x[j]
        x[i] = x[i] / Lo[i, i]


@poly.nest
def backsolve(U: f64[N, N], b: f64[N], x: f64[N]):
    for i in range(N - 1, -1, -1):
        x[i] = b[i]
        for j in range(i + 1, N):
            x[i] -= U[i, j] * x[j]
        x[i] = x[i] / U[i, i]


@poly.nest
def prefix(x: f64[N]):
    for i in range(1, N):
        x[i] += x[i - 1]


@poly.nest
def covariance(data: f64[N, M], mean: f64[M], cov: f64[M, M]):
    for j in range(M):
        mean[j] = 0.0
        for i in range(N):
            mean[j] += data[i, j]
        mean[j] /= 9.0
    for i in range(N):
        for j in range(M):
            data[i, j] -= mean[j]
    for i in range(M):
        for j in range(i, M):
            cov[i, j] = 0.0
            for k in range(N):
                cov[i, j] += data[k, i] * data[k, j]
            cov[i, j] /= 8.0
            cov[j, i] = cov[i, j]


@poly.nest
def symm(alpha: f64, A: f64[M, M], B: f64[M, N], C: f64[M, N]):
    for i in range(M):
        for j in range(N):
            t = 0.0
            for k in range(i):
                C[k, j] += alpha * B[i, j] * A[i, k]
                t += B[k, j] * A[i, k]
            C[i, j] = C[i, j] + alpha * B[i, j] * A[i, i] + alpha * t


@poly.nest
def syrk(A: f64[N, K], C: f64[N, N]):
    for i in range(N):
        for j in range(i + 1):
            C[i, j] *= 0.5
        for k in range(K):
            for j in range(i + 1):
                C[i, j] += 1.5 * A[i, k] * A[j, k]


@poly.nest
def trmm(A: f64[M, M], B: f64[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(i + 1, M):
                B[i, j] += A[k, i] * B[k, j]
            B[i, j] = 0.5 * B[i, j]


@poly.nest
def zero_more(A: f64[N, N], B: f64[N, N], C: f64[N, N]):
    for i in range(N):
        for j in range(N):
            C[i, j] = 0.0
    for i in range(N - 3):
        for j in range(2, N):
            for k in range(1, N - 1):
                C[i, j] += A[i, k] * B[k, j]


@poly.nest
def tri_product(A: f64[N, N], B: f64[N, N], C: f64[N, N]):
    for i in range(N):
        for j in range(i + 1):
            C[i, j] = 0.0
            for k in range(j, i + 1):
                C[i, j] += A[i, k] * B[k, j]


@poly.nest
def conv1d(x: f32[N + 4], w: f32[5], y: f32[N]):
    for i in range(N):
        for r in range(5):
            y[i] += x[i + r] * w[r]


@poly.nest
def strided(x: f32[2 * N + 3, M], w: f32[3, M], y: f32[N]):
    for i in range(N):
        for r in range(3):
            for c in range(M):
                y[i] += x[2 * i + r, c] * w[r, c]


@poly.nest
def cond(x: f32[M, N], y: f32[M, N]):
    for i in range(M):
        for j in range(N):
            if i < j and j + i < N:
                y[i, j] = x[i, j] * 2
            else:
                y[i, j] = x[i, j] - j


@poly.nest
def ints(x: i32[M, N], y: i32[N]):
    for i in range(M):
        for j in range(N):
            y[j] += x[i, j] * 3


@poly.nest
def tanhs(x: f32[M, N], y: f32[M, N], a: f32):
    for i in range(M):
        for j in range(N):
            y[i, j] = tanh(a * x[i, j]) + abs(x[i, j]) + sqrt(abs(x[i, j])) + max(x[i, j], 0) - min(0.5, x[i, j], a)


@poly.nest
def diag(A: f64[N, N], x: f64[N], t: f64[1]):
    t[0] = 0
    for i in range(N):
        t[0] += A[i, i]
        x[N - 1 - i] = A[i, N - 1 - i]


@poly.nest
def gemv_like(A: f64[M, N], x: f64[N], y: f64[M], z: f64[N], w: f64[M]):
    for i in range(M):
        y[i] = 0
        for j in range(N):
            y[i] += A[i, j] * x[j]
    for j in range(N):
        for i in range(M):
            z[j] += A[i, j] * w[i]


@poly.nest
def outer(x: f64[M], y: f64[N], A: f64[M, N]):
    for i in range(M):
        for j in range(N):
            A[i, j] += x[i] * y[j]


@poly.nest
def dot(x: f64[N], y: f64[N], s: f64[1]):
    for i in range(N):
        s[0] += x[i] * y[i]


@poly.nest
def batched(A: f32[M, N, K], B: f32[M, K, N], C: f32[M, N, N]):
    for b in range(M):
        for i in range(N):
            for j in range(N):
                for k in range(K):
                    C[b, i, j] -= 0.5 * A[b, i, k] * B[b, k, j]


@poly.nest
def prod(x: f64[N], p: f64[1]):
    p[0] = 1
    for i in range(N):
        p[0] *= x[i]


@poly.nest
def shifted_mm(A: f64[N + 2, N + 2], B: f64[N + 2, N + 2], C: f64[N, N], s: f64[T]):
    for t in range(T):
        for i in range(N):
            for j in range(N):
                for k in range(N):
                    C[i, j] += A[i + 1, k + 2] * B[k, j + 1] * s[t]


@poly.nest
def transpose(A: f32[N, M], B: f32[M, N]):
    for i in range(N):
        for j in range(M):
            B[j, i] = A[i, j]


@poly.nest
def selfprod(A: f64[N, N], C: f64[N, N]):
    for i in range(N):
        for j in range(N):
            for k in range(N):
                C[i, j] += A[i, k] * A[k, j]


@poly.nest
def inplace_mm(A: f64[N, N], C: f64[N, N]):
    for i in range(N):
        for j in range(N):
            for k in range(N):
                C[i, j] += A[i, k] * C[k, j]


@poly.nest
def polynomials(a: f64[M, K], b: f64[K, N], y: f64[M + N - 1]):
    """Sums of products of polynomials: both loops of the output move along its only index."""
    for i in range(M):
        for j in range(N):
            for k in range(K):
                y[i + j] += a[i, k] * b[k, j]


@poly.nest
def transposed_conv(X: f32[M, M, K], W: f32[3, 3, K, N], Y: f32[2 * M + 1, 2 * M + 1, N]):
    """A transposed convolution with stride 2, as a scatter; Y is set to 0 before."""
    for y in range(2 * M + 1):
        for x in range(2 * M + 1):
            for n in range(N):
                Y[y, x, n] = 0
    for p in range(M):
        for q in range(M):
            for n in range(N):
                for r in range(3):
                    for s in range(3):
                        for k in range(K):
                            Y[2 * p + r, 2 * q + s, n] += X[p, q, k] * W[r, s, k, n]


SIZES = {
    gemm: {"K": 9, "M": 13, "N": 17},
    two_mm: {"K": 9, "L": 11, "M": 13, "N": 17},
    cholesky: {"N": 19},
    lu: {"N": 19},
    floyd: {"N": 19},
    jacobi1d: {"N": 19, "T": 4},
    seidel: {"N": 19, "T": 4},
    softmax: {"M": 7, "N": 33},
    trisolve: {"N": 23},
    backsolve: {"N": 23},
    prefix: {"N": 23},
    covariance: {"M": 23, "N": 9},
    symm: {"M": 9, "N": 23},
    syrk: {"K": 7, "N": 21},
    trmm: {"M": 11, "N": 21},
    zero_more: {"N": 21},
    tri_product: {"N": 21},
    conv1d: {"N": 40},
    strided: {"M": 6, "N": 40},
    cond: {"M": 6, "N": 40},
    ints: {"M": 6, "N": 40},
    tanhs: {"M": 6, "N": 40},
    diag: {"N": 20},
    gemv_like: {"M": 20, "N": 11},
    outer: {"M": 20, "N": 11},
    dot: {"N": 50},
    batched: {"K": 6, "M": 5, "N": 12},
    prod: {"N": 18},
    shifted_mm: {"N": 18, "T": 3},
    transpose: {"M": 29, "N": 33},
    selfprod: {"N": 17},
    inplace_mm: {"N": 17},
    polynomials: {"K": 5, "M": 9, "N": 18},
    transposed_conv: {"K": 6, "M": 5, "N": 19},
}


def arguments(nest: poly.Nest, sizes: dict[str, int]) -> list[Any]:
    """Positive numbers; a well-conditioned matrix where the nest factors or solves."""
    rng = np.random.default_rng(0)
    made: list[Any] = []
    for array in nest.arguments:
        shape = tuple(extent.evaluate(sizes) for extent in array.shape)
        if array.kind == "scalar":
            made.append(1.5)
        elif not array.dtype.is_float:
            made.append(rng.integers(-9, 9, shape).astype(numpy_type(array.dtype)))
        else:
            values = rng.random(shape) + 0.5
            if nest in (cholesky, lu):
                values = values @ values.T + 10 * shape[0] * np.eye(shape[0])
            made.append(values.astype(numpy_type(array.dtype)))
    return made


def check(nest: poly.Nest, kernel: Callable[..., Any]) -> None:
    """Assert that the kernel computes the same as the loops as written."""
    ours, expected = arguments(nest, SIZES[nest]), arguments(nest, SIZES[nest])
    kernel(*ours)
    nest.reference(*expected)
    for our, their in zip(ours, expected, strict=True):
        if isinstance(our, np.ndarray):
            np.testing.assert_allclose(our, their, rtol=2e-5 if our.dtype == np.float32 else 1e-9)
