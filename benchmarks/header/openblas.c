/* Products by a header's functions and by OpenBLAS, in turn and on the same arrays.

   usage: PROGRAM all|openblas SECONDS LEAST MOST [SHAPE...]

   Every shape (those named, or all) is first checked, then timed for so many seconds and rounds; a sample fills some
   milliseconds. Lines on standard output: `core NAME`, and for each shape `shape NAME`, for each contender
   `error NAME E` (of its result, relative to the largest element) and `times NAME S S S...` in seconds a call.

   shapes.h is made for the headers at hand: their functions as loops, and the table SHAPES. */

#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112, CONTENDERS = 3, ROUNDS = 1000 };

char *openblas_get_corename(void);
char *openblas_get_config(void);
void openblas_set_num_threads(int threads);
void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b,
                 int ldb, float beta, float *c, int ldc);
void cblas_sgemv(int order, int ta, int m, int n, float alpha, const float *a, int lda, const float *x, int incx,
                 float beta, float *y, int incy);

typedef struct shape shape;
typedef struct work {
    const float *a, *b;
    float *c;
    void *workspace;
    int64_t bytes;
} work;

/* Does the work so many times, and returns the seconds; negative where a call is refused. */
typedef double loop(const shape *s, const work *w, int64_t times);
typedef int64_t need(const shape *s);

struct shape {
    const char *name;
    int64_t batch, m, n, k;
    int a_transposed, b_transposed;
    loop *run[CONTENDERS];
    need *bytes[CONTENDERS];
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double openblas(const shape *s, const work *w, int64_t times)
{
    const int m = (int)s->m, n = (int)s->n, k = (int)s->k;
    const int ta = s->a_transposed ? TRANSPOSED : PLAIN, tb = s->b_transposed ? TRANSPOSED : PLAIN;
    const int lda = s->a_transposed ? m : k, ldb = s->b_transposed ? k : n;
    const double start = now();
    for (int64_t turn = 0; turn < times; turn++) {
        if (m == 1 && ta == PLAIN && tb == PLAIN) {
            cblas_sgemv(ROW_MAJOR, TRANSPOSED, k, n, 1, w->b, n, w->a, 1, 1, w->c, 1);
            continue;
        }
        for (int64_t i = 0; i < s->batch; i++)
            cblas_sgemm(ROW_MAJOR, ta, tb, m, n, k, 1, w->a + i * m * k, lda, w->b + i * k * n, ldb, 1,
                        w->c + i * m * n, n);
    }
    return now() - start;
}

#include "shapes.h"

static const char *NAMES[CONTENDERS] = {"openblas", "special", "symbolic"};

/* Numbers of [-1, 1), the same for the same seed. */
static void fill(float *x, int64_t count, uint32_t seed)
{
    uint32_t state = seed;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 8) / 8388608.0f - 1.0f;
    }
}

static void *memory(int64_t bytes)
{
    void *found = NULL;
    if (posix_memalign(&found, 64, (size_t)(bytes > 0 ? bytes : 1))) {
        fputs("out of memory\n", stderr);
        exit(1);
    }
    return found;
}

/* The error of c = before + A B by one random vector t: c t beside before t + A (B t), each row of each product. */
static double error(const shape *s, const work *w, const float *before)
{
    const int64_t m = s->m, n = s->n, k = s->k;
    double *t = memory(n * 8), *bt = memory(k * 8), worst = 0, largest = 0;
    for (int64_t j = 0; j < n; j++) t[j] = (j * 2654435761u >> 7) & 1 ? 1 : -1;
    for (int64_t i = 0; i < s->batch; i++) {
        const float *a = w->a + i * m * k, *b = w->b + i * k * n, *c = w->c + i * m * n, *c0 = before + i * m * n;
        for (int64_t l = 0; l < k; l++) {
            bt[l] = 0;
            for (int64_t j = 0; j < n; j++) bt[l] += t[j] * (double)(s->b_transposed ? b[j * k + l] : b[l * n + j]);
        }
        for (int64_t r = 0; r < m; r++) {
            double found = 0, right = 0;
            for (int64_t j = 0; j < n; j++) found += t[j] * (double)c[r * n + j], right += t[j] * (double)c0[r * n + j];
            for (int64_t l = 0; l < k; l++) right += bt[l] * (double)(s->a_transposed ? a[l * m + r] : a[r * k + l]);
            worst = isfinite(found) ? fmax(worst, fabs(found - right)) : INFINITY;
            largest = fmax(largest, fabs(right));
        }
    }
    free(t);
    free(bt);
    return worst / largest;
}

