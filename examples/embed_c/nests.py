"""What the C program computes, as plain loops: attention's weights, softmax(Q*K')."""

from math import exp

import poly
from poly import f32

M, N, D = poly.sizes("M N D")


@poly.nest
def scores(scale: f32, Q: f32[M, D], K: f32[N, D], S: f32[M, N]):
    for i in range(M):
        for j in range(N):
            S[i, j] = 0
            for d in range(D):
                S[i, j] += scale * Q[i, d] * K[j, d]


@poly.nest
def softmax(S: f32[M, N], P: f32[M, N]):
    largest: f32[M]
    total: f32[M]
    for i in range(M):
        largest[i] = S[i, 0]
        for j in range(N):
            largest[i] = max(largest[i], S[i, j])
        total[i] = 0
        for j in range(N):
            P[i, j] = exp(S[i, j] - largest[i])
            total[i] += P[i, j]
        for j in range(N):
            P[i, j] /= total[i]
