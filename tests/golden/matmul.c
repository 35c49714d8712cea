#include <math.h>
#include <stdint.h>
#include <omp.h>

#if defined(__clang__)
#define POLY_SIMD _Pragma("clang loop vectorize(assume_safety) interleave(disable)")
#define POLY_LANES _Pragma("clang loop vectorize(assume_safety) unroll(disable)")
#elif defined(__GNUC__)
#define POLY_SIMD _Pragma("GCC ivdep") _Pragma("GCC unroll 4")
#define POLY_LANES _Pragma("GCC ivdep") _Pragma("GCC unroll 1")
#else
#define POLY_SIMD
#define POLY_LANES
#endif

static inline int64_t imin(int64_t a, int64_t b) { return a < b ? a : b; }

static void matmul_i_tile(int64_t M, int64_t N, int64_t K, const float *restrict A, const float *restrict B,
        float *restrict C, int64_t i_tile)
{
    for (int64_t i = 0; i < imin(6, M - i_tile); i += 1) {
        #pragma GCC unroll 4
        for (int64_t k = 0; k < K; k += 1) {
            POLY_SIMD
            for (int64_t j = 0; j < N; j += 1) {
                C[(i + i_tile)*N + j] += A[(i + i_tile)*K + k] * B[k*N + j];
            }
        }
    }
}

int32_t matmul(int64_t M, int64_t N, int64_t K, const float *restrict A, const float *restrict B, float *restrict C,
        int64_t threads, void *workspace)
{
    (void)threads;
    (void)workspace;
    if (K > 0 && N > 0) {
        #pragma omp parallel for schedule(static) num_threads((int)threads) if(threads > 1 && M > 6)
        for (int64_t i_tile = 0; i_tile < M; i_tile += 6) {
            matmul_i_tile(M, N, K, A, B, C, i_tile);
        }
    }
    return 0;
}

int64_t matmul_workspace(int64_t M, int64_t N, int64_t K, int64_t threads)
{
    (void)M;
    (void)N;
    (void)K;
    (void)threads;
    return 0;
}

static inline int overlap(const char *a, int64_t a_bytes, const char *b, int64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

int32_t matmul_guarded(int64_t M, int64_t N, int64_t K, const float *A, const float *B, float *C, int64_t threads,
        void *workspace)
{
    const int64_t A_bytes = 4*K*M;
    const int64_t B_bytes = 4*K*N;
    const int64_t C_bytes = 4*M*N;
    if (!C_bytes) return 0;
    if (overlap((const char *)C, C_bytes, (const char *)A, A_bytes)) return 1;
    if (overlap((const char *)C, C_bytes, (const char *)B, B_bytes)) return 1;
    if ((uintptr_t)A % 4) return 1;
    if ((uintptr_t)B % 4) return 1;
    if ((uintptr_t)C % 4) return 1;
    return matmul(M, N, K, A, B, C, threads, workspace);
}
