"""The plain loops that poly compiles. Each function makes the nest for one scalar type.

To a type checker, only a name that can be anything is a type here, so the scalar type is declared as `Any`.
"""

from collections.abc import Callable
from math import exp
from typing import Any

import poly
from microkernels.dtypes import DType
from poly import f32, i32

N, M, K, B, C, P, Q, R, S, T = poly.sizes("N M K B C P Q R S T")


def make(name: str, dtype: DType) -> Any:
    """The nest of this name, for a scalar type."""
    return NESTS[name](dtype)


def gemm_nn(dtype: Any) -> Any:
    @poly.nest
    def gemm(A: dtype[M, K], B: dtype[K, N], C: dtype[M, N]) -> None:
        for i in range(M):
            for j in range(N):
                for k in range(K):
                    C[i, j] += A[i, k] * B[k, j]

    return gemm


def gemm_nt(dtype: Any) -> Any:
    @poly.nest
    def gemm(A: dtype[M, K], B: dtype[N, K], C: dtype[M, N]) -> None:
        for i in range(M):
            for j in range(N):
                for k in range(K):
                    C[i, j] += A[i, k] * B[j, k]

    return gemm


def gemm_tn(dtype: Any) -> Any:
    @poly.nest
    def gemm(A: dtype[K, M], B: dtype[K, N], C: dtype[M, N]) -> None:
        for i in range(M):
            for j in range(N):
                for k in range(K):
                    C[i, j] += A[k, i] * B[k, j]

    return gemm


def gemm_tt(dtype: Any) -> Any:
    @poly.nest
    def gemm(A: dtype[K, M], B: dtype[N, K], C: dtype[M, N]) -> None:
        for i in range(M):
            for j in range(N):
                for k in range(K):
                    C[i, j] += A[k, i] * B[j, k]

    return gemm


def gemm_batched(dtype: Any) -> Any:
    @poly.nest
    def gemm(X: dtype[B, M, K], Y: dtype[B, K, N], Z: dtype[B, M, N]) -> None:
        for b in range(B):
            for i in range(M):
                for j in range(N):
                    for k in range(K):
                        Z[b, i, j] += X[b, i, k] * Y[b, k, j]

    return gemm


def gemm_integers(dtype: Any) -> Any:
    @poly.nest
    def gemm(A: dtype[M, K], B: dtype[K, N], C: i32[M, N]) -> None:
        for i in range(M):
            for j in range(N):
                for k in range(K):
                    C[i, j] += i32(A[i, k]) * i32(B[k, j])

    return gemm


def gemm_halves(dtype: Any) -> Any:
    @poly.nest
    def gemm(A: dtype[M, K], B: dtype[K, N], C: f32[M, N]) -> None:
        for i in range(M):
            for j in range(N):
                for k in range(K):
                    C[i, j] += f32(A[i, k]) * f32(B[k, j])

    return gemm


def gemv(dtype: Any) -> Any:
    @poly.nest
    def gemv(A: dtype[M, K], x: dtype[K], y: dtype[M]) -> None:
        for i in range(M):
            for k in range(K):
                y[i] += A[i, k] * x[k]

    return gemv


def softmax(dtype: Any) -> Any:
    @poly.nest
    def softmax(X: dtype[M, N], Y: dtype[M, N]) -> None:
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

    return softmax


def conv2d_nchw_1(dtype: Any) -> Any:
    @poly.nest
    def conv2d(X: dtype[N, C, P + R - 1, Q + S - 1], W: dtype[K, C, R, S], Y: dtype[N, K, P, Q]) -> None:
        for n in range(N):
            for k in range(K):
                for p in range(P):
                    for q in range(Q):
                        for c in range(C):
                            for r in range(R):
                                for s in range(S):
                                    Y[n, k, p, q] += X[n, c, p + r, q + s] * W[k, c, r, s]

    return conv2d


def conv2d_nchw_2(dtype: Any) -> Any:
    @poly.nest
    def conv2d(X: dtype[N, C, 2 * P + R - 2, 2 * Q + S - 2], W: dtype[K, C, R, S], Y: dtype[N, K, P, Q]) -> None:
        for n in range(N):
            for k in range(K):
                for p in range(P):
                    for q in range(Q):
                        for c in range(C):
                            for r in range(R):
                                for s in range(S):
                                    Y[n, k, p, q] += X[n, c, 2 * p + r, 2 * q + s] * W[k, c, r, s]

    return conv2d


