"""Nests with locals inside loops whose ranges are empty at small sizes, and the sizes to run them at."""

import poly
from poly import f32, f64

M, N, K = poly.sizes("M N K")


@poly.nest
def behind(x: f64[N], y: f64[N, M]):
    """The range of `i` is empty for N up to 7, and the second local follows the first in memory."""
    for i in range(7, N):
        t: f64[M]
        u: f64[M, 3]
        for j in range(M):
            t[j] = x[i] + j
        for j in range(M):
            u[j, 1] = t[j] * 2.0
        for j in range(M):
            y[i, j] = u[j, 1]
    for i in range(N):
        v: f64[M]
        for j in range(M):
            v[j] = x[i]
        for j in range(M):
            y[i, j] += v[j]


@poly.nest
def twice(x: f32[N, M], y: f32[N, M]):
    """Two extents below 0, whose product would be a large number."""
    for i in range(90000, N):
        for j in range(80000, M):
            t: f32[5]
            t[2] = x[i, j]
            y[i, j] = t[2] + 1.0
    for i in range(N):
        for j in range(M):
            s: f32 = x[i, j] * 2.0
            y[i, j] += s


@poly.nest
def narrow(x: f64[N], y: f64[N]):
    """A local with an extent that the user wrote, and a loop that counts down."""
    for i in range(N - 1, 4, -1):
        t: f64[N - 6]
        for j in range(N - 6):
            t[j] = x[i] + x[j]
        for j in range(N - 6):
            y[i] += t[j]
    w: f64[N]
    for i in range(N):
        w[i] = x[i]
    for i in range(N):
        y[i] += w[i]


@poly.nest
def product(A: f64[N, K], B: f64[K, M], C: f64[N, M]):
    """A contraction over a local that may have no rows, packed if the model packs."""
    t: f64[N - 50, K]
    for i in range(N - 50):
        for k in range(K):
            t[i, k] = A[i + 50, k] * 2.0
    for i in range(N - 50):
        for j in range(M):
            for k in range(K):
                C[i, j] += t[i, k] * B[k, j]


@poly.nest
def nothing(x: f64[N], y: f64[N]):
    """A range that is empty at all sizes."""
    for i in range(9, 4):
        t: f64[N]
        for j in range(N):
            t[j] = x[i]
        for j in range(N):
            y[j] = t[j]
    for i in range(N):
        z: f64 = x[i]
        y[i] += z


CASES = {
    behind: [{"N": n, "M": m} for n in (0, 7, 8, 20) for m in (0, 33)],
    twice: [{"N": n, "M": m} for n in (0, 3, 40) for m in (0, 5)],
    narrow: [{"N": n} for n in (0, 1, 4, 5, 6, 7, 30)],
    product: [{"N": n, "M": m, "K": k} for n in (0, 3, 50, 51, 130) for m, k in ((0, 9), (70, 0), (40, 60))],
    nothing: [{"N": n} for n in (10, 12, 30)],
}
"""Sizes at which ranges are empty, hold one iteration, or many."""
