"""Nests that many tests use."""

from __future__ import annotations

import poly
from poly import f32, f64

K, M, N = poly.sizes("K M N")


@poly.nest
def matmul(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]


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
