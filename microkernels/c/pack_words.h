/* Copy an operand into a panel of words, each with STEPS neighbouring steps of a lane, the first in its lowest bits.

   dst[k2*p2 + k1*p1 + w*p0 + lane] = src[lane's offset + k2*s2 + k1*s1 + k*s0] for STEPS*w <= k < STEPS*w + STEPS

   Steps from K on, and lanes from `lanes` up to `width`, add nothing to a sum. Otherwise as in pack.h. */
enum { BITS_T = (int)(8 * sizeof(T) / STEPS) };
typedef E panel_T __attribute__((vector_size(sizeof(vec_T))));
typedef S along_T __attribute__((vector_size(LANES_T * STEPS * sizeof(S))));
typedef S few_T __attribute__((vector_size(LANES_T * sizeof(S))));
typedef int16_t row_T __attribute__((vector_size(LANES_T * 2)));
typedef uint16_t halves_T __attribute__((vector_size(LANES_T * 2)));
typedef uint32_t bits_T __attribute__((vector_size(LANES_T * 4)));

/* A word of up to STEPS steps. */
INLINE T word_T(const S *p, int64_t s0, int64_t steps)
{
    uint32_t word = FLIP;
    UNROLL
    for (int64_t i = 0; i < STEPS; i++)
        if (i < steps)
            word ^= ((uint32_t)(E)p[i * s0] & MASK_E) << i * BITS_T;
    T x;
    __builtin_memcpy(&x, &word, sizeof x);
    return x;
}

/* One step of neighbouring lanes, each with 16 bits: compilers know how to widen by two, and take lanes apart to widen by
   four. */
INLINE halves_T step_T(const S *p, int there)
{
    few_T x = {0};
    if (there)
        __builtin_memcpy(&x, p, sizeof x);
    return (halves_T)__builtin_convertvector(x, row_T);
}

/* Words of neighbouring lanes, which are contiguous. */
INLINE vec_T words_across_T(const S *p, int64_t s0, int64_t steps)
{
    bits_T words = {0};
    words ^= FLIP;
    UNROLL
    for (int64_t i = 0; i < 2; i++) {
        halves_T x = step_T(p + i * (STEPS / 2) * s0, i * (STEPS / 2) < steps) & (uint16_t)MASK_E;
        if (STEPS == 4)
            x |= step_T(p + (2 * i + 1) * s0, 2 * i + 1 < steps) << 8;
        words ^= __builtin_convertvector(x, bits_T) << 16 * i;
    }
    return (vec_T)words;
}

/* Neighbouring words of a lane, whose steps are contiguous. */
INLINE vec_T words_along_T(const S *p)
{
    along_T x;
    __builtin_memcpy(&x, p, sizeof x);
    return (vec_T)((bits_T)__builtin_convertvector(x, panel_T) ^ FLIP);
}

/* Lanes next to each other. */
INLINE void pack_rows_T(T *dst, int64_t width, int64_t lanes, const S *src, int64_t K, int64_t s0, int64_t p0)
{
    for (int64_t k = 0; k < K; k += STEPS, src += STEPS * s0, dst += p0) {
        const int64_t steps = least_T(K - k, STEPS);
        int64_t l = 0;
        if (steps == STEPS)
            for (; l + LANES_T <= lanes; l += LANES_T)
                store_T(dst + l, words_across_T(src + l, s0, STEPS));
        for (; l + LANES_T <= lanes; l += LANES_T)
            store_T(dst + l, words_across_T(src + l, s0, steps));
        for (; l < lanes; l++)
            dst[l] = word_T(src + l, s0, steps);
        for (; l < width; l++)
            dst[l] = 0;
    }
}

/* A panel of at most half a vector: half as many rows are turned, and each vector then holds two words of each lane. What it
   spills into the next row is written later. */
INLINE void pack_half_T(T *dst, int64_t width, int64_t here, const S *const *from, int64_t k)
{
    enum { HALF = LANES_T / 2 };
    vec_T x[LANES_T];
    UNROLL
    for (int64_t i = 0; i < HALF; i++)
        x[i] = i < here ? words_along_T(from[i] + k) : zero_T();
    transpose_T(x, HALF);
    UNROLL
    for (int64_t i = 0; i < HALF; i++) {
        store_T(dst + 2 * i * width, x[i]);
        if (width < HALF)
            store_upper_T(dst + (2 * i + 1) * width, x[i]);
    }
}

