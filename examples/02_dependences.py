"""Dependences: which iterations must stay in order, and why.

poly represents iterations as integer sets, so it knows every dependence exactly: from which iteration, to which
iteration, and through which array.
"""

import numpy as np

import poly
from poly import f64

N, T = poly.sizes("N T")


@poly.nest
def heat(u: f64[T, N]):
    for t in range(1, T):
        for x in range(1, N - 1):
            u[t, x] = 0.25 * u[t - 1, x - 1] + 0.5 * u[t - 1, x] + 0.25 * u[t - 1, x + 1]


@poly.nest
def total(A: f64[N, N], s: f64[1]):
    for i in range(N):
        for j in range(N):
            s[0] += A[i, j]


if __name__ == "__main__":
    print(heat)

    # Each time step reads what the previous step wrote: three flow dependences, with distances (1, -1), (1, 0), (1, 1).
    for dependence in poly.dependences(heat):
        print(dependence)

    # All iterations of a sum update one element, but in any order: the dependence is marked as a reduction.
    print(poly.dependences(total))

    u = np.random.default_rng(0).random((20, 50))
    expected = u.copy()
    for t in range(1, 20):
        expected[t, 1:-1] = 0.25 * expected[t - 1, :-2] + 0.5 * expected[t - 1, 1:-1] + 0.25 * expected[t - 1, 2:]
    heat(u)
    assert np.allclose(u, expected)
