"""Nests without contractions, which get the default schedule for loops."""

from __future__ import annotations

from math import exp

import poly
from poly import f32, f64, i64

M, N, T = poly.sizes("M N T")


@poly.nest
def jacobi_1d(A: f64[N], B: f64[N]):
    for _t in range(T):
        for i in range(1, N - 1):
            B[i] = (A[i - 1] + A[i] + A[i + 1]) / 3.0
        for i in range(1, N - 1):
            A[i] = (B[i - 1] + B[i] + B[i + 1]) / 3.0


@poly.nest
def jacobi_2d(A: f32[N, N], B: f32[N, N]):
    for _t in range(T):
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                B[i, j] = 0.2 * (A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j])
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                A[i, j] = 0.2 * (B[i, j] + B[i, j - 1] + B[i, j + 1] + B[i + 1, j] + B[i - 1, j])


@poly.nest
def heat_3d(A: f64[N, N, N], B: f64[N, N, N]):
    for _t in range(T):
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                for k in range(1, N - 1):
                    B[i, j, k] = 0.1 * (
                        A[i + 1, j, k] + A[i - 1, j, k] + A[i, j + 1, k] + A[i, j - 1, k] + A[i, j, k + 1]
                    )
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                for k in range(1, N - 1):
                    A[i, j, k] = 0.1 * (B[i + 1, j, k] + B[i - 1, j, k] + B[i, j + 1, k] + B[i, j, k - 1] + B[i, j, k])


@poly.nest
def shortest_paths(D: f64[N, N]):
    """All iterations of j need the result of one: there is no chain to interleave."""
    for k in range(N):
        for i in range(N):
            for j in range(N):
                D[i, j] = D[i, j] if D[i, j] < D[i, k] + D[k, j] else D[i, k] + D[k, j]


@poly.nest
def seidel_2d(A: f64[N, N]):
    for _t in range(T):
        for i in range(1, N - 1):
            for j in range(1, N - 1):
                A[i, j] = (
                    A[i - 1, j - 1] + A[i - 1, j] + A[i - 1, j + 1] + A[i, j - 1] + A[i, j]
                    + A[i, j + 1] + A[i + 1, j - 1] + A[i + 1, j] + A[i + 1, j + 1]
                ) / 9.0  # fmt: skip


@poly.nest
def seidel_1d(A: f64[N]):
    for _t in range(T):
        for i in range(1, N - 1):
            A[i] = (A[i - 1] + A[i] + A[i + 1]) / 3.0


@poly.nest
def forward(L: f64[N, N], b: f64[N], x: f64[N]):
    for i in range(N):
        x[i] = b[i]
        for j in range(i):
            x[i] -= L[i, j] * x[j]
        x[i] = x[i] / L[i, i]


@poly.nest
def solve_rows(L: f64[N, N], X: f64[N, M]):
    for r in range(M):
        for i in range(N):
            for j in range(i):
                X[i, r] -= L[i, j] * X[j, r]
            X[i, r] = X[i, r] / L[i, i]


@poly.nest
def solve_block(L: f32[N, N], X: f32[N, M]):
    for i in range(N):
        for j in range(i):
            for r in range(M):
                X[i, r] -= L[i, j] * X[j, r]
        for r in range(M):
            X[i, r] = X[i, r] / L[i, i]


@poly.nest
def softmax(A: f32[N, M], B: f32[N, M]):
    for i in range(N):
        m = -1000.0
        for j in range(M):
            m = max(m, A[i, j])
        s = 0.0
        for j in range(M):
            B[i, j] = exp(A[i, j] - m)
            s += B[i, j]
        for j in range(M):
            B[i, j] = B[i, j] / s


@poly.nest
def transpose(A: f64[N, M], B: f64[M, N]):
    for i in range(N):
        for j in range(M):
            B[j, i] = A[i, j]


@poly.nest
def mirrored(A: f64[N, N]):
    for i in range(N):
        for j in range(i, N):
            A[i, j] = A[i, j] / 4.0
            A[j, i] = A[i, j]


@poly.nest
def column_sums(A: f64[N, M], s: f64[M]):
    for j in range(M):
        s[j] = 0.0
        for i in range(N):
            s[j] += A[i, j]


@poly.nest
def column_peaks(A: f64[N, M], w: f64[N], peak: f64[M], row: i64[M]):
    for j in range(M):
        most: f64 = 0.0
        at: i64 = 0
        for i in range(N):
            weighed = w[i] * A[i, j]
            if weighed > most:
                most = weighed
                at = i
        peak[j] = most
        row[j] = at


@poly.nest
def chain(A: f64[N, M], B: f64[N, M], C: f64[N, M]):
    for i in range(N):
        for j in range(M):
            B[i, j] = 2.0 * A[i, j]
    for i in range(N):
        for j in range(M):
            C[i, j] = B[i, j] + A[i, j]


@poly.nest
def normalised(A: f64[N, M], s: f64[N]):
    for i in range(N):
        for j in range(M):
            s[i] += A[i, j]
    for i in range(N):
        for j in range(M):
            A[i, j] = A[i, j] / s[i]


@poly.nest
def two_triangles(A: f64[N, N], B: f64[N, N]):
    for i in range(N):
        for j in range(i):
            B[i, j] = A[j, i] + A[i, j]


@poly.nest
def elimination(A: f64[N, N]):
    for k in range(N):
        for i in range(k + 1, N):
            A[i, k] = A[i, k] / A[k, k]
            for j in range(k + 1, N):
                A[i, j] -= A[i, k] * A[k, j]


@poly.nest
def backwards(A: f64[N, M], B: f64[N, M], C: f64[N, M]):
    """Only the first loop carries no dependence."""
    for i in range(N):
        for j in range(M - 1, -1, -1):
            B[i, j] = 2.0 * A[i, j]
    for i in range(N):
        for j in range(M - 2, -1, -1):
            C[i, j] = C[i, j + 1] + A[i, j]


NESTS = [
    jacobi_1d, jacobi_2d, heat_3d, seidel_2d, seidel_1d, forward, solve_rows, solve_block,
    softmax, mirrored, column_sums, column_peaks, chain, normalised, two_triangles, backwards,
]  # fmt: skip


SOLVES = {"forward", "solve_rows", "solve_block", "elimination"}
