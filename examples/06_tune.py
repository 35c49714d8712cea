"""Tuning: what the model chooses, what measuring adds, and where the result is kept.

The model's choice is usually close to the best. A few measurements confirm or improve it; later programs use that.
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


if __name__ == "__main__":
    # Measure five schedules: the model's choice and its neighbours in the space. Without a budget the search goes on
    # while it expects to gain 1 %. Each candidate's result is compared with a trusted one before it is timed.
    kernel = poly.tune(matmul, M=96, N=128, K=64, threads=1, trials=5)
    print(kernel.schedule)

    # The outcome: the model's choice beside the best found, trials, failures with reasons, and why the search ended.
    tuning = kernel.tuning
    print(tuning)

    rng = np.random.default_rng(0)
    A, B, C = rng.random((96, 64), np.float32), rng.random((64, 128), np.float32), np.zeros((96, 128), np.float32)
    kernel(A, B, C)
    assert np.allclose(C, A @ B, rtol=1e-5)

    # From now on poly.compile follows the record, here and in every other program of this user on this machine.
    again = poly.compile(matmul, M=96, N=128, K=64, threads=1)
    print(again.origin, "-", again.record)
    assert again.schedule == kernel.schedule

    # The same call measures nothing new: it resumes the search, whose five trials are already made.
    assert poly.tune(matmul, M=96, N=128, K=64, threads=1, trials=5).tuning.reused == 5

    # A search for another size starts from what was found here, so a few trials are enough.
    print(poly.tune(matmul, M=128, N=128, K=64, threads=1, trials=2).tuning)
