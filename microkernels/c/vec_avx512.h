/* The vector layer for AVX-512: 16 floats or integers, or 8 doubles. T is the scalar, _px stands for _ps or _pd, _T for the
   pair of both. Integers move as floats do, bit by bit, and wrap around as unsigned ones. */
#include <immintrin.h>
#include <stdint.h>

enum { LANES_T = (int)(64 / sizeof(T)) };
typedef lane_of_T vec_T __attribute__((vector_size(64)));
typedef int_of_T ints_T __attribute__((vector_size(64)));
typedef uint16_t tail_T; /* which lanes of a partial vector are there */

INLINE int64_t least_T(int64_t a, int64_t b) { return a < b ? a : b; }

INLINE tail_T tail_of_T(int64_t lanes) { return (tail_T)((1u << lanes) - 1); }

INLINE vec_T zero_T(void) { return (vec_T)_mm512_setzero_px(); }
INLINE vec_T broadcast_T(T x) { return (vec_T)SET1_512(x); }
INLINE vec_T load_T(const T *p) { return (vec_T)_mm512_loadu_px(p); }
INLINE vec_T load_tail_T(const T *p, tail_T tail) { return (vec_T)_mm512_maskz_loadu_px((MASK)tail, p); }
INLINE void store_T(T *p, vec_T x) { _mm512_storeu_px(p, (RAW_512)x); }
INLINE void store_tail_T(T *p, vec_T x, tail_T tail) { _mm512_mask_storeu_px(p, (MASK)tail, (RAW_512)x); }
INLINE vec_T fma_T(vec_T a, vec_T b, vec_T c) { return FMA_512; }
/* Of floats: as Python chooses, a unless b is less. */
INLINE vec_T min_T(vec_T a, vec_T b) { return (vec_T)_mm512_min_px((RAW_512)b, (RAW_512)a); }
INLINE vec_T max_T(vec_T a, vec_T b) { return (vec_T)_mm512_max_px((RAW_512)b, (RAW_512)a); }
INLINE vec_T abs_T(vec_T x) { return (vec_T)_mm512_andnot_px((RAW_512)broadcast_T((T)-0.0), (RAW_512)x); }
INLINE void hold_T(vec_T *sum, vec_T x) { (void)sum, (void)x; } /* see AVX2 */

INLINE void all_registers_T(void) /* see AVX2 */
{
    __asm__ volatile("" :::
        "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
        "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24",
        "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31");
}
INLINE void unknown_T(int64_t *n) { __asm__("" : "+r"(*n)); } /* see AVX2 */

/* Each step adds the other half of what is left. Results for lanes that are left out are zero: where they are undefined, as
   in _mm512_reduce_add_px, gcc warns of its own header. */
INLINE T total_T(vec_T x)
{
    x += (vec_T)_mm512_maskz_shuffle_f64x2(0xFF, (__m512d)x, (__m512d)x, 0x4E);
    x += (vec_T)_mm512_maskz_shuffle_f64x2(0xFF, (__m512d)x, (__m512d)x, 0xB1);
    x += (vec_T)_mm512_maskz_permute_pd(0xFF, (__m512d)x, 0x55);
    if (LANES_T > 8)
        x += (vec_T)_mm512_maskz_permute_ps(0xFFFF, (__m512)x, 0xB1);
    return x[0];
}

/* The upper half of a vector. */
INLINE void store_upper_T(T *p, vec_T x)
{
    T all[LANES_T];
    store_T(all, x);
    __builtin_memcpy(p, all + LANES_T / 2, sizeof x / 2);
}

/* zip_low is a0 b0 a1 b1 …, zip_high the rest of the same. */
INLINE vec_T zip_low_T(vec_T a, vec_T b)
{
    ints_T from = {0};
    UNROLL
    for (int l = 0; l < LANES_T; l++)
        from[l] = l / 2 + l % 2 * LANES_T;
    return (vec_T)_mm512_permutex2var_px((RAW_512)a, (__m512i)from, (RAW_512)b);
}

INLINE vec_T zip_high_T(vec_T a, vec_T b)
{
    ints_T from = {0};
    UNROLL
    for (int l = 0; l < LANES_T; l++)
        from[l] = LANES_T / 2 + l / 2 + l % 2 * LANES_T;
    return (vec_T)_mm512_permutex2var_px((RAW_512)a, (__m512i)from, (RAW_512)b);
}
