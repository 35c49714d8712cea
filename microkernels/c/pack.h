/* Packing into a panel: dst[k2*p2 + k1*p1 + k0*p0 + lane] = src[lane's offset + k2*s2 + k1*s1 + k0*s0] for k0 < K, k1 < K1, k2 < K2;
   lanes from `lanes` up to `width` become zero. Lane l lies at l * ls, or where the lanes are anywhere at offsets[l]. The pitches p0,
   p1, p2 are multiples of the width, so the loops over the source can go the way in which it lies, whatever the panel's order.
   S is the type of the source, which is converted. */

enum {
    PACK_AHEAD_T = 16, /* rows to prefetch ahead into L2, since the hardware does not follow long strides */
    PACK_CHUNK_T = 64, /* lanes whose runs are found at a time */
};

/* Up to a vector of lanes next to each other in the source and in the panel. `whole` says that a whole vector fits into
   the panel's row there: the lanes behind the run are written later. */
typedef struct {
    int64_t lane, offset, length;
    int whole;
    tail_T tail;
} run_T;

INLINE void pack_zeros_T(TO_SPACE T *dst, int64_t width, int64_t lanes)
{
    for (int64_t l = lanes; l < width; l++)
        dst[l] = 0;
}

/* A partial vector of a panel's row may be stored whole where rows follow that are written later: `spill` of them. */
INLINE int64_t spill_T(int64_t width) { return width > 0 ? (LANES_T + width - 1) / width : 0; }

/* Lanes next to each other: rows are copied by vectors. */
INLINE void pack_rows_T(TO_SPACE T *dst, int64_t width, int64_t lanes, GLOBAL const S *src, int64_t K, int64_t s0,
                        int64_t p0)
{
    const tail_T tail = tail_of_T((lanes - 1) % LANES_T + 1);
    const int64_t roomy = p0 == width ? K - spill_T(width) : 0;
    for (int64_t k = 0; k < K; k++, src += s0, dst += p0) {
        int64_t l = 0;
        for (; l + LANES_T <= lanes; l += LANES_T) {
            __builtin_prefetch(src + PACK_AHEAD_T * s0 + l, 0, 2);
            store_T(dst + l, get_S_T(src + l));
        }
        if (l < lanes) {
            __builtin_prefetch(src + PACK_AHEAD_T * s0 + l, 0, 2);
            const vec_T x = get_tail_S_T(src + l, tail);
            if (k < roomy)
                store_T(dst + l, x);
            else
                store_tail_T(dst + l, x, tail);
        }
        pack_zeros_T(dst, width, lanes);
    }
}

/* k is contiguous in each lane: blocks of a vector of lanes by a vector of k are turned. `there` lanes of the panel are
   written, `here` of them from the source; `some` are the steps of k. Whole blocks have constants there. */
INLINE void pack_block_T(TO_SPACE T *dst, int64_t pitch, int64_t there, int64_t here, GLOBAL const S *const *from,
                         int64_t k, int64_t some, int roomy)
{
    vec_T x[LANES_T];
    UNROLL
    for (int64_t i = 0; i < LANES_T; i++) {
        if (i >= here)
            x[i] = zero_T();
        else
            x[i] = some == LANES_T ? get_S_T(from[i] + k) : get_tail_S_T(from[i] + k, tail_of_T(some));
    }
    transpose_T(x, LANES_T);
    UNROLL
    for (int64_t i = 0; i < LANES_T; i++) {
        if (i >= some)
            continue; /* clang unrolls no loop that may end early */
        if (there == LANES_T || roomy)
            store_T(dst + (k + i) * pitch, x[i]);
        else
            store_tail_T(dst + (k + i) * pitch, x[i], tail_of_T(there));
    }
}

/* A panel of at most half a vector: half as many rows are turned, and each vector then holds two steps of k. */
INLINE void pack_narrow_T(TO_SPACE T *dst, int64_t width, int64_t here, GLOBAL const S *const *from, int64_t k)
{
    enum { HALF = LANES_T / 2 };
    vec_T x[LANES_T];
    UNROLL
    for (int64_t i = 0; i < HALF; i++)
        x[i] = i < here ? get_S_T(from[i] + k) : zero_T();
    transpose_T(x, HALF);
    UNROLL
    for (int64_t i = 0; i < HALF; i++) {
        TO_SPACE T *to = dst + (k + 2 * i) * width;
        store_T(to, x[i]);
        if (width < HALF)
            store_upper_T(to + width, x[i]);
    }
}

