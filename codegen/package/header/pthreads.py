"""Parallel loops on POSIX threads: created for a loop, given chunks of its iterations, and joined."""

from __future__ import annotations

PTHREADS = """#include <pthread.h>

/* Runs the iterations from number `first` to before number `past` of a loop; `call` has the loop's arguments. */
typedef void (*pfx_chunk)(void *call, int64_t thread, int64_t first, int64_t past);

typedef struct {
    pfx_chunk run;
    void *call;
    int64_t thread, first, past;
} pfx_share;

static void *pfx_start(void *share)
{
    const pfx_share *const own = (const pfx_share *)share;
    own->run(own->call, own->thread, own->first, own->past);
    return NULL;
}

/* Share the iterations of a loop out to threads, as evenly as they come. The caller is thread 0, and does the work of a
   thread that cannot be made. */
static void pfx_parallel(int64_t threads, int64_t iterations, pfx_chunk run, void *call)
{
    pthread_t others[PFX_MAX_THREADS];
    pfx_share shares[PFX_MAX_THREADS];
    int made[PFX_MAX_THREADS];
    const int64_t most = iterations < PFX_MAX_THREADS ? iterations : PFX_MAX_THREADS;
    const int64_t team = threads < most ? threads : most;
    if (iterations < 1) return;
    if (team < 2) {
        run(call, 0, 0, iterations);
        return;
    }
    for (int64_t t = 0, first = 0; t < team; t++) {
        const int64_t past = first + iterations / team + (t < iterations % team);
        const pfx_share share = {run, call, t, first, past};
        shares[t] = share;
        made[t] = t > 0 && pthread_create(&others[t], NULL, pfx_start, &shares[t]) == 0;
        first = past;
    }
    for (int64_t t = 0; t < team; t++)
        if (!made[t]) pfx_start(&shares[t]);
    for (int64_t t = 1; t < team; t++)
        if (made[t]) pthread_join(others[t], NULL);
}"""
"""The C text of `pfx_parallel`, which needs NULL, int64_t and PFX_MAX_THREADS. It allocates and keeps nothing."""
