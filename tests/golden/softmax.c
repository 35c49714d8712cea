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
#define POLY_WRAPS __attribute__((no_sanitize("integer")))
#else
#define POLY_WRAPS
#endif
#if defined(__clang__)
#define POLY_SHUFFLE(to, a, b, numbers, ...) to = __builtin_shufflevector(a, b, __VA_ARGS__);
#else
#define POLY_SHUFFLE(to, a, b, numbers, ...) { const numbers at = {__VA_ARGS__}; to = __builtin_shuffle(a, b, at); }
#endif

static inline float max_f32(float a, float b) { return b > a ? b : a; }
static inline uint32_t bits_of_f32(float x)
{
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline float of_bits_f32(uint32_t bits)
{
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}
static inline float power_f32(float r, float scale) /* e^r times a power of 2, for small r */
{
    const float r2 = r * r;
    const float q0 = 0.1666657702559799f * r + 0.5f;
    const float q2 = 0.008363173074513711f * r + 0.04166655466205065f;
    const float q4 = 0.0013926176119927734f;
    const float q = (q4 * r2 + q2) * r2 + q0;
    return (q * r2 + r) * scale + scale;
}
POLY_WRAPS static inline float exp_f32(float x)
{
    const uint32_t sum = bits_of_f32(x * 1.4426950408889634f + 12582912.0f) + 254;
    const float n = of_bits_f32(sum) - 12583166.0f;
    const float r = (x - n * 0.693115234375f) - n * 3.1946184945309415e-05f;
    const uint32_t halved = sum >> 1;
    const float high = of_bits_f32(halved << 23);
    const float low = of_bits_f32((sum - halved) << 23);
    const float result = power_f32(r, high) * low, bounded = x < -104.0f ? 0.0f : result;
    return x > 89.0f ? (float)INFINITY : bounded;
}
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
static inline __attribute__((always_inline)) void max_into_f32x4(f32x4 *x, const f32x4 *y)
{
    f32x4_lanes all = {*x};
    const f32x4_lanes next = {*y};
    POLY_LANES
    for (int lane = 0; lane < 4; lane += 1)
        all.lane[lane] = max_f32(all.lane[lane], next.lane[lane]);
    *x = all.all;
}
static inline __attribute__((always_inline)) float max_lanes_f32x4(const f32x4 *x)
{
    f32x4_lanes all = {x[0]};
    {
        f32x4_lanes next;
        POLY_SHUFFLE(next.all, all.all, all.all, i32x4, 2, 3, 0, 1)
        POLY_LANES
        for (int lane = 0; lane < 4; lane += 1)
            all.lane[lane] = max_f32(all.lane[lane], next.lane[lane]);
    }
    {
        f32x4_lanes next;
        POLY_SHUFFLE(next.all, all.all, all.all, i32x4, 1, 0, 3, 2)
        POLY_LANES
        for (int lane = 0; lane < 4; lane += 1)
            all.lane[lane] = max_f32(all.lane[lane], next.lane[lane]);
    }
    return all.lane[0];
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

int32_t softmax(int64_t M, int64_t N, const float *restrict x, float *restrict y, int64_t threads, void *workspace)
{
    (void)threads;
    float *restrict const top = (float *)__builtin_assume_aligned((char *)workspace, 64);
    float *restrict const total = (float *)__builtin_assume_aligned((char *)workspace + 64*((4*M + 63)/64), 64);
    for (int64_t i = 0; i < M; i += 1) {
        top[i] = -INFINITY;
        total[i] = 0.0f;
        if (N > 0) {
            f32x4 top_max[4];
            int64_t j = 0;
            if (15 < N) {
                fill_f32x4(top_max, 4, -INFINITY);
                while (j + 15 < N) {
                    {
                        f32x4_lanes top_lanes = {top_max[0]};
                        POLY_LANES
                        for (int lane = 0; lane < 4; lane += 1) {
                            top_lanes.lane[lane] = max_f32(top_lanes.lane[lane], x[i*N + j + lane]);
                        }
                        top_max[0] = top_lanes.all;
                        j += 4;
                    }
                    {
                        f32x4_lanes top_lanes = {top_max[1]};
                        POLY_LANES
                        for (int lane = 0; lane < 4; lane += 1) {
                            top_lanes.lane[lane] = max_f32(top_lanes.lane[lane], x[i*N + j + lane]);
                        }
                        top_max[1] = top_lanes.all;
                        j += 4;
                    }
                    {
                        f32x4_lanes top_lanes = {top_max[2]};
                        POLY_LANES
                        for (int lane = 0; lane < 4; lane += 1) {
                            top_lanes.lane[lane] = max_f32(top_lanes.lane[lane], x[i*N + j + lane]);
                        }
                        top_max[2] = top_lanes.all;
                        j += 4;
                    }
                    {
                        f32x4_lanes top_lanes = {top_max[3]};
                        POLY_LANES
                        for (int lane = 0; lane < 4; lane += 1) {
                            top_lanes.lane[lane] = max_f32(top_lanes.lane[lane], x[i*N + j + lane]);
                        }
                        top_max[3] = top_lanes.all;
                        j += 4;
                    }
                }
                max_into_f32x4(top_max, &top_max[1]);
                max_into_f32x4(top_max, &top_max[2]);
                max_into_f32x4(top_max, &top_max[3]);
            } else {
                fill_f32x4(top_max, 1, -INFINITY);
            }
            while (j + 3 < N) {
                f32x4_lanes top_lanes = {top_max[0]};
                POLY_LANES
                for (int lane = 0; lane < 4; lane += 1) {
                    top_lanes.lane[lane] = max_f32(top_lanes.lane[lane], x[i*N + j + lane]);
                }
                top_max[0] = top_lanes.all;
                j += 4;
            }
            float top_lane = max_lanes_f32x4(top_max);
            while (j < N) {
                top_lane = max_f32(top_lane, x[i*N + j]);
                j += 1;
            }
            top[i] = max_f32(top[i], top_lane);
        }
        POLY_SIMD
        for (int64_t j = 0; j < N; j += 1) {
            y[i*N + j] = exp_f32(x[i*N + j] - top[i]);
        }
        if (N > 0) {
            f32x4 total_sum[4];
            int64_t j = 0;
            if (15 < N) {
                fill_f32x4(total_sum, 4, 0.0f);
                while (j + 15 < N) {
                    {
                        f32x4_lanes total_lanes = {total_sum[0]};
                        POLY_LANES
                        for (int lane = 0; lane < 4; lane += 1) {
                            total_lanes.lane[lane] += y[i*N + j + lane];
                        }
                        total_sum[0] = total_lanes.all;
                        j += 4;
                    }
                    {
                        f32x4_lanes total_lanes = {total_sum[1]};
                        POLY_LANES
                        for (int lane = 0; lane < 4; lane += 1) {
                            total_lanes.lane[lane] += y[i*N + j + lane];
                        }
                        total_sum[1] = total_lanes.all;
                        j += 4;
                    }
                    {
                        f32x4_lanes total_lanes = {total_sum[2]};
                        POLY_LANES
                        for (int lane = 0; lane < 4; lane += 1) {
                            total_lanes.lane[lane] += y[i*N + j + lane];
                        }
                        total_sum[2] = total_lanes.all;
                        j += 4;
                    }
                    {
                        f32x4_lanes total_lanes = {total_sum[3]};
                        POLY_LANES
                        for (int lane = 0; lane < 4; lane += 1) {
                            total_lanes.lane[lane] += y[i*N + j + lane];
                        }
                        total_sum[3] = total_lanes.all;
                        j += 4;
                    }
                }
                sum_into_f32x4(total_sum, &total_sum[1]);
                sum_into_f32x4(total_sum, &total_sum[2]);
                sum_into_f32x4(total_sum, &total_sum[3]);
            } else {
                fill_f32x4(total_sum, 1, 0.0f);
            }
            while (j + 3 < N) {
                f32x4_lanes total_lanes = {total_sum[0]};
                POLY_LANES
                for (int lane = 0; lane < 4; lane += 1) {
                    total_lanes.lane[lane] += y[i*N + j + lane];
                }
                total_sum[0] = total_lanes.all;
                j += 4;
            }
            float total_lane = sum_lanes_f32x4(total_sum);
            while (j < N) {
                total_lane += y[i*N + j];
                j += 1;
            }
            total[i] += total_lane;
        }
        POLY_SIMD
        for (int64_t j = 0; j < N; j += 1) {
            y[i*N + j] = y[i*N + j] / total[i];
        }
    }
    return 0;
}

int64_t softmax_workspace(int64_t M, int64_t N, int64_t threads)
{
    (void)N;
    (void)threads;
    return 128*((4*M + 63)/64);
}

static inline int overlap(const char *a, int64_t a_bytes, const char *b, int64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

int32_t softmax_guarded(int64_t M, int64_t N, const float *x, float *y, int64_t threads, void *workspace, int64_t room)
{
    const int64_t x_bytes = 4*M*N;
    const int64_t y_bytes = 4*M*N;
    if (!y_bytes) return 0;
    if (overlap((const char *)y, y_bytes, (const char *)x, x_bytes)) return 1;
    if ((uintptr_t)x % 4) return 1;
    if ((uintptr_t)y % 4) return 1;
    if ((uint64_t)softmax_workspace(M, N, threads) > (uint64_t)room) return 2;
    return softmax(M, N, x, y, threads, workspace);
}
