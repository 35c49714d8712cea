"""The macro PFX_IN: an assertion if users define PFX_DEBUG, and nothing otherwise."""

from __future__ import annotations

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