/* Lanes at a distance ls, or at offsets; where the steps are contiguous, blocks of words are turned in registers. */
INLINE void pack_columns_T(T *dst, int64_t width, int64_t lanes, const S *src, int64_t ls, const int64_t *offsets,
                           int64_t K, int64_t s0, int64_t p0)
{
    const int64_t roomy = s0 == 1 && p0 == width && 2 * width <= LANES_T ? K / STEPS - spill_T(width) : 0;
    for (int64_t l = 0; l < width; l += LANES_T) {
        const int64_t here = least_T(lanes - l, LANES_T);
        const int64_t there = least_T(width - l, LANES_T);
        const S *from[LANES_T];
        for (int64_t i = 0; i < LANES_T; i++)
            from[i] = i < here ? src + (offsets ? offsets[l + i] : (l + i) * ls) : src;
        int64_t k = 0;
        for (; roomy >= LANES_T && k + LANES_T * STEPS <= roomy * STEPS; k += LANES_T * STEPS)
            pack_half_T(dst + k / STEPS * width, width, here, from, k);
        for (; s0 == 1 && k + LANES_T * STEPS <= K; k += LANES_T * STEPS) {
            vec_T x[LANES_T];
            UNROLL
            for (int64_t i = 0; i < LANES_T; i++)
                x[i] = i < here ? words_along_T(from[i] + k) : zero_T();
            transpose_T(x, LANES_T);
            UNROLL
            for (int64_t i = 0; i < LANES_T; i++) {
                T *to = dst + (k / STEPS + i) * p0 + l;
                if (there == LANES_T)
                    store_T(to, x[i]);
                else
                    store_tail_T(to, x[i], tail_of_T(there));
            }
        }
        for (; k < K; k += STEPS) {
            const int64_t steps = least_T(K - k, STEPS);
            for (int64_t i = 0; i < there; i++)
                dst[k / STEPS * p0 + l + i] = i >= here ? 0 : steps == STEPS && s0 == 1 ? word_T(from[i] + k, 1, STEPS)
                                                                                        : word_T(from[i] + k * s0, s0, steps);
        }
    }
}

/* The row before the first: what flipped sign bits change in the other operand's sums with this panel. */
HEADED INLINE void pack_head_T(T *dst, int64_t width, int64_t words)
HEADED {
HEADED     const vec_T flip = broadcast_T((T)OTHER_FLIP);
HEADED     for (int64_t l = 0; l < width; l += LANES_T) {
HEADED         vec_T sum = zero_T();
HEADED         for (int64_t w = 0; w < words; w++)
HEADED             sum = multiply_add_D(flip, load_T(dst + w * width + l), sum);
HEADED         store_T(dst - width + l, zero_T() - sum);
HEADED     }
HEADED }
HEADED
/* Lanes next to each other. */
INLINE void pack_across_T(T *dst, int64_t width, int64_t lanes, const S *src,
                          int64_t K, int64_t s0, int64_t p0, int64_t K1, int64_t s1, int64_t p1,
                          int64_t K2, int64_t s2, int64_t p2)
{
    for (int64_t k2 = 0; k2 < K2; k2++)
        for (int64_t k1 = 0; k1 < K1; k1++)
            pack_rows_T(dst + k2 * p2 + k1 * p1, width, lanes, src + k2 * s2 + k1 * s1, K, s0, p0);
    HEADED pack_head_T(dst, width, K2 * K1 * ((K + STEPS - 1) / STEPS));
}

/* Lanes at a constant distance ls, each contiguous along k. */
INLINE void pack_along_T(T *dst, int64_t width, int64_t lanes, const S *src, int64_t ls,
                         int64_t K, int64_t p0, int64_t K1, int64_t s1, int64_t p1,
                         int64_t K2, int64_t s2, int64_t p2)
{
    for (int64_t k2 = 0; k2 < K2; k2++)
        for (int64_t k1 = 0; k1 < K1; k1++)
            pack_columns_T(dst + k2 * p2 + k1 * p1, width, lanes, src + k2 * s2 + k1 * s1, ls, 0, K, 1, p0);
    HEADED pack_head_T(dst, width, K2 * K1 * ((K + STEPS - 1) / STEPS));
}

/* Lanes at a constant distance ls. */
INLINE void pack_T(T *dst, int64_t width, int64_t lanes, const S *src, int64_t ls,
                   int64_t K, int64_t s0, int64_t p0, int64_t K1, int64_t s1, int64_t p1,
                   int64_t K2, int64_t s2, int64_t p2)
{
    for (int64_t k2 = 0; k2 < K2; k2++)
        for (int64_t k1 = 0; k1 < K1; k1++)
            if (ls == 1)
                pack_rows_T(dst + k2 * p2 + k1 * p1, width, lanes, src + k2 * s2 + k1 * s1, K, s0, p0);
            else
                pack_columns_T(dst + k2 * p2 + k1 * p1, width, lanes, src + k2 * s2 + k1 * s1, ls, 0, K, s0, p0);
    HEADED pack_head_T(dst, width, K2 * K1 * ((K + STEPS - 1) / STEPS));
}

/* Lanes anywhere: lane l is at offsets[l]. */
INLINE void pack_gather_T(T *dst, int64_t width, int64_t lanes, const S *src, const int64_t *offsets,
                          int64_t K, int64_t s0, int64_t p0, int64_t K1, int64_t s1, int64_t p1,
                          int64_t K2, int64_t s2, int64_t p2)
{
    for (int64_t k2 = 0; k2 < K2; k2++)
        for (int64_t k1 = 0; k1 < K1; k1++)
            pack_columns_T(dst + k2 * p2 + k1 * p1, width, lanes, src + k2 * s2 + k1 * s1, 0, offsets, K, s0, p0);
    HEADED pack_head_T(dst, width, K2 * K1 * ((K + STEPS - 1) / STEPS));
}
