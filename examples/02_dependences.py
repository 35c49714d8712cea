"""Dependences: which iterations must stay in order, and why.

poly works on sets of iterations, so it knows each dependence exactly: from which iteration to which, and through which
array.
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


print(heat)

# Each time step reads what the step before has written: three flow dependences, with distances (1, -1), (1, 0), (1, 1).
for dependence in poly.dependences(heat):
    print(dependence)


# A sum is told apart: its iterations all update one element, but may do so in any order.
@poly.nest
def total(A: f64[N, N], s: f64[1]):
    for i in range(N):
        for j in range(N):
            s[0] += A[i, j]


print(poly.dependences(total))

u = np.random.default_rng(0).random((20, 50))
expected = u.copy()
for t in range(1, 20):
    expected[t, 1:-1] = 0.25 * expected[t - 1, :-2] + 0.5 * expected[t - 1, 1:-1] + 0.25 * expected[t - 1, 2:]
heat(u)
assert np.allclose(u, expected)
