"""Nests whose locals need little memory in a good schedule."""

import poly
from poly import f64

M, N, T = poly.sizes("M N T")


@poly.nest
def jacobi(A: f64[N, N], B: f64[N, N], steps: f64[T]):
    for t in range(T):
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                n = A[i - 1, j]
                s = A[i + 1, j]
                B[i, j] = 0.25 * (n + s + A[i, j - 1] + A[i, j + 1])
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                n = B[i - 1, j]
                s = B[i + 1, j]
                A[i, j] = 0.25 * (n + s + B[i, j - 1] + B[i, j + 1])


@poly.nest
def blurred(A: f64[M, N], B: f64[M, N]):
    rows: f64[M, N]
    for i in range(M):
        for j in range(N - 2):
            rows[i, j] = A[i, j] + A[i, j + 1] + A[i, j + 2]
    for i in range(2, M):
        for j in range(N - 2):
            B[i, j] = rows[i - 2, j] + rows[i - 1, j] + rows[i, j]


@poly.nest
def smoothed(A: f64[M, N], B: f64[M, N]):
    for i in range(M):
        row: f64[N]
        for j in range(N):
            row[j] = A[i, j] * A[i, j]
        for j in range(1, N - 1):
            B[i, j] = row[j - 1] + row[j] + row[j + 1]


@poly.nest
def scaled(A: f64[M, N], B: f64[M, N]):
    for i in range(M):
        row: f64[N]
        for j in range(N):
            row[j] = A[i, j] * A[i, j]
        for j in range(N):
            B[i, j] = row[j] + 1.0


@poly.nest
def weighted(A: f64[M, N], B: f64[M, N]):
    for i in range(M):
        for j in range(N - 2):
            w: f64[2]
            w[0] = A[i, j] + A[i, j + 1]
            w[1] = A[i, j + 1] + A[i, j + 2]
            B[i, j] = w[0] * w[1]
