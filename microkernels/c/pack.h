/* Packing into a panel: dst[k * width + lane] = src[lane's offset + k2*s2 + k1*s1 + k0*s0], k counting (k2, k1, k0) in order;
   lanes from `lanes` up to `width` become zero. Lane l lies at offsets[l] or, where offsets is null, at l * ls. */

enum { PACK_AHEAD_T = 8 }; /* rows to prefetch ahead, for strides that the hardware does not follow */

/* A block of a vector's lanes by a vector of k, turned in registers by zips of the halves. */
INLINE void transpose_T(vec_T *x)
{
    UNROLL
    for (int64_t step = 1; step < LANES_T; step *= 2) {
        vec_T y[LANES_T];
        UNROLL
        for (int64_t i = 0; i < LANES_T / 2; i++) {
            y[2 * i] = zip_low_T(x[i], x[i + LANES_T / 2]);
            y[2 * i + 1] = zip_high_T(x[i], x[i + LANES_T / 2]);
        }
        UNROLL
        for (int64_t i = 0; i < LANES_T; i++)
            x[i] = y[i];
    }
}

/* Lanes next to each other: rows are copied by vectors. */
INLINE void pack_rows_T(T *dst, int64_t width, int64_t lanes, const T *src, int64_t K, int64_t s0)
{
    for (int64_t k = 0; k < K; k++, src += s0, dst += width) {
        int64_t j = 0;
        for (; j + LANES_T <= lanes; j += LANES_T) {
            __builtin_prefetch(src + PACK_AHEAD_T * s0 + j, 0, 3);
            store_T(dst + j, load_T(src + j));
        }
        if (j < width) {
            vec_T x = j < lanes ? load_tail_T(src + j, tail_of_T(lanes - j)) : zero_T();
            for (; j + LANES_T <= width; j += LANES_T, x = zero_T())
                store_T(dst + j, x);
            if (j < width)
                store_tail_T(dst + j, x, tail_of_T(width - j));
        }
    }
}

/* k is contiguous in each lane: blocks are transposed in registers. */
INLINE void pack_columns_T(T *dst, int64_t width, int64_t lanes, const T *src, int64_t ls, const int64_t *offsets, int64_t K)
{
    for (int64_t l = 0; l < width; l += LANES_T) {
        const int64_t here = lanes - l < LANES_T ? lanes - l : LANES_T;
        const int64_t there = width - l < LANES_T ? width - l : LANES_T;
        const T *from[LANES_T];
        for (int64_t i = 0; i < LANES_T; i++)
            from[i] = i < here ? src + (offsets ? offsets[l + i] : (l + i) * ls) : 0;
        for (int64_t k = 0; k < K; k += LANES_T) {
            const int64_t some = K - k < LANES_T ? K - k : LANES_T;
            vec_T x[LANES_T];
            UNROLL
            for (int64_t i = 0; i < LANES_T; i++)
                x[i] = i >= here ? zero_T() : some == LANES_T ? load_T(from[i] + k) : load_tail_T(from[i] + k, tail_of_T(some));
            transpose_T(x);
            UNROLL
            for (int64_t i = 0; i < LANES_T; i++) {
                T *to = dst + (k + i) * width + l;
                if (i < some) {
                    if (there == LANES_T)
                        store_T(to, x[i]);
                    else
                        store_tail_T(to, x[i], tail_of_T(there));
                }
            }
        }
    }
}

/* Nothing is contiguous: element by element. */
INLINE void pack_elements_T(T *dst, int64_t width, int64_t lanes, const T *src, int64_t ls, const int64_t *offsets,
                            int64_t K, int64_t s0)
{
    for (int64_t k = 0; k < K; k++, src += s0, dst += width) {
        for (int64_t l = 0; l < lanes; l++)
            dst[l] = src[offsets ? offsets[l] : l * ls];
        for (int64_t l = lanes; l < width; l++)
            dst[l] = 0;
    }
}

/* Lanes at a constant distance ls. */
INLINE void pack_T(T *dst, int64_t width, int64_t lanes, const T *src, int64_t ls,
                   int64_t K, int64_t s0, int64_t K1, int64_t s1, int64_t K2, int64_t s2)
{
    for (int64_t k2 = 0; k2 < K2; k2++) {
        for (int64_t k1 = 0; k1 < K1; k1++, dst += K * width) {
            const T *at = src + k2 * s2 + k1 * s1;
            if (ls == 1)
                pack_rows_T(dst, width, lanes, at, K, s0);
            else if (s0 == 1)
                pack_columns_T(dst, width, lanes, at, ls, 0, K);
            else
                pack_elements_T(dst, width, lanes, at, ls, 0, K, s0);
        }
    }
}

/* Lanes anywhere: lane l is at offsets[l]. */
INLINE void pack_gather_T(T *dst, int64_t width, int64_t lanes, const T *src, const int64_t *offsets,
                          int64_t K, int64_t s0, int64_t K1, int64_t s1, int64_t K2, int64_t s2)
{
    for (int64_t k2 = 0; k2 < K2; k2++) {
        for (int64_t k1 = 0; k1 < K1; k1++, dst += K * width) {
            const T *at = src + k2 * s2 + k1 * s1;
            if (s0 == 1)
                pack_columns_T(dst, width, lanes, at, 0, offsets, K);
            else
                pack_elements_T(dst, width, lanes, at, 0, offsets, K, s0);
        }
    }
}