/* Vectors of lanes go from the last to the first, so that what a roomy store spills into the next row is written after. */
INLINE void pack_columns_T(TO_SPACE T *dst, int64_t width, int64_t lanes, GLOBAL const S *src, int64_t ls,
                           const int64_t *offsets, int64_t K, int64_t p0)
{
    const int64_t roomy = p0 == width ? K - spill_T(width) : 0;
    for (int64_t l = (width - 1) / LANES_T * LANES_T; l >= 0; l -= LANES_T) {
        const int64_t here = least_T(lanes - l, LANES_T);
        const int64_t there = least_T(width - l, LANES_T);
        GLOBAL const S *from[LANES_T];
        for (int64_t i = 0; i < LANES_T; i++)
            from[i] = i < here ? src + (offsets ? offsets[l + i] : (l + i) * ls) : src;
        int64_t k = 0;
        for (; k + LANES_T <= roomy; k += LANES_T)
            if (2 * width <= LANES_T)
                pack_narrow_T(dst, width, here, from, k);
            else
                pack_block_T(dst + l, p0, there, here, from, k, LANES_T, 1);
        for (; k + LANES_T <= K; k += LANES_T)
            pack_block_T(dst + l, p0, there, here, from, k, LANES_T, 0);
        if (k < K)
            pack_block_T(dst + l, p0, there, here, from, k, K - k, 0);
    }
}

/* The runs of consecutive offsets among `lanes` lanes, in a row with place for `room` of them: their number. */
INLINE int64_t find_runs_T(run_T *runs, int64_t lanes, int64_t room, const int64_t *offsets)
{
    int64_t count = 0;
    for (int64_t l = 0, length; l < lanes; l += length, count++) {
        length = 1;
        while (l + length < lanes && length < LANES_T && offsets[l + length] == offsets[l] + length)
            length++;
        const run_T run = {l, offsets[l], length, l + LANES_T <= room, tail_of_T(length)};
        runs[count] = run;
    }
    return count;
}

/* One step of lanes in runs. Where the row is `roomy`, what the last vector spills into the next one is written later. */
INLINE void pack_run_row_T(TO_SPACE T *to, GLOBAL const S *from, const run_T *runs, int64_t count, int roomy,
                           int64_t ahead)
{
    for (int64_t r = 0; r < count; r++) {
        GLOBAL const S *at = from + runs[r].offset;
        if (ahead)
            __builtin_prefetch(at + ahead, 0, 2);
        const vec_T x = runs[r].length == LANES_T ? get_S_T(at) : get_tail_S_T(at, runs[r].tail);
        if (roomy || runs[r].whole)
            store_T(to + runs[r].lane, x);
        else
            store_tail_T(to + runs[r].lane, x, runs[r].tail);
    }
}

/* Lanes anywhere: runs of them are copied by vectors, or where there are none, element by element. */
INLINE void pack_runs_T(TO_SPACE T *dst, int64_t width, int64_t lanes, GLOBAL const S *src, const int64_t *offsets,
                        int64_t K, int64_t s0, int64_t p0, int64_t K1, int64_t s1, int64_t p1,
                        int64_t K2, int64_t s2, int64_t p2)
{
    const int in_order = p0 == width && (K1 == 1 || p1 == K * p0) && (K2 == 1 || p2 == K1 * K * p0);
    const int64_t ahead = K > PACK_AHEAD_T ? PACK_AHEAD_T * s0 : 0;
    for (int64_t l = 0; l < lanes; l += PACK_CHUNK_T) {
        const int64_t chunk = least_T(lanes - l, PACK_CHUNK_T);
        run_T runs[PACK_CHUNK_T];
        const int64_t count = find_runs_T(runs, chunk, width - l, offsets + l);
        int64_t roomy = in_order && lanes <= PACK_CHUNK_T ? K2 * K1 * K - spill_T(width) : 0;
        for (int64_t k2 = 0; k2 < K2; k2++)
            for (int64_t k1 = 0; k1 < K1; k1++)
                for (int64_t k = 0; k < K; k++, roomy--) {
                    TO_SPACE T *to = dst + k2 * p2 + k1 * p1 + k * p0;
                    GLOBAL const S *from = src + k2 * s2 + k1 * s1 + k * s0;
                    if (2 * count > chunk)
                        for (int64_t i = l; i < l + chunk; i++)
                            to[i] = one_S_T(from[offsets[i]]);
                    else
                        pack_run_row_T(to + l, from, runs, count, roomy > 0, ahead);
                    pack_zeros_T(to, width, lanes);
                }
    }
}

