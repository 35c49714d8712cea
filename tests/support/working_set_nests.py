"""Small nests for the tests of working sets: perfect and imperfect, boxes and triangles."""

from __future__ import annotations

import poly
from poly import f32, f64

M, N, K = poly.sizes("M N K")


@poly.nest
def solve(L: f64[N, N], b: f64[N], x: f64[N]):
    for i in range(N):
        x[i] = b[i]
        for j in range(i):
            x[i] += -L[i, j] * x[j]
        x[i] = x[i] / L[i, i]


@poly.nest
def heat(u: f32[N], v: f32[N]):
    for t in range(4):
        for i in range(1, N - 1):
            v[i] = u[i - 1] + u[i] + u[i + 1]
        for j in range(1, N - 1):
            u[j] = v[j]


@poly.nest
def triangle(A: f32[N, N], s: f32[N]):
    for i in range(N):
        for j in range(i + 1):
            s[j] += A[i, j] * A[j, i]


@poly.nest
def strided(A: f32[64], B: f32[64]):
    for i in range(8):
        for j in range(3):
            B[7 * i] += A[2 * i + 5 * j]