static int64_t calls(const shape *s, const work *w, int who, double sample)
{
    int64_t times = 1;
    double seconds = s->run[who](s, w, 1);
    while (seconds < sample / 2) {
        times *= 2;
        seconds = s->run[who](s, w, times);
    }
    times = (int64_t)((double)times * sample / seconds + 0.5);
    return times > 0 ? times : 1;
}

static void timed(const shape *s, const work *w, int contenders, double seconds, int least, int most)
{
    static double samples[CONTENDERS][ROUNDS];
    int64_t times[CONTENDERS];
    int round = 0;
    for (int who = 0; who < contenders; who++) times[who] = calls(s, w, who, 0.002);
    const double start = now();
    while (round < most && (round < least || now() - start < seconds)) {
        for (int place = 0; place < contenders; place++) {
            const int who = (place + round) % contenders;
            if (round == 0 || samples[who][round - 1] < 0.02) s->run[who](s, w, 1);
            samples[who][round] = s->run[who](s, w, times[who]) / (double)times[who];
        }
        round++;
    }
    for (int who = 0; who < contenders; who++) {
        printf("times %s", NAMES[who]);
        for (int i = 0; i < round; i++) printf(" %.6e", samples[who][i]);
        printf("\n");
    }
}

static void measure(const shape *s, int contenders, double seconds, int least, int most)
{
    const int64_t m = s->batch * s->m, n = s->n, k = s->k, filled = s->batch * k * n;
    float *a = memory(m * k * 4), *b = memory(filled * 4), *before = memory(m * n * 4);
    int64_t bytes = 0;
    for (int who = 1; who < contenders; who++) bytes = s->bytes[who](s) > bytes ? s->bytes[who](s) : bytes;
    const work w = {a, b, memory(m * n * 4), memory(bytes), bytes};
    fill(a, m * k, 1);
    fill(b, filled, 2);
    fill(before, m * n, 3);
    printf("shape %s\n", s->name);
    for (int who = 0; who < contenders; who++) {
        memcpy(w.c, before, (size_t)(m * n * 4));
        const double status = s->run[who](s, &w, 1);
        printf("error %s %.3e\n", NAMES[who], status < 0 ? INFINITY : error(s, &w, before));
    }
    timed(s, &w, contenders, seconds, least, most);
    fflush(stdout);
    free(a);
    free(b);
    free(before);
    free(w.c);
    free(w.workspace);
}

int main(int count, char **words)
{
    if (count < 5) return 2;
    const int contenders = strcmp(words[1], "all") ? 1 : CONTENDERS;
    const int most = atoi(words[4]) < ROUNDS ? atoi(words[4]) : ROUNDS;
    openblas_set_num_threads(1);
    printf("core %s\nconfig %s\n", openblas_get_corename(), openblas_get_config());
    for (size_t i = 0; i < sizeof SHAPES / sizeof SHAPES[0]; i++) {
        int wanted = count == 5;
        for (int word = 5; word < count; word++) wanted |= !strcmp(words[word], SHAPES[i].name);
        if (wanted) measure(&SHAPES[i], contenders, atof(words[2]), atoi(words[3]), most);
    }
    return 0;
}
