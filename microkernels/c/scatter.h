/* Put results that are contiguous along the rows where they belong: C[i + j*across] = tile[i*pitch + j] (+ C[…]) for i < rows,
   j < columns. A row of the tile has whole vectors. */
INLINE void store_turned_T(GLOBAL T *c, int64_t across, const T *tile, int64_t pitch, int64_t rows, int64_t columns,
                           int accumulate)
{
    for (int64_t i = 0; i < rows; i += LANES_T) {
        const int64_t here = least_T(rows - i, LANES_T);
        const tail_T tail = tail_of_T(here);
        for (int64_t j = 0; j < columns; j += LANES_T) {
            vec_T x[LANES_T];
            UNROLL
            for (int64_t l = 0; l < LANES_T; l++)
                x[l] = l < here ? load_T(tile + (i + l) * pitch + j) : zero_T();
            transpose_T(x, LANES_T);
            UNROLL
            for (int64_t l = 0; l < LANES_T; l++) {
                if (j + l >= columns)
                    continue; /* clang unrolls no loop that may end early */
                GLOBAL T *to = c + (j + l) * across + i;
                store_tail_T(to, accumulate ? x[l] + load_tail_T(to, tail) : x[l], tail);
            }
        }
    }
}

/* Put results where they belong one by one: C[i*down + j*across] = tile[i*pitch + j] (+ C[…]) for i < rows, j < columns. The
   loop along which they are nearer is the inner one. */
INLINE void store_apart_T(GLOBAL T *c, int64_t down, int64_t across, const T *tile, int64_t pitch, int64_t rows,
                          int64_t columns, int accumulate)
{
    if (down == 1) {
        store_turned_T(c, across, tile, pitch, rows, columns, accumulate);
        return;
    }
    const int by_rows = down < across;
    const int64_t outer = by_rows ? columns : rows, inner = by_rows ? rows : columns;
    const int64_t far = by_rows ? across : down, near = by_rows ? down : across;
    const int64_t from_outer = by_rows ? 1 : pitch, from_inner = by_rows ? pitch : 1;
    for (int64_t o = 0; o < outer; o++) {
        GLOBAL T *to = c + o * far;
        const T *from = tile + o * from_outer;
        if (accumulate)
            for (int64_t i = 0; i < inner; i++)
                to[i * near] += from[i * from_inner];
        else
            for (int64_t i = 0; i < inner; i++)
                to[i * near] = from[i * from_inner];
    }
}

/* Put a run of results where they belong: C[j] = tile[j] (+ C[j]) for j < length, by whole vectors and one partial. Runs of few
   results, whose length is a constant, follow each other so closely that a masked load would wait for the last one's store. */
INLINE void store_run_T(GLOBAL T *c, const T *tile, int64_t length, int accumulate)
{
    int64_t j = 0;
    if (__builtin_constant_p(length < LANES_T) && length < LANES_T) {
        T x[LANES_T];
        UNROLL
        for (int64_t l = 0; l < length; l++)
            x[l] = accumulate ? tile[l] + c[l] : tile[l];
        UNROLL
        for (int64_t l = 0; l < length; l++)
            c[l] = x[l];
        return;
    }
    for (; j + LANES_T <= length; j += LANES_T) {
        const vec_T x = load_T(tile + j);
        store_T(c + j, accumulate ? x + load_T(c + j) : x);
    }
    if (j < length) {
        const tail_T tail = tail_of_T(length - j);
        const vec_T x = load_tail_T(tile + j, tail);
        store_tail_T(c + j, accumulate ? x + load_tail_T(c + j, tail) : x, tail);
    }
}
