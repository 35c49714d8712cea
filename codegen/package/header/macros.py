"""The few macros of the file, for what gcc and clang, or C and C++, spell differently; and what its threads need."""

from __future__ import annotations

import re

from codegen.macros import MACROS as SPELLINGS
from codegen.macros import WRAPPING
from microkernels.ctext import INLINE, NOINLINE, UNROLL
from microkernels.dispatch import REST

MACROS = """#if !defined(__GNUC__)
#error "this file needs gcc, clang or a compiler that knows their extensions"
#endif
#if defined(__i386__) && !defined(__SSE__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi" /* it speaks of calls, but those are all inlined */
#endif
#define PFX_RESTRICT __restrict
#define PFX_INLINE static inline __attribute__((always_inline, unused))
#define PFX_NOINLINE static __attribute__((noinline, unused))
#define PFX_UNROLL _Pragma("GCC unroll 32")
""" + WRAPPING.replace("POLY_", "PFX_")

STEPS = f"""/* The steps of a tile through its operands, which one function hands on to the next. */
#define PFX_STEPS {REST}"""

PARALLEL = """#if defined(_OPENMP)
#define PFX_PRAGMA(...) _Pragma(#__VA_ARGS__)
#define PFX_OMP(...) PFX_PRAGMA(omp __VA_ARGS__)
#else
#define PFX_OMP(...)
#endif"""

OPENMP = """#if defined(_OPENMP)
#include <omp.h>
#endif
static inline int64_t pfx_thread(void)
{
#if defined(_OPENMP)
    return (int64_t)omp_get_thread_num();
#else
    return 0;
#endif
}"""

TOKENS = {INLINE: "PFX_INLINE", NOINLINE: "PFX_NOINLINE", UNROLL: "PFX_UNROLL", REST: "PFX_STEPS"}
PATTERNS = (
    (r"\brestrict\b", "PFX_RESTRICT"),
    (r"#pragma omp (.*)", r"PFX_OMP(\1)"),
    (rf"\bPOLY_(?={'|'.join(name.removeprefix('POLY_') for names in SPELLINGS for name in names)}\b)", "PFX_"),
    (r"(\(int64_t\))?\bomp_get_thread_num\(\)", "pfx_thread()"),
)

BOUNDS = """#if defined(PFX_DEBUG)
#include <stdio.h>
#include <stdlib.h>
static inline void pfx_inside(int64_t index, int64_t extent, const char *where, const char *texts, int line)
{
    if (index >= 0 && index < extent) return;
    fprintf(stderr, "%s:%d: %s: PFX_IN(%s) fails: %lld is not from 0 to below %lld\\n", __FILE__, line, where, texts,
                    (long long)index, (long long)extent);
    abort();
}
#define PFX_IN(index, extent) \\
    pfx_inside(index, extent, __func__, #index ", " #extent, __LINE__)
#else
#define PFX_IN(index, extent) ((void)sizeof((index) < (extent)))
#endif"""
"""C text; it needs `int64_t`. If the macro is off, its arguments are not evaluated, but count as used."""

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


def definitions(code: str) -> str:
    """The definitions of the macros that `code` uses."""
    words = set(re.findall(r"PFX_\w+", code))
    parts = {("PFX_STEPS",): STEPS, ("PFX_OMP",): PARALLEL, **SPELLINGS}
    found = [
        text
        for names, text in parts.items()
        if text != WRAPPING and words & {name.replace("POLY_", "PFX_") for name in names}
    ]
    return "\n".join([MACROS, *found]).replace("POLY_", "PFX_")


def replaced(text: str) -> str:
    """Our C text, with the macros in place of what they replace."""
    for plain, macro in TOKENS.items():
        text = text.replace(plain, macro)
    for pattern, macro in PATTERNS:
        text = re.sub(pattern, macro, text)
    return text
