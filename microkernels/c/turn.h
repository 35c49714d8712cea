/* Turn `rows` vectors in registers; each step zips the upper half of them with the lower. Afterwards the vectors, one behind
   the other, hold all rows' first elements, all rows' second elements, and so on. */
INLINE void transpose_T(vec_T *x, int64_t rows)
{
    UNROLL
    for (int64_t step = 1; step < rows; step *= 2) {
        vec_T y[LANES_T];
        UNROLL
        for (int64_t i = 0; i < rows / 2; i++) {
            y[2 * i] = zip_low_T(x[i], x[i + rows / 2]);
            y[2 * i + 1] = zip_high_T(x[i], x[i + rows / 2]);
        }
        UNROLL
        for (int64_t i = 0; i < rows; i++)
            x[i] = y[i];
    }
}
