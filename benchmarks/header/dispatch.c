/* The smallest product there is by four ways into a header, in turn.

   usage: PROGRAM SECONDS LEAST MOST

   calls.h is made for the header at hand: it has the implementation, and DIRECT, CHOSEN, GIVEN and ALLOCATING are a
   call each: of the kernel itself, by the choice of the kernel, and of both public functions. On standard output: `shape 1x1x1`, and
   for each way `times NAME S S S...` in seconds a call. */

#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "calls.h"

/* Calls take turns with so many results: calls that wait for each other's would hide what else there is to do. */
enum { RESULTS = 64, WAYS = 4, CALLS = 320 * RESULTS, ROUNDS = 1000 };

/* Read anew for each call, as a caller's arguments are. */
static int64_t M, K, N;
static float *A, *B, *C;
static float results[RESULTS];
static char W[1 << 16]; /* the workspace */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#define WAY(NAME, CALL)                                        \
    static __attribute__((noinline)) double NAME(void)         \
    {                                                          \
        const double start = now();                            \
        for (int64_t turn = 0; turn < CALLS; turn++) {         \
            C = results + turn % RESULTS;                      \
            __asm__ volatile("" ::: "memory");                 \
            CALL;                                              \
        }                                                      \
        return (now() - start) / CALLS;                        \
    }

WAY(direct, DIRECT)
WAY(chosen, CHOSEN)
WAY(given, GIVEN)
WAY(allocating, ALLOCATING)

/* Whether every call did its work once. */
static int done(void)
{
    int right = 1;
    for (int i = 0; i < RESULTS; i++) {
        right &= results[i] == 6.0f * (CALLS / RESULTS);
        results[i] = 0;
    }
    return right;
}

int main(int count, char **words)
{
    static double samples[WAYS][ROUNDS];
    static double (*const ways[WAYS])(void) = {direct, chosen, given, allocating};
    static const char *const names[WAYS] = {"direct", "chosen", "given", "allocating"};
    float a[1] = {2}, b[1] = {3};
    if (count != 4) return 2;
    M = K = N = atoi(words[2]) > 0; /* 1, which the compiler doesn't know */
    A = a, B = b;
    const int least = atoi(words[2]), most = atoi(words[3]) < ROUNDS ? atoi(words[3]) : ROUNDS;
    for (int way = 0; way < WAYS; way++) {
        ways[way]();
        if (!done()) {
            fprintf(stderr, "%s: the products are wrong", names[way]);
            return 3;
        }
    }
    const double start = now();
    int round = 0;
    while (round < most && (round < least || now() - start < atof(words[1]))) {
        for (int place = 0; place < WAYS; place++) {
            const int way = (place + round) % WAYS;
            samples[way][round] = ways[way]();
        }
        round++;
    }
    printf("shape 1x1x1\n");
    for (int way = 0; way < WAYS; way++) {
        printf("times %s", names[way]);
        for (int i = 0; i < round; i++) printf(" %.6e", samples[way][i]);
        printf("\n");
    }
    return 0;
}
