#include <math.h>
#include <stdint.h>

static inline int64_t imin(int64_t a, int64_t b) { return a < b ? a : b; }

int32_t matmul(const float *restrict A, const float *restrict B, float *restrict C, int64_t threads, void *workspace)
{
    (void)threads;
    (void)workspace;
    for (int64_t i_tile = 0; i_tile < 64; i_tile += 6) {
        for (int64_t i = 0; i < imin(6, 64 - i_tile); i += 1) {
            for (int64_t k = 0; k < 64; k += 1) {
                for (int64_t j = 0; j < 64; j += 1) {
                    C[64*i + 64*i_tile + j] += A[64*i + 64*i_tile + k] * B[64*k + j];
                }
            }
        }
    }
    return 0;
}

int64_t matmul_workspace(int64_t threads)
{
    (void)threads;
    return 0;
}

static inline int overlap(const char *a, int64_t a_bytes, const char *b, int64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

int32_t matmul_guarded(const float *A, const float *B, float *C, int64_t threads, void *workspace)
{
    const int64_t A_bytes = 16384;
    const int64_t B_bytes = 16384;
    const int64_t C_bytes = 16384;
    if (!C_bytes) return 0;
    if (overlap((const char *)C, C_bytes, (const char *)A, A_bytes)) return 1;
    if (overlap((const char *)C, C_bytes, (const char *)B, B_bytes)) return 1;
    if ((uintptr_t)A % 4) return 1;
    if ((uintptr_t)B % 4) return 1;
    if ((uintptr_t)C % 4) return 1;
    return matmul(A, B, C, threads, workspace);
}
