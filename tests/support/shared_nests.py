"""Nests that many tests use."""

from __future__ import annotations

import poly
from poly import f32, f64

K, M, N = poly.sizes("K M N")
C, F, P, Q = poly.sizes("C F P Q")


@poly.nest
def matmul(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]


@poly.nest
def product(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
    """The same into a result that is set to 0 first."""
    for i in range(M):
        for j in range(N):
            C[i, j] = 0.0
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]


@poly.nest
def nt(A: f64[M, K], B: f64[N, K], C: f64[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[j, k]


@poly.nest
def transpose(A: f64[M, N], B: f64[N, M]):
    for j in range(N):
        for i in range(M):
            B[j, i] = 2.0 * A[i, j]


@poly.nest
def jacobi(A: f64[M, N], B: f64[M, N]):
    for i in range(1, M - 1):
        for j in range(1, N - 1):
            B[i, j] = 0.2 * (A[i, j] + A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


@poly.nest
def padded(image: f32[P, Q, C], W: f32[3, 3, C, F], out: f32[P, Q, F]) -> None:
    """A convolution whose image is 0 outside: its taps there are left out."""
    for p in range(P):
        for q in range(Q):
            for f in range(F):
                out[p, q, f] = 0
                for r in range(3):
                    for s in range(3):
                        if p + r - 1 >= 0 and p + r - 1 < P and q + s - 1 >= 0 and q + s - 1 < Q:
                            for c in range(C):
                                out[p, q, f] += image[p + r - 1, q + s - 1, c] * W[r, s, c, f]
