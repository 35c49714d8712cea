"""An instruction set: SSE4.1 on any x86-64 CPU of the last fifteen years, with its vector layer and register tiles.

The layer is written once for a scalar `T`; `_T` becomes `_f32_sse4` or `_f64_sse4`, and `_px` becomes `_ps` or `_pd`.
There is no fused multiply-add, and there are no masks: poly adds functions for partial vectors.
"""

from __future__ import annotations

from poly.extending import ISA

LAYER = """
#include <stdint.h>
#include <smmintrin.h>

enum { LANES_T = (int)(16 / sizeof(T)) };
typedef T vec_T __attribute__((vector_size(16)));

INLINE int64_t least_T(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE vec_T zero_T(void) { return (vec_T)_mm_setzero_px(); }
INLINE vec_T broadcast_T(T x) { return (vec_T)_mm_set1_px(x); }
INLINE vec_T load_T(const T *p) { return (vec_T)_mm_loadu_px(p); }
INLINE void store_T(T *p, vec_T x) { _mm_storeu_px(p, x); }
INLINE vec_T fma_T(vec_T a, vec_T b, vec_T c) { return a * b + c; }
INLINE void hold_T(vec_T *sum, vec_T x) { (void)sum, (void)x; }
INLINE void all_registers_T(void) {}
INLINE void unknown_T(int64_t *n) { (void)n; }

INLINE T total_T(vec_T x)
{
    T total = x[0];
    UNROLL
    for (int l = 1; l < LANES_T; l++)
        total += x[l];
    return total;
}

INLINE void store_upper_T(T *p, vec_T x)
{
    T all[LANES_T];
    store_T(all, x);
    __builtin_memcpy(p, all + LANES_T / 2, sizeof x / 2);
}

INLINE vec_T zip_low_T(vec_T a, vec_T b) { return (vec_T)_mm_unpacklo_px(a, b); }
INLINE vec_T zip_high_T(vec_T a, vec_T b) { return (vec_T)_mm_unpackhi_px(a, b); }
"""

SSE4 = ISA(
    "sse4",
    vector_bytes=16,
    registers=16,
    flags=("-msse4.1",),
    machine="x86_64",
    cpu_flags=("sse4_1",),
    layer=LAYER,
    tiles=((6, 2), (4, 2), (12, 1)),
)
