/* A run of WIDTH results, alpha times the sums, into a row of n columns from `column` on, or added to what is there.
   Where `wide`, all of them exist, are neighbours in memory, and aligned. */
INLINE void store_run_T(
    __global STORED *row, line_T columns, int column, int n, int wide, const T *sum, T alpha, int accumulate)
{
    if (wide) {
        __global STORED *to = row + column;
        const wide_T all = vload_WIDE(0, sum);
        store_wide_T(to, accumulate ? fma((wide_T)(alpha), all, load_wide_T(to)) : alpha * all);
    } else {
        UNROLL
        for (int j = 0; j < WIDTH; j++) {
            if (column + j < n) {
                __global STORED *to = row + place_T(columns, column + j);
                store_T(to, accumulate ? fma(alpha, sum[j], load_T(to)) : alpha * sum[j]);
            }
        }
    }
}
