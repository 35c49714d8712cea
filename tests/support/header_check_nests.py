"""Nests whose arguments can be wrong in all ways: shapes, ranks, types, locals, names."""

from classic_nests import two_mm
from shared_nests import matmul

import poly
from poly import f32, f64, i8

K, L, M, N, P, R, T = poly.sizes("K L M N P R T")
threads, workspace_bytes, needed = poly.sizes("threads workspace_bytes needed")


@poly.nest
def turned(X: f32[K, L, M, N], Y: f32[N, M, L, K]):
    for k in range(K):
        for j in range(L):
            for m in range(M):
                for n in range(N):
                    Y[n, m, j, k] = X[k, j, m, n]


@poly.nest
def mixed(X: f64[K, M, N], a: i8[K, N], Y: f64[K, M, N], b: i8[K, N]):
    for k in range(K):
        for n in range(N):
            b[k, n] = a[k, n]
            for m in range(M):
                Y[k, m, n] = X[k, m, n]


@poly.nest
def convolution(x: f64[P + R - 1], w: f64[R], y: f64[P]):
    for p in range(P):
        y[p] = 0
        for r in range(R):
            y[p] += x[p + r] * w[r]


@poly.nest
def inside(A: f32[2 * M - 3, N + 2], B: f32[M, N]):
    for i in range(2, M):
        for j in range(N):
            B[i, j] = A[2 * i - 4, j + 1]


@poly.nest
def heat(u: f32[N], v: f32[N]):
    for t in range(T):
        for i in range(1, N - 1):
            v[i] = u[i - 1] + u[i + 1]
        for i in range(1, N - 1):
            u[i] = v[i]


@poly.nest
def total(x: f64[N], s: f64[()]):
    for i in range(N):
        s[()] += x[i]


@poly.nest
def splits(A: i8[M, N], even: i8[M, N], odd: i8[M, N]):
    for i in range(M):
        for j in range(N):
            even[i, j] = A[i, j]
            odd[i, j] = A[i, j]


@poly.nest
def awkward(
    status: f32[threads, needed],
    bytes: f32[needed, workspace_bytes],
    workspace: f32[threads, workspace_bytes],
    allocate: f32,
    free: f32[threads],
    reach: f32[needed],
    isa: f32[needed],
):
    for i in range(threads):
        for j in range(workspace_bytes):
            for k in range(needed):
                workspace[i, j] += allocate * free[i] * status[i, k] * bytes[k, j] * reach[k] * isa[k]


A_ld = poly.sizes("A_ld")


@poly.nest
def clashing(A: f32[M, A_ld], B_ld: f32[M, A_ld], B: f32[M, A_ld]):
    for i in range(M):
        for j in range(A_ld):
            B[i, j] = A[i, j] + B_ld[i, j]


ALL = (matmul, turned, mixed, convolution, inside, two_mm, heat, total, splits, awkward, clashing)
