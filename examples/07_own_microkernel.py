"""A microkernel of your own: its contract is a small nest, its implementation is C, and schedules use it by its name.

The contract says what one call computes, and that each array is contiguous along its last index. The C function
computes one whole tile; poly computes the tiles at the edges.
"""

import numpy as np

import poly
from poly import f32

M, N, K = poly.sizes("M N K")


@poly.nest
def outer(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]


# A tile of 4 x 16 sums in AVX2's registers, for any number of steps k.
OUTER = """
#include <immintrin.h>

static inline void outer_f32_avx2_4x16(int64_t k, const float *A, int64_t A_i, const float *B, int64_t B_k,
                                       float *C, int64_t C_i)
{
    __m256 low[4], high[4];
    for (int i = 0; i < 4; i++) {
        low[i] = _mm256_loadu_ps(C + i * C_i);
        high[i] = _mm256_loadu_ps(C + i * C_i + 8);
    }
    for (int64_t step = 0; step < k; step++) {
        const __m256 b_low = _mm256_loadu_ps(B + step * B_k), b_high = _mm256_loadu_ps(B + step * B_k + 8);
        for (int i = 0; i < 4; i++) {
            const __m256 a = _mm256_set1_ps(A[i * A_i + step]);
            low[i] = _mm256_fmadd_ps(a, b_low, low[i]);
            high[i] = _mm256_fmadd_ps(a, b_high, high[i]);
        }
    }
    for (int i = 0; i < 4; i++) {
        _mm256_storeu_ps(C + i * C_i, low[i]);
        _mm256_storeu_ps(C + i * C_i + 8, high[i]);
    }
}
"""


# A family that poly doesn't have: sums of four products, which some processors compute in one instruction. Here it is
# plain C, for any processor. The tile fixes the counts of all three loops, so that the function takes none.
@poly.nest
def dot4(A: f32[M, K], B: f32[N, K], C: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[j, k]


DOT4 = """
static inline float four_products(const float *a, const float *b)
{
    return (a[0] * b[0] + a[1] * b[1]) + (a[2] * b[2] + a[3] * b[3]);
}

static inline void dot4_f32_portable_2x4x4(const float *A, int64_t A_i, const float *B, int64_t B_j,
                                           float *C, int64_t C_i)
{
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            C[i * C_i + j] += four_products(A + i * A_i, B + j * B_j);
}
"""

outer_tile = poly.microkernel(outer, c=OUTER, isa="avx2", tile={"i": 4, "j": 16})
dot4_tile = poly.microkernel(dot4, c=DOT4, isa="portable", tile={"i": 2, "j": 4, "k": 4})


# Any nest whose loops compute the same can use them: here the second operand is transposed, as `dot4` expects it.
@poly.nest
def scores(queries: f32[M, K], keys: f32[N, K], out: f32[M, N]):
    for q in range(M):
        for p in range(N):
            out[q, p] = 0
            for d in range(K):
                out[q, p] += queries[q, d] * keys[p, d]


if __name__ == "__main__":
    made = poly.schedule(scores).distribute("q").tile(q_2=2, p_2=4, d=4).microkernel(dot4_tile.name, initial="S0")
    print(made)
    kernel = poly.compile(scores, schedule=made, target="c:portable", threads=1)

    rng = np.random.default_rng(0)
    queries, keys = rng.random((101, 50), np.float32), rng.random((67, 50), np.float32)
    out = np.empty((101, 67), np.float32)
    kernel(queries, keys, out)
    assert np.allclose(out, queries @ keys.T, rtol=1e-5)

    # `outer` reads rows of B: not `keys` in place, but panels of them, which are contiguous along the columns.
    try:
        poly.schedule(scores).distribute("q").tile(q_2=4, p_2=16).microkernel(outer_tile.name)
    except poly.ScheduleError as error:
        print(error)
    packed = poly.schedule(scores).distribute("q").tile(q_2=4, p_2=16).pack("keys", at="p_2_tile")
    print(packed.microkernel(outer_tile.name, initial="S0"))