/* Whether it takes less time to turn blocks of K steps next to each other than to copy each step's runs: a block costs
   about as much as two runs a step. */
INLINE int turns_T(int64_t lanes, const int64_t *offsets, int64_t K)
{
    run_T runs[PACK_CHUNK_T];
    const int64_t first = least_T(lanes, PACK_CHUNK_T);
    const int64_t blocks = ((first + LANES_T - 1) / LANES_T) * ((K + LANES_T - 1) / LANES_T);
    return find_runs_T(runs, first, first, offsets) * K > 2 * LANES_T * blocks;
}

/* Nothing is contiguous: element by element, along k where its steps are the shorter ones. */
INLINE void pack_elements_T(TO_SPACE T *dst, int64_t width, int64_t lanes, GLOBAL const S *src, int64_t ls, int64_t K,
                            int64_t s0, int64_t p0)
{
    if (s0 < ls)
        for (int64_t l = 0; l < lanes; l++)
            for (int64_t k = 0; k < K; k++)
                dst[k * p0 + l] = one_S_T(src[l * ls + k * s0]);
    else
        for (int64_t k = 0; k < K; k++)
            for (int64_t l = 0; l < lanes; l++)
                dst[k * p0 + l] = one_S_T(src[l * ls + k * s0]);
    for (int64_t k = 0; k < K; k++)
        pack_zeros_T(dst + k * p0, width, lanes);
}

/* Lanes next to each other. */
INLINE void pack_across_T(TO_SPACE T *dst, int64_t width, int64_t lanes, GLOBAL const S *src,
                          int64_t K, int64_t s0, int64_t p0, int64_t K1, int64_t s1, int64_t p1,
                          int64_t K2, int64_t s2, int64_t p2)
{
    for (int64_t k2 = 0; k2 < K2; k2++)
        for (int64_t k1 = 0; k1 < K1; k1++)
            pack_rows_T(dst + k2 * p2 + k1 * p1, width, lanes, src + k2 * s2 + k1 * s1, K, s0, p0);
}

/* Lanes at a constant distance ls, each contiguous along k. */
INLINE void pack_along_T(TO_SPACE T *dst, int64_t width, int64_t lanes, GLOBAL const S *src, int64_t ls,
                         int64_t K, int64_t p0, int64_t K1, int64_t s1, int64_t p1,
                         int64_t K2, int64_t s2, int64_t p2)
{
    for (int64_t k2 = 0; k2 < K2; k2++)
        for (int64_t k1 = 0; k1 < K1; k1++)
            pack_columns_T(dst + k2 * p2 + k1 * p1, width, lanes, src + k2 * s2 + k1 * s1, ls, 0, K, p0);
}

/* Lanes at a constant distance ls. */
INLINE void pack_T(TO_SPACE T *dst, int64_t width, int64_t lanes, GLOBAL const S *src, int64_t ls,
                   int64_t K, int64_t s0, int64_t p0, int64_t K1, int64_t s1, int64_t p1,
                   int64_t K2, int64_t s2, int64_t p2)
{
    if (ls == 1)
        pack_across_T(dst, width, lanes, src, K, s0, p0, K1, s1, p1, K2, s2, p2);
    else if (s0 == 1)
        pack_along_T(dst, width, lanes, src, ls, K, p0, K1, s1, p1, K2, s2, p2);
    else
        for (int64_t k2 = 0; k2 < K2; k2++)
            for (int64_t k1 = 0; k1 < K1; k1++)
                pack_elements_T(dst + k2 * p2 + k1 * p1, width, lanes, src + k2 * s2 + k1 * s1, ls, K, s0, p0);
}