def conv2d_nhwc_1(dtype: Any) -> Any:
    @poly.nest
    def conv2d(X: dtype[N, P + R - 1, Q + S - 1, C], W: dtype[R, S, C, K], Y: dtype[N, P, Q, K]) -> None:
        for n in range(N):
            for p in range(P):
                for q in range(Q):
                    for k in range(K):
                        for r in range(R):
                            for s in range(S):
                                for c in range(C):
                                    Y[n, p, q, k] += X[n, p + r, q + s, c] * W[r, s, c, k]

    return conv2d


def conv2d_nhwc_2(dtype: Any) -> Any:
    @poly.nest
    def conv2d(X: dtype[N, 2 * P + R - 2, 2 * Q + S - 2, C], W: dtype[R, S, C, K], Y: dtype[N, P, Q, K]) -> None:
        for n in range(N):
            for p in range(P):
                for q in range(Q):
                    for k in range(K):
                        for r in range(R):
                            for s in range(S):
                                for c in range(C):
                                    Y[n, p, q, k] += X[n, 2 * p + r, 2 * q + s, c] * W[r, s, c, k]

    return conv2d


def jacobi_2d(dtype: Any) -> Any:
    @poly.nest
    def jacobi(A: dtype[N, N], B: dtype[N, N]) -> None:
        for _t in range(T):
            for i in range(1, N - 1):
                for j in range(1, N - 1):
                    B[i, j] = 0.2 * (A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j])
            for i in range(1, N - 1):
                for j in range(1, N - 1):
                    A[i, j] = 0.2 * (B[i, j] + B[i, j - 1] + B[i, j + 1] + B[i + 1, j] + B[i - 1, j])

    return jacobi


def heat_3d(dtype: Any) -> Any:
    @poly.nest
    def heat(A: dtype[N, N, N], B: dtype[N, N, N]) -> None:
        for _t in range(T):
            for i in range(1, N - 1):
                for j in range(1, N - 1):
                    for k in range(1, N - 1):
                        B[i, j, k] = (
                            0.125 * (A[i + 1, j, k] - 2 * A[i, j, k] + A[i - 1, j, k])
                            + 0.125 * (A[i, j + 1, k] - 2 * A[i, j, k] + A[i, j - 1, k])
                            + 0.125 * (A[i, j, k + 1] - 2 * A[i, j, k] + A[i, j, k - 1])
                            + A[i, j, k]
                        )
            for i in range(1, N - 1):
                for j in range(1, N - 1):
                    for k in range(1, N - 1):
                        A[i, j, k] = (
                            0.125 * (B[i + 1, j, k] - 2 * B[i, j, k] + B[i - 1, j, k])
                            + 0.125 * (B[i, j + 1, k] - 2 * B[i, j, k] + B[i, j - 1, k])
                            + 0.125 * (B[i, j, k + 1] - 2 * B[i, j, k] + B[i, j, k - 1])
                            + B[i, j, k]
                        )

    return heat


def seidel_2d(dtype: Any) -> Any:
    @poly.nest
    def seidel(A: dtype[N, N]) -> None:
        for _t in range(T):
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
                    ) / 9

    return seidel


def trsv(dtype: Any) -> Any:
    @poly.nest
    def solve(L: dtype[N, N], x: dtype[N]) -> None:
        for i in range(N):
            for j in range(i):
                x[i] -= L[i, j] * x[j]
            x[i] = x[i] / L[i, i]

    return solve


def trsm(dtype: Any) -> Any:
    @poly.nest
    def solve(L: dtype[N, N], X: dtype[N, M]) -> None:
        for i in range(N):
            for j in range(i):
                for k in range(M):
                    X[i, k] -= L[i, j] * X[j, k]
            for k in range(M):
                X[i, k] = X[i, k] / L[i, i]

    return solve


NESTS: dict[str, Callable[[DType], Any]] = {
    function.__name__: function
    for function in (
        gemm_nn,
        gemm_nt,
        gemm_tn,
        gemm_tt,
        gemm_batched,
        gemm_integers,
        gemm_halves,
        gemv,
        softmax,
        conv2d_nchw_1,
        conv2d_nchw_2,
        conv2d_nhwc_1,
        conv2d_nhwc_2,
        jacobi_2d,
        heat_3d,
        seidel_2d,
        trsv,
        trsm,
    )
}
"""The functions that make nests, by name."""
