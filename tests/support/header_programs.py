"""C texts that call a header's `matmul`; each is C and C++, and passes the same warnings as the header.

Rows have gaps between them, whose contents must not change.
"""

from __future__ import annotations

PRODUCTS = r"""
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "matmul.h"

static float next_value(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / 8388608.0f - 1.0f;
}

static void fill(float *values, int64_t count, uint32_t seed)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = next_value(&seed);
}

/* C += A*B by the loops as written: the number of elements that differ from `got` by more than rounding does. */
static int differences(int64_t M, int64_t K, int64_t N, const float *A, int64_t lda, const float *B, int64_t ldb,
                       const float *before, const float *got, int64_t ldc)
{
    int found = 0;
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < ldc && (i < M - 1 || j < N); j++) {
            double want = (double)before[i * ldc + j], size = fabs(want);
            for (int64_t k = 0; j < N && k < K; k++) {
                const double term = (double)A[i * lda + k] * (double)B[k * ldb + j];
                want += term;
                size += fabs(term);
            }
            const double error = fabs((double)got[i * ldc + j] - want);
            const double bound = j < N ? (double)(K + 1) * 1.2e-7 * size : 0.0;
            if (!(error <= bound) && found++ == 0)
                printf("M=%d K=%d N=%d: C[%d, %d] is wrong by %g\n", (int)M, (int)K, (int)N, (int)i, (int)j, error);
        }
    return found;
}
"""

CLIMB = (
    PRODUCTS
    + r"""
enum { ROOM = 1 << 16 };
static float A[ROOM], B[ROOM], before[ROOM], C[ROOM];

static int check(int64_t M, int64_t K, int64_t N, int64_t gap)
{
    const int64_t lda = K + gap, ldb = N + 2 * gap, ldc = N + gap;
    if (M * lda > ROOM || K * ldb > ROOM || M * ldc > ROOM)
        return 1;
    for (int64_t i = 0; i < M * ldc; i++)
        C[i] = before[i];
    const matmul_status status = matmul(M, K, N, A, gap ? lda : 0, B, ldb, C, gap ? ldc : 0 THREADS(1));
    if (status != MATMUL_OK) {
        printf("M=%d K=%d N=%d: %s\n", (int)M, (int)K, (int)N, matmul_status_text(status));
        return 1;
    }
    return differences(M, K, N, A, lda, B, ldb, before, C, ldc) != 0;
}

/* CLIMB isa rows columns: every size up to rows x columns with the kernels of `isa` (0: those that the CPU gets). */
int main(int argc, char **argv)
{
    static const int64_t depths[] = {0, 1, 2, 7, 33};
    const matmul_isa isa = (matmul_isa)(argc > 1 ? atoi(argv[1]) : 0);
    const int64_t rows = argc > 2 ? atoi(argv[2]) : 7, columns = argc > 3 ? atoi(argv[3]) : 9;
    int checks = 0, failures = 0;
    const matmul_status forced = matmul_force_isa(isa);
    if (forced != MATMUL_OK) {
        printf("%s\n", matmul_status_text(forced));
        return 2;
    }
    fill(A, ROOM, 1);
    fill(B, ROOM, 2);
    fill(before, ROOM, 3);
    for (int64_t m = 0; m <= rows; m++)
        for (int64_t n = 0; n <= columns; n++, checks++)
            failures += check(m, depths[(m + n) % 5], n, (m + n / 5) % 3);
    for (int step = 0; step < 5; step++, checks++)
        failures += check(3 * rows + step, 60 + 5 * step, columns + 3 * step, step % 2);
    printf("isa %d: %d checks, %d failures\n", (int)matmul_isa_in_use(), checks, failures);
    return failures != 0;
}
"""
)

TOGETHER = (
    PRODUCTS
    + r"""
#include <pthread.h>

enum { CALLERS = 4, CALLS = 8, M = 67, K = 83, N = 101 };
static float A[M * K], B[K * N], before[M * N], C[CALLERS][M * N];
static int failures[CALLERS];
static pthread_barrier_t start;

/* Callers wait for each other, so that their first calls choose the instruction set at once. */
static void *call(void *number)
{
    const int own = *(const int *)number;
    pthread_barrier_wait(&start);
    for (int time = 0; time < CALLS; time++) {
        for (int i = 0; i < M * N; i++)
            C[own][i] = before[i];
        if (own == 3 && time > 1)
            matmul_force_isa(time % 2 ? MATMUL_ISA_PORTABLE : MATMUL_ISA_AUTO);
        if (matmul(M, K, N, A, 0, B, 0, C[own], 0 THREADS(1 + (time + own) % 3)) != MATMUL_OK)
            failures[own]++;
        failures[own] += differences(M, K, N, A, K, B, N, before, C[own], N);
    }
    return NULL;
}

int main(void)
{
    pthread_t callers[CALLERS];
    int numbers[CALLERS], failed = 0;
    fill(A, M * K, 1);
    fill(B, K * N, 2);
    fill(before, M * N, 3);
    pthread_barrier_init(&start, NULL, CALLERS);
    for (int i = 0; i < CALLERS; i++) {
        numbers[i] = i;
        pthread_create(&callers[i], NULL, call, &numbers[i]);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(callers[i], NULL);
        failed += failures[i];
    }
    printf("%d failures\n", failed);
    return failed != 0;
}
"""
)

ALLOCATIONS = (
    PRODUCTS
    + r"""
enum { M = 67, K = 300, N = 101, ROOM = 1 << 22 };
static float A[M * K], B[K * N], before[M * N], C[M * N];
static unsigned char memory[ROOM];
static int allocated, released;

void *counted(size_t bytes)
{
    allocated++;
    return malloc(bytes);
}

void counted_free(void *freed)
{
    released += freed != NULL;
    free(freed);
}

static int wrong(int changed)
{
    return differences(M, changed ? K : 0, N, A, K, B, N, before, C, N) != 0;
}

static int calls(int64_t bytes)
{
    int failures = 0;
    for (int64_t at = 0; at < 2; at++) {
        for (int64_t i = 0; i < M * N; i++)
            C[i] = before[i];
        memory[at + bytes] = 77;
        if (bytes > 0) {
            const matmul_status small =
                matmul_with_workspace(M, K, N, A, 0, B, 0, C, 0 THREADS(2), memory + at, bytes - 1);
            failures += small != MATMUL_WORKSPACE_TOO_SMALL || wrong(0);
        }
        const matmul_status done = matmul_with_workspace(M, K, N, A, 0, B, 0, C, 0 THREADS(2), memory + at, bytes);
        failures += done != MATMUL_OK || wrong(1) || memory[at + bytes] != 77;
    }
    return failures;
}

int main(void)
{
    const int64_t bytes = matmul_workspace_size(M, K, N THREADS(2));
    int failures = bytes < 0 || bytes > ROOM - 2;
    fill(A, M * K, 1);
    fill(B, K * N, 2);
    fill(before, M * N, 3);
    failures = failures || calls(bytes) || allocated;
    for (int64_t i = 0; i < M * N; i++)
        C[i] = before[i];
    failures += matmul(M, K, N, A, 0, B, 0, C, 0 THREADS(2)) != MATMUL_OK || wrong(1);
    failures += allocated != (bytes > 0) || allocated != released;
    printf("%d bytes, %d allocations, %d failures\n", (int)bytes, allocated, failures);
    return failures != 0;
}
"""
)


def program(text: str, threads: str) -> str:
    """The text for a header made with `--threads`, without which calls have no argument for them."""
    macro = "#define THREADS(count)\n" if threads == "none" else "#define THREADS(count) , (count)\n"
    return macro + text
