"""Nests with local arrays, which are products of sizes that no array multiplies."""

import poly
from poly import f64

K, M, N, T = poly.sizes("K M N T")


@poly.nest
def two_dimensions(A: f64[M, 4], B: f64[N, 4], y: f64[4]):
    t: f64[M, N]
    for i in range(M):
        for j in range(N):
            t[i, j] = A[i, 0]
    for i in range(M):
        for j in range(N):
            for k in range(4):
                y[k] += t[i, j] * B[j, k]


@poly.nest
def three_dimensions(A: f64[M, 4], B: f64[N, 4], y: f64[4], z: f64[T]):
    t: f64[T, M, N]
    for h in range(T):
        for i in range(M):
            for j in range(N):
                t[h, i, j] = A[i, 0] + z[h]
    for h in range(T):
        for i in range(M):
            for j in range(N):
                for k in range(4):
                    y[k] += t[h, i, j] * B[j, k]


@poly.nest
def of_nothing(A: f64[M, K], B: f64[N, K], y: f64[4]):
    t: f64[M, N]
    for i in range(M):
        for j in range(N):
            t[i, j] = 1
    for i in range(M):
        for j in range(N):
            for k in range(K):
                y[0] += t[i, j] * A[i, k] * B[j, k]