/* Lanes anywhere: lane l is at offsets[l]. */
INLINE void pack_gather_T(TO_SPACE T *dst, int64_t width, int64_t lanes, GLOBAL const S *src, const int64_t *offsets,
                          int64_t K, int64_t s0, int64_t p0, int64_t K1, int64_t s1, int64_t p1,
                          int64_t K2, int64_t s2, int64_t p2)
{
    if (s0 != 1 || !turns_T(lanes, offsets, K)) {
        pack_runs_T(dst, width, lanes, src, offsets, K, s0, p0, K1, s1, p1, K2, s2, p2);
        return;
    }
    for (int64_t k2 = 0; k2 < K2; k2++)
        for (int64_t k1 = 0; k1 < K1; k1++)
            pack_columns_T(dst + k2 * p2 + k1 * p1, width, lanes, src + k2 * s2 + k1 * s1, 0, offsets, K, p0);
}

/* Several panels at once, whose lanes lie side by side in the source: the panel after this one starts `next` further.
   `lanes` are those of all panels, of which the last may be partial; the width is a multiple of a vector. Long rows are
   read twice as fast by some lines at a time as line by line. */
INLINE void pack_beside_T(TO_SPACE T *dst, int64_t next, int64_t width, int64_t lanes, GLOBAL const S *src,
                          int64_t K, int64_t s0, int64_t p0, int64_t K1, int64_t s1, int64_t p1,
                          int64_t K2, int64_t s2, int64_t p2)
{
    const int64_t whole = lanes / width;
    for (int64_t k2 = 0; k2 < K2; k2++)
        for (int64_t k1 = 0; k1 < K1; k1++) {
            TO_SPACE T *to = dst + k2 * p2 + k1 * p1;
            GLOBAL const S *from = src + k2 * s2 + k1 * s1;
            for (int64_t k = 0; k < K; k++)
                for (int64_t q = 0; q < whole; q++)
                    for (int64_t l = 0; l < width; l += LANES_T)
                        store_T(to + q * next + k * p0 + l, get_S_T(from + k * s0 + q * width + l));
            if (whole * width < lanes)
                pack_rows_T(to + whole * next, width, lanes - whole * width, from + whole * width, K, s0, p0);
        }
}

/* Several panels at once, where the source is contiguous from panel to panel: the panel after this one starts `next` further, and
   reads what lies next to what this one reads. Lane l lies at l * ls, or where offsets is not null at offsets[l]. */
INLINE void pack_turned_T(TO_SPACE T *dst, int64_t next, int64_t panels, int64_t width, int64_t lanes, GLOBAL const S *src,
                          int64_t ls, const int64_t *offsets, int64_t K, int64_t s0, int64_t p0, int64_t K1, int64_t s1, int64_t p1,
                          int64_t K2, int64_t s2, int64_t p2)
{
    for (int64_t l = 0; l < width; l += LANES_T) {
        const int64_t here = least_T(lanes - l, LANES_T);
        const int64_t there = least_T(width - l, LANES_T);
        for (int64_t k2 = 0; k2 < K2; k2++)
            for (int64_t k1 = 0; k1 < K1; k1++)
                for (int64_t k = 0; k < K; k++) {
                    TO_SPACE T *to = dst + k2 * p2 + k1 * p1 + k * p0 + l;
                    GLOBAL const S *from[LANES_T];
                    for (int64_t i = 0; i < LANES_T; i++) {
                        const int64_t at = i >= here ? 0 : offsets ? offsets[l + i] : (l + i) * ls;
                        from[i] = src + k2 * s2 + k1 * s1 + k * s0 + at;
                        __builtin_prefetch(from[i] + PACK_AHEAD_T * s0, 0, 2);
                    }
                    int64_t p = 0;
                    for (; p + LANES_T <= panels; p += LANES_T)
                        pack_block_T(to, next, there, here, from, p, LANES_T, 0);
                    if (p < panels)
                        pack_block_T(to, next, there, here, from, p, panels - p, 0);
                }
    }
}
