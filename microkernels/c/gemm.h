/* The outer-product microkernel: a tile of C stays in registers while K2 x K1 x K columns of A meet rows of B.

   C[i, j] = alpha * sum over k2, k1, k of a[i][k2*a2 + k1*a1 + k*a0] * b[k2*b2 + k1*b1 + k*b0 + j]   (+ C[i, j])

   START, UPDATE and JOIN are the operations, here of a sum of products: 0, a multiply-add, and what adds the scaled sum to C.

   The tile has `rows` rows and `vectors` vectors, the last of which is partial where `partial` is 1, with `last` columns. The
   first three must be constants where this is inlined, so that `sum` lives in registers. */
enum {
    SHORT_DEPTH_T = 96,
    IN_FLIGHT_T = 512, /* multiply-adds that a core works on at a time, at most */
    FAR_T = (int)(2048 / sizeof(T)), /* hardware follows no longer strides: half a page */
    STEPS_AHEAD_T = 8, /* so many steps of a tile take longer than a line from the second-level cache */
    LINE_T = (int)(64 / sizeof(T)),
};

/* One step of the reduction: a row of B times the elements of A at `ak` behind the pointers to its rows. All lines of a row that
   lies `ahead` elements further on are fetched, unless that is 0, and so are those of the first and the last row of A. */
INLINE void gemm_step_T(int64_t rows, int64_t vectors, int partial, tail_T tail, A_SPACE const T *const *a, int64_t ak,
                        int64_t left_ahead, B_SPACE const T *b, int64_t ahead, vec_T (*sum)[16])
{
    const int64_t whole = vectors - partial;
    vec_T row[16];
    if (left_ahead) {
        __builtin_prefetch(a[0] + ak + left_ahead, 0, 3);
        __builtin_prefetch(a[rows - 1] + ak + left_ahead, 0, 3);
    }
    if (ahead) {
        UNROLL
        for (int64_t j = 0; j < vectors * LANES_T; j += LINE_T)
            __builtin_prefetch(b + ahead + j, 0, 3);
        __builtin_prefetch(b + ahead + vectors * LANES_T - 1, 0, 3);
    }
    UNROLL
    for (int64_t v = 0; v < whole; v++)
        row[v] = load_T(b + v * LANES_T);
    if (partial)
        row[whole] = load_tail_T(b + whole * LANES_T, tail);
    UNROLL
    for (int64_t i = 0; i < rows; i++) {
        const vec_T x = broadcast_T(a[i][ak]);
        UNROLL
        for (int64_t v = 0; v < vectors; v++) {
            sum[i][v] = UPDATE_T(x, row[v], sum[i][v]);
            hold_T(&sum[i][v], x);
        }
    }
}

INLINE void gemm_tile_T(int64_t rows, int64_t vectors, int partial, int64_t last,
                        A_SPACE const T *const *a, B_SPACE const T *b, C_SPACE T *const *c,
                        int64_t K, int64_t a0, int64_t b0, int64_t K1, int64_t a1, int64_t b1,
                        int64_t K2, int64_t a2, int64_t b2, T alpha, int accumulate)
{
    const int64_t whole = vectors - partial;
    const tail_T tail = tail_of_T(last);
    const int64_t depth = K2 * K1 * K;
    /* A core that has a whole call in flight reads C while the one before computes, so starting from C saves an addition without
       a wait. But a load that overlaps a masked store waits until that has left for the cache, even if it needs other lanes:
       where vectors are partial, C is loaded last, and stored when all of it is loaded. */
    const int in_flight = rows * vectors * depth <= IN_FLIGHT_T;
    const int start_from_c = accumulate && !partial && __builtin_constant_p(alpha == 1 && in_flight) && alpha == 1 && in_flight;
    /* Hardware follows the rows of B in place only in part, panels well. Few steps are better spent on the neighbour's rows,
       which the last columns don't have. */
    const int64_t next = partial ? 0 : vectors * LANES_T;
    const int64_t ahead = b0 == vectors * LANES_T ? 0 : depth <= SHORT_DEPTH_T ? next : STEPS_AHEAD_T * b0;
    /* Neighbours in A that are rows of the tile share a line, of which hardware cannot know where the next one lies. */
    const int are_beside = a[rows - 1] - a[0] < LINE_T && a0 > FAR_T;
    const int64_t left_ahead = __builtin_constant_p(are_beside) && are_beside ? STEPS_AHEAD_T * a0 : 0;
    /* Saves instructions where another thread of the core takes half of those that it can issue; in an instance for any tail
       it is not worth the code. */
    const int twice = !partial || __builtin_constant_p(last);
    vec_T sum[32][16];

    all_registers_T();
    if (!in_flight) {
        UNROLL
        for (int64_t i = 0; i < rows; i++) {
            UNROLL
            for (int64_t v = 0; v < vectors; v++)
                __builtin_prefetch(c[i] + v * LANES_T, 1, 3);
        }
    }
    UNROLL
    for (int64_t i = 0; i < rows; i++) {
        UNROLL
        for (int64_t v = 0; v < whole; v++)
            sum[i][v] = start_from_c ? load_T(c[i] + v * LANES_T) : START_T();
        if (partial)
            sum[i][whole] = START_T();
        HEADED UNROLL
        HEADED for (int64_t v = 0; v < vectors; v++)
        HEADED     sum[i][v] += load_T(b - b0 + v * LANES_T);
    }

    unknown_T(&K);
    unknown_T(&a0);
    for (int64_t k2 = 0; k2 < K2; k2++) {
        for (int64_t k1 = 0; k1 < K1; k1++) {
            int64_t ak = k2 * a2 + k1 * a1;
            B_SPACE const T *bk = b + k2 * b2 + k1 * b1;
            if (twice) {
                UNROLL_BY_2
                for (int64_t k = 0; k < K; k++, ak += a0, bk += b0)
                    gemm_step_T(rows, vectors, partial, tail, a, ak, left_ahead, bk, ahead, sum);
            } else {
                for (int64_t k = 0; k < K; k++, ak += a0, bk += b0)
                    gemm_step_T(rows, vectors, partial, tail, a, ak, left_ahead, bk, ahead, sum);
            }
        }
    }

    const vec_T scale = broadcast_T(alpha);
    UNROLL
    for (int64_t i = 0; i < rows; i++) {
        UNROLL
        for (int64_t v = 0; v < whole; v++) {
            C_SPACE T *to = c[i] + v * LANES_T;
            sum[i][v] = accumulate && !start_from_c ? JOIN_T(scale, sum[i][v], load_T(to)) : scale * sum[i][v];
            if (!partial)
                store_T(to, sum[i][v]);
        }
        if (partial && accumulate)
            sum[i][whole] = JOIN_T(scale, sum[i][whole], load_tail_T(c[i] + whole * LANES_T, tail));
        else if (partial)
            sum[i][whole] = scale * sum[i][whole];
    }
    if (!partial)
        return;
    UNROLL
    for (int64_t i = 0; i < rows; i++) { /* all have been loaded */
        UNROLL
        for (int64_t v = 0; v < whole; v++)
            store_T(c[i] + v * LANES_T, sum[i][v]);
        store_tail_T(c[i] + whole * LANES_T, sum[i][whole], tail);
    }
}
