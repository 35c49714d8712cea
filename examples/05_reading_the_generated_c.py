"""Reading the generated C: one function with the loops of the schedule, and a microkernel in intrinsics.

The text is complete: its preamble contains the microkernel, and it needs only the compiler's own headers.
"""

import numpy as np

import poly
from poly import f32

M, N, K = poly.sizes("M N K")


@poly.nest
def matmul(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]


@poly.nest
def smooth(x: f32[N], y: f32[N]):
    for i in range(1, N - 1):
        y[i] = 0.25 * (x[i - 1] + 2 * x[i] + x[i + 1])


if __name__ == "__main__":
    # The portable target is the easiest to read: plain C with vector extensions.
    kernel = poly.compile(matmul, M=96, N=96, K=96, target="c:portable", threads=1)
    print(kernel.schedule)
    print(kernel.source)

    # How much memory a call needs besides the arrays.
    print(f"workspace: {kernel.workspace_bytes} bytes")

    rng = np.random.default_rng(0)
    A, B, C = rng.random((96, 96), np.float32), rng.random((96, 96), np.float32), np.zeros((96, 96), np.float32)
    kernel(A, B, C)
    assert np.allclose(C, A @ B, rtol=1e-5)

    # A nest without a contraction becomes the scheduled loops alone.
    plain = poly.compile(smooth, threads=1)
    print(plain.source)

    x, y = rng.random(1000, np.float32), np.zeros(1000, np.float32)
    plain(x, y)
    assert np.allclose(y[1:-1], 0.25 * (x[:-2] + 2 * x[1:-1] + x[2:]), rtol=1e-5)
