"""The nests that the examples in the docstrings of `poly.schedule` work on."""

import poly
from poly import f64

M, N, K, T = poly.sizes("M N K T")


@poly.nest
def copy(A: f64[M, N], B: f64[M, N]):
    for i in range(M):
        for j in range(N):
            B[i, j] = A[i, j]


@poly.nest
def chain(A: f64[N], X: f64[N], Y: f64[N]):
    for i in range(N):
        X[i] = 2.0 * A[i]
    for j in range(N):
        Y[j] = X[j] + 1.0


@poly.nest
def late(A: f64[N + 1], X: f64[N + 1], Y: f64[N]):
    for i in range(N + 1):
        X[i] = 2.0 * A[i]
    for j in range(N):
        Y[j] = X[j + 1]


@poly.nest
def wave(u: f64[T, N]):
    for t in range(1, T):
        for x in range(N - 1):
            u[t, x] = u[t - 1, x + 1] + u[t - 1, x]


@poly.nest
def reused(A: f64[M, N], B: f64[M, N], t: f64[N]):
    for i in range(M):
        for j in range(N):
            t[j] = 2.0 * A[i, j]
        for j in range(N):
            B[i, j] = t[j] + t[N - j - 1]


@poly.nest
def norms(Q: f64[M, N], x: f64[N]):
    for k in range(N):
        for i in range(M):
            x[k] += Q[i, k] * Q[i, k]


@poly.nest
def solve(L: f64[N, N], x: f64[N]):
    for i in range(N):
        for j in range(i):
            x[i] -= L[i, j] * x[j]
        x[i] = x[i] / L[i, i]


@poly.nest
def lower(L: f64[N, N], B: f64[N, M]):
    for i in range(N):
        for j in range(M):
            w = B[i, j]
            for k in range(i):
                w -= L[i, k] * B[k, j]
            B[i, j] = w / L[i, i]


@poly.nest
def matmul(A: f64[M, K], B: f64[K, N], C: f64[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]


@poly.nest
def dot(x: f64[N], y: f64[N], s: f64[1]):
    for i in range(N):
        s[0] += x[i] * y[i]


@poly.nest
def centred(A: f64[M, K], m: f64[K], B: f64[K, N], C: f64[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += (A[i, k] - m[k]) * B[k, j]


@poly.nest
def pairs(A: f64[M, N], B: f64[M, N]):
    for i in range(M):
        t = A[i, 0]
        for j in range(N):
            B[i, j] = A[i, j] + t
            t = A[i, j]
