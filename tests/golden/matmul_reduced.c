#include <math.h>
#include <stdint.h>

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
#if defined(__clang__)
#define POLY_SHUFFLE(to, a, b, numbers, ...) to = __builtin_shufflevector(a, b, __VA_ARGS__);
#else
#define POLY_SHUFFLE(to, a, b, numbers, ...) { const numbers at = {__VA_ARGS__}; to = __builtin_shuffle(a, b, at); }
#endif

static inline int64_t imin(int64_t a, int64_t b) { return a < b ? a : b; }
typedef float f32x4 __attribute__((vector_size(16)));
typedef union { f32x4 all; float lane[4]; } f32x4_lanes;
typedef int32_t i32x4 __attribute__((vector_size(16)));
typedef union { i32x4 all; int32_t lane[4]; } i32x4_lanes;
static inline __attribute__((always_inline)) void fill_f32x4(f32x4 *x, int vectors, float value)
{
    const f32x4 all = {value, value, value, value};
    for (int v = 0; v < vectors; v += 1)
        x[v] = all;
}
static inline __attribute__((always_inline)) void sum_into_f32x4(f32x4 *x, const f32x4 *y)
{
    f32x4_lanes all = {*x};
    const f32x4_lanes next = {*y};
    POLY_LANES
    for (int lane = 0; lane < 4; lane += 1)
        all.lane[lane] += next.lane[lane];
    *x = all.all;
}
static inline __attribute__((always_inline)) float sum_lanes_f32x4(const f32x4 *x)
{
    f32x4_lanes all = {x[0]};
    {
        f32x4_lanes next;
        POLY_SHUFFLE(next.all, all.all, all.all, i32x4, 2, 3, 0, 1)
        POLY_LANES
        for (int lane = 0; lane < 4; lane += 1)
            all.lane[lane] += next.lane[lane];
    }
    {
        f32x4_lanes next;
        POLY_SHUFFLE(next.all, all.all, all.all, i32x4, 1, 0, 3, 2)
        POLY_LANES
        for (int lane = 0; lane < 4; lane += 1)
            all.lane[lane] += next.lane[lane];
    }
    return all.lane[0];
}

int32_t matmul(int64_t M, int64_t N, int64_t K, const float *restrict A, const float *restrict B, float *restrict C,
        int64_t threads, void *workspace)
{
    (void)threads;
    (void)workspace;
    if (N > 0 && K > 0) {
        for (int64_t i_tile = 0; i_tile < M; i_tile += 6) {
            for (int64_t i = 0; i < imin(6, M - i_tile); i += 1) {
                for (int64_t j = 0; j < N; j += 1) {
                    f32x4 C_sum[4];
                    int64_t k = 0;
                    if (15 < K) {
                        fill_f32x4(C_sum, 4, 0.0f);
                        while (k + 15 < K) {
                            {
                                f32x4_lanes C_lanes = {C_sum[0]};
                                POLY_LANES
                                for (int lane = 0; lane < 4; lane += 1) {
                                    C_lanes.lane[lane] += A[(i + i_tile)*K + k + lane] * B[(k + lane)*N + j];
                                }
                                C_sum[0] = C_lanes.all;
                                k += 4;
                            }
                            {
                                f32x4_lanes C_lanes = {C_sum[1]};
                                POLY_LANES
                                for (int lane = 0; lane < 4; lane += 1) {
                                    C_lanes.lane[lane] += A[(i + i_tile)*K + k + lane] * B[(k + lane)*N + j];
                                }
                                C_sum[1] = C_lanes.all;
                                k += 4;
                            }
                            {
                                f32x4_lanes C_lanes = {C_sum[2]};
                                POLY_LANES
                                for (int lane = 0; lane < 4; lane += 1) {
                                    C_lanes.lane[lane] += A[(i + i_tile)*K + k + lane] * B[(k + lane)*N + j];
                                }
                                C_sum[2] = C_lanes.all;
                                k += 4;
                            }
                            {
                                f32x4_lanes C_lanes = {C_sum[3]};
                                POLY_LANES
                                for (int lane = 0; lane < 4; lane += 1) {
                                    C_lanes.lane[lane] += A[(i + i_tile)*K + k + lane] * B[(k + lane)*N + j];
                                }
                                C_sum[3] = C_lanes.all;
                                k += 4;
                            }
                        }
                        sum_into_f32x4(C_sum, &C_sum[1]);
                        sum_into_f32x4(C_sum, &C_sum[2]);
                        sum_into_f32x4(C_sum, &C_sum[3]);
                    } else {
                        fill_f32x4(C_sum, 1, 0.0f);
                    }
                    while (k + 3 < K) {
                        f32x4_lanes C_lanes = {C_sum[0]};
                        POLY_LANES
                        for (int lane = 0; lane < 4; lane += 1) {
                            C_lanes.lane[lane] += A[(i + i_tile)*K + k + lane] * B[(k + lane)*N + j];
                        }
                        C_sum[0] = C_lanes.all;
                        k += 4;
                    }
                    float C_lane = sum_lanes_f32x4(C_sum);
                    while (k < K) {
                        C_lane += A[(i + i_tile)*K + k] * B[k*N + j];
                        k += 1;
                    }
                    C[(i + i_tile)*N + j] += C_lane;
                }
            }
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
