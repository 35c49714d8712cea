"""A microkernel for the instruction set of this package: four rows of four columns in registers."""

from __future__ import annotations

import poly
from poly import f32

M, N, K = poly.sizes("M N K")

TEXT = """
#include <smmintrin.h>

static inline void outer_f32_sse4_4x4(int64_t k_count, const float *A, int64_t A_i, const float *B, int64_t B_k,
                                      float *C, int64_t C_i)
{
    __m128 sums[4];
    for (int i = 0; i < 4; i++)
        sums[i] = _mm_loadu_ps(C + i * C_i);
    for (int64_t k = 0; k < k_count; k++)
        for (int i = 0; i < 4; i++)
            sums[i] = _mm_add_ps(sums[i], _mm_mul_ps(_mm_set1_ps(A[i * A_i + k]), _mm_loadu_ps(B + k * B_k)));
    for (int i = 0; i < 4; i++)
        _mm_storeu_ps(C + i * C_i, sums[i]);
}
"""


@poly.nest
def outer(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]


outer = poly.microkernel(outer, c=TEXT, isa="sse4", tile={"i": 4, "j": 4})
