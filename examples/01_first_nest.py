"""A first nest: plain loops become a kernel.

The decorator reads the loops; it does not run them. Arrays are annotated with their type and shape. The sizes in a
shape stay symbolic until a call supplies arrays.
"""

import numpy as np

import poly
from poly import f32

M, N, K = poly.sizes("M N K")


@poly.nest
def matmul(A: f32[M, K], B: f32[K, N], C: f32[M, N]) -> None:
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]


if __name__ == "__main__":
    # A nest prints as the loops that poly read.
    print(matmul)

    # A call on NumPy arrays updates them in place. The first call compiles; later calls take a few microseconds.
    rng = np.random.default_rng(0)
    A, B = rng.random((30, 20), np.float32), rng.random((20, 10), np.float32)
    C = np.zeros((30, 10), np.float32)
    matmul(A, B, C)
    assert np.allclose(C, A @ B)

    # The reference runs the loops as written, in Python. It is slow, and it is what every kernel is tested against.
    expected = np.zeros((30, 10), np.float32)
    matmul.reference(A, B, expected)
    assert np.allclose(C, expected)

    # A wrong argument is refused before anything changes. The message names the array, what was expected, and a fix.
    try:
        matmul(A.astype(np.float64), B, C)
    except poly.ArgumentError as error:
        print(error)
