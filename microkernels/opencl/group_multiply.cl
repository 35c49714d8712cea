/* Add a slab's products to an item's sums: WIDTH rows from `a` on, again every ROW_JUMP rows, times WIDTH columns from `b`
   on, every COLUMN_JUMP. So neighbouring items read neighbouring vectors of the panels. */
INLINE void multiply_TILE(T sum[ITEM_ROWS][ITEM_COLUMNS], const __local T *a, const __local T *b)
{
    UNROLL_STEPS
    for (int k = 0; k < SLAB; k++) {
        T x[ITEM_ROWS], y[ITEM_COLUMNS];
        UNROLL
        for (int i = 0; i < ITEM_ROWS; i += WIDTH)
            vstore_WIDE(*(const __local wide_T *)(a + k * ROW_PITCH + i / WIDTH * ROW_JUMP), 0, x + i);
        UNROLL
        for (int j = 0; j < ITEM_COLUMNS; j += WIDTH)
            vstore_WIDE(*(const __local wide_T *)(b + k * COLUMN_PITCH + j / WIDTH * COLUMN_JUMP), 0, y + j);
        UNROLL
        for (int i = 0; i < ITEM_ROWS; i++) {
            UNROLL
            for (int j = 0; j < ITEM_COLUMNS; j++)
                sum[i][j] = fma(x[i], y[j], sum[i][j]);
        }
    }
}
