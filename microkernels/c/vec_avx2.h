/* The vector layer for AVX2 with FMA: 8 floats or integers, or 4 doubles. Integers move as floats do, see AVX-512. */
#include <immintrin.h>
#include <stdint.h>

enum { LANES_T = (int)(32 / sizeof(T)) };
typedef lane_of_T vec_T __attribute__((vector_size(32)));
typedef int_of_T ints_T __attribute__((vector_size(32)));
typedef struct {
    __m256i there; /* the sign bit of each lane that is there */
    int64_t lanes;
} tail_T;

INLINE int64_t least_T(int64_t a, int64_t b) { return a < b ? a : b; }

INLINE tail_T tail_of_T(int64_t lanes)
{
    ints_T number = {0};
    for (int l = 0; l < LANES_T; l++)
        number[l] = l;
    const tail_T tail = {(__m256i)(number < (int_of_T)lanes), lanes};
    return tail;
}

INLINE vec_T zero_T(void) { return (vec_T)_mm256_setzero_px(); }
INLINE vec_T broadcast_T(T x) { return (vec_T)SET1_256(x); }
INLINE vec_T load_T(const T *p) { return (vec_T)_mm256_loadu_px((MOVED const *)p); }
INLINE void store_T(T *p, vec_T x) { _mm256_storeu_px((MOVED *)p, (RAW_256)x); }

/* A masked load takes more of the load units than one of half or a quarter of a vector. */
INLINE vec_T load_tail_T(const T *p, tail_T tail)
{
    const int64_t bytes = tail.lanes * (int64_t)sizeof(T);
    if (__builtin_constant_p(bytes) && bytes == 16)
        return (vec_T)_mm256_zextsi128_si256(_mm_loadu_si128((const __m128i *)p));
    if (__builtin_constant_p(bytes) && bytes == 8)
        return (vec_T)_mm256_zextsi128_si256(_mm_loadl_epi64((const __m128i *)p));
    return (vec_T)_mm256_maskload_px((MOVED const *)p, tail.there);
}

/* By halves, because a masked store takes up to 40 instructions on AMD's CPUs. */
INLINE void store_tail_T(T *p, vec_T x, tail_T tail)
{
    __m128i part = _mm256_castsi256_si128((__m256i)x);
    if (tail.lanes == LANES_T) {
        store_T(p, x);
        return;
    }
    if (tail.lanes & LANES_T / 2) {
        _mm_storeu_si128((__m128i *)p, part);
        part = _mm256_extracti128_si256((__m256i)x, 1);
        p += LANES_T / 2;
    }
    if (LANES_T == 8 && tail.lanes & 2) {
        _mm_storel_epi64((__m128i *)p, part);
        part = _mm_unpackhi_epi64(part, part);
        p += 2;
    }
    if (tail.lanes & 1)
        __builtin_memcpy(p, &part, sizeof(T));
}

INLINE vec_T fma_T(vec_T a, vec_T b, vec_T c) { return FMA_256; }
/* Of floats: as Python chooses, a unless b is less. */
INLINE vec_T min_T(vec_T a, vec_T b) { return (vec_T)_mm256_min_px((RAW_256)b, (RAW_256)a); }
INLINE vec_T max_T(vec_T a, vec_T b) { return (vec_T)_mm256_max_px((RAW_256)b, (RAW_256)a); }
INLINE vec_T abs_T(vec_T x) { return (vec_T)_mm256_andnot_px((RAW_256)broadcast_T((T)-0.0), (RAW_256)x); }

/* clang spills sums where they fill nearly all registers, unless each must be in one together with the x of its product. */
INLINE void hold_T(vec_T *sum, vec_T x)
{
#if defined(__clang__)
    __asm__("" : "+x"(*sum) : "x"(x));
#else
    (void)sum, (void)x;
#endif
}

/* No vector that is computed before stays in a register: the compiler would move constants of other loops out of all loops, keep
   them in registers through this one, and sums in memory for want of these registers. */
INLINE void all_registers_T(void)
{
    __asm__ volatile("" :::
        "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
        "xmm13", "xmm14", "xmm15");
}

/* A number that the compiler doesn't know: it would write a loop of a few known iterations out whole, and keep sums in memory
   for want of the registers that this takes. */
INLINE void unknown_T(int64_t *n) { __asm__("" : "+r"(*n)); }

INLINE T total_T(vec_T x)
{
    x += (vec_T)_mm256_permute2f128_px((RAW_256)x, (RAW_256)x, 1);
    UNROLL
    for (int l = LANES_T / 2; l > 1; l /= 2)
        x = (vec_T)HADD_256;
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
    const RAW_256 x = (RAW_256)a, y = (RAW_256)b;
    return (vec_T)_mm256_permute2f128_px(_mm256_unpacklo_px(x, y), _mm256_unpackhi_px(x, y), 0x20);
}

INLINE vec_T zip_high_T(vec_T a, vec_T b)
{
    const RAW_256 x = (RAW_256)a, y = (RAW_256)b;
    return (vec_T)_mm256_permute2f128_px(_mm256_unpacklo_px(x, y), _mm256_unpackhi_px(x, y), 0x31);
}
