"""A convolution as plain loops: poly finds the matrix product in it.

The accesses alone show that `n, p, q` index the image and the output, that `k` indexes the weights and the output, and
that `c, r, s` are summed over. This is the structure of a matrix product, so the same microkernels compute it. The
image is not copied into a matrix first.
"""

import numpy as np

import poly
from poly import f32

B, C, K, P, Q, R, S = poly.sizes("B C K P Q R S")


@poly.nest
def conv2d(image: f32[B, P + R - 1, Q + S - 1, C], weights: f32[R, S, C, K], output: f32[B, P, Q, K]):
    for n in range(B):
        for p in range(P):
            for q in range(Q):
                for k in range(K):
                    for r in range(R):
                        for s in range(S):
                            for c in range(C):
                                output[n, p, q, k] += image[n, p + r, q + s, c] * weights[r, s, c, k]


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    image = rng.random((2, 16, 16, 24), np.float32)
    weights = rng.random((3, 3, 24, 32), np.float32)
    output = np.zeros((2, 14, 14, 32), np.float32)

    kernel = poly.compile(conv2d, B=2, C=24, K=32, P=14, Q=14, R=3, S=3)
    print(kernel.schedule)

    kernel(image, weights, output)
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(1, 2))  # [n, p, q, c, r, s]
    assert np.allclose(output, np.einsum("npqcrs,rsck->npqk", windows, weights), rtol=1e-4)
