"""The k greatest of each row and where they are: k rounds of arg-max, as plain loops.

A round takes the greatest of what is left: less than the one before, or equal to it and behind it. poly sees that one
iteration of `j` has the last word, and looks for it in vectors: a round takes about as long as reading the row. For a
small k that is faster than to keep k numbers in order, whose iterations depend on one another.
"""

from math import inf

import numpy as np

import poly
from poly import f32, i64

M, N = poly.sizes("M N")
K = 3


@poly.nest
def top_k(x: f32[M, N], values: f32[M, K], places: i64[M, K]):
    for i in range(M):
        last: f32 = inf
        before: i64 = -1
        for t in range(K):
            best: f32 = -inf
            at: i64 = -1
            for j in range(N):
                if x[i, j] > best and (x[i, j] < last or (x[i, j] == last and j > before)):
                    best = x[i, j]
                    at = j
            last = best
            before = at
            values[i, t] = best
            places[i, t] = at


if __name__ == "__main__":
    x = np.random.default_rng(0).integers(-50, 50, (8, 1000)).astype(np.float32)  # many are equal
    values, places = np.empty((8, K), np.float32), np.empty((8, K), np.int64)

    kernel = poly.compile(top_k)
    print(kernel.schedule)

    kernel(x, values, places)
    assert np.array_equal(places, np.argsort(-x, axis=1, kind="stable")[:, :K])
    assert np.array_equal(values, np.take_along_axis(x, places, axis=1))
