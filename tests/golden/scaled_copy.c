#include <math.h>
#include <stdint.h>
#include <omp.h>

static void scaled_copy_i(int64_t N, const float *restrict x, float *restrict y, float alpha, float *restrict all,
        float *restrict one, int64_t i)
{
    for (int64_t j = 0; j < N; j += 1) {
        one[j] = x[N*i + j];
        all[N*i + j] = x[N*i + j];
    }
    for (int64_t j = 0; j < N; j += 1) {
        y[N*i + j] = one[j];
        y[N*i + j] += all[N*i + j];
        y[N*i + j] *= (alpha * 0.5f);
    }
}

int32_t scaled_copy(int64_t M, int64_t N, const float *restrict x, float *restrict y, float alpha, int64_t threads,
        void *workspace)
{
    (void)threads;
    float *restrict const all = (float *)__builtin_assume_aligned((char *)workspace, 64);
    #pragma omp parallel num_threads((int)threads) if(threads > 1 && M > 1)
    {
        char *const mine = (char *)workspace + 64*((4*M*N + 63)/64) +
                (int64_t)omp_get_thread_num()*(64*((4*N + 63)/64));
        float *restrict const my_one = (float *)__builtin_assume_aligned(mine, 64);
        #pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < M; i += 1) {
            scaled_copy_i(N, x, y, alpha, all, my_one, i);
        }
    }
    return 0;
}

int64_t scaled_copy_workspace(int64_t M, int64_t N, int64_t threads)
{
    return 4.0*(double)M*(double)N < 4e18 ? 64*((4*N + 63)/64)*threads + 64*((4*M*N + 63)/64) : INT64_MAX/2;
}

static inline int overlap(const char *a, int64_t a_bytes, const char *b, int64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

int32_t scaled_copy_guarded(int64_t M, int64_t N, const float *x, float *y, float alpha, int64_t threads,
        void *workspace, int64_t room)
{
    const int64_t x_bytes = 4*M*N;
    const int64_t y_bytes = 4*M*N;
    if (!y_bytes) return 0;
    if (overlap((const char *)y, y_bytes, (const char *)x, x_bytes)) return 1;
    if ((uintptr_t)x % 4) return 1;
    if ((uintptr_t)y % 4) return 1;
    if ((uint64_t)scaled_copy_workspace(M, N, threads) > (uint64_t)room) return 2;
    return scaled_copy(M, N, x, y, alpha, threads, workspace);
}
