"""A first nest: plain loops become a kernel.

The decorator reads the loops; it does not run them. Arrays are annotated with their type and shape, in sizes that stay
symbolic until a call tells them.
"""

import numpy as np

import poly
from poly import f64

M, N = poly.sizes("M N")


@poly.nest
def row_sums(A: f64[M, N], x: f64[M]):
    for i in range(M):
        x[i] = 0
        for j in range(N):
            x[i] += A[i, j]


# The nest prints as the loops that poly understood.
print(row_sums)

# Called on NumPy arrays it updates them in place. The first call compiles, later ones take a few microseconds.
A = np.random.default_rng(0).random((200, 300))
x = np.empty(200)
row_sums(A, x)
assert np.allclose(x, A.sum(axis=1))

# The reference runs the loops as written, in Python: slow, and the judge of every kernel.
expected = np.empty(200)
row_sums.reference(A, expected)
assert np.allclose(x, expected)

# What does not fit is refused, with the array, what was expected, and what to do; nothing has been changed.
try:
    row_sums(A.astype(np.float32), x)
except poly.ArgumentError as error:
    print(error)
