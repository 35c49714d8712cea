"""Schedules by hand: each step is proven legal, or refused with two iterations that would run in the wrong order.

A schedule is a value. Each step returns a new schedule; its `repr` is Python, and printing it shows the loops.
"""

import numpy as np

import poly
from poly import f64

M, N, K, T = poly.sizes("M N K T")


@poly.nest
def matmul(A: f64[M, K], B: f64[K, N], C: f64[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]


@poly.nest
def wave(u: f64[T, N]):
    for t in range(1, T):
        for x in range(N - 1):
            u[t, x] = u[t - 1, x + 1] + u[t - 1, x]


if __name__ == "__main__":
    # Blocks of 32 x 64 x 32: threads share the blocks of rows, and the columns run in vector lanes.
    blocks = poly.schedule(matmul).tile(i=32, j=64, k=32).order("i_tile j_tile k_tile i k j")
    schedule = blocks.parallel("i_tile").vectorize("j")
    print(schedule)
    print(repr(schedule))

    rng = np.random.default_rng(0)
    A, B, C = rng.random((70, 50)), rng.random((50, 90)), np.zeros((70, 90))
    kernel = poly.compile(matmul, schedule=schedule)
    kernel(A, B, C)
    assert np.allclose(C, A @ B)

    # The loops of `wave` cannot be interchanged: u[1, 2] would be read before it is written.
    try:
        poly.schedule(wave).interchange("t", "x")
    except poly.ScheduleError as error:
        print(error)

    # The error names the remedy: skew x by t first.
    skewed = poly.schedule(wave).skew("x", by="t").interchange("t", "x")
    print(skewed)

    u = rng.random((20, 50))
    expected = u.copy()
    for t in range(1, 20):
        expected[t, :-1] = expected[t - 1, 1:] + expected[t - 1, :-1]
    poly.compile(wave, schedule=skewed)(u)
    assert np.allclose(u, expected)
