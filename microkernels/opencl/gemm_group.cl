/* The outer product of a whole work-group: ITEMS work-items compute a tile of ROWS x COLUMNS elements of C together.

   C[i, j] = alpha * sum over k2, k1, k of A[i; k2, k1, k] * B[k2, k1, k; j]   (+ C[i, j])

   A and B pass through `__local` panels of SLAB steps of the reduction. Each item holds ITEM_ROWS x ITEM_COLUMNS sums.
   PATCH_ROWS x PATCH_COLUMNS neighbours are a patch: together they read few elements of either panel. */
INLINE void NAME(
    int m, int n, const __global STORED *a, const __local long *a_rows, long a_row,
    const __global STORED *b, const __local long *b_columns, long b_column,
    __global STORED *c, const __local long *c_rows, long c_row, const __local long *c_columns, long c_column,
    int K, long a0, long b0, int K1, long a1, long b1, int K2, long a2, long b2,
    T alpha, int accumulate, __local T *panels)
{
    const walk_T walk = {max(K, 1), max(K1, 1), K2 * K1 * K, K1 * K2 == 1 || K % SLAB == 0};
    const line_T a_lines = {a_rows, a_row}, b_lines = {b_columns, b_column};
    const line_T to_rows = {c_rows, c_row}, to_columns = {c_columns, c_column};
    const operand_T left = operand_of_T(a, a_lines, m, walk, a0, a1, a2);
    const operand_T right = operand_of_T(b, b_lines, n, walk, b0, b1, b2);
    const int item = (int)get_local_id(0), patch = item / (PATCH_ROWS * PATCH_COLUMNS);
    const int row = (patch / PATCHES * PATCH_ROWS + item / PATCH_COLUMNS % PATCH_ROWS) * WIDTH;
    const int column = (patch % PATCHES * PATCH_COLUMNS + item % PATCH_COLUMNS) * WIDTH;
    const __local T *a_panel = panels + row, *b_panel = panels + LEFT_PANEL + column;
    const int whole = left.aligned && right.aligned && m == ROWS && n == COLUMNS ? walk.depth / SLAB * SLAB : 0;
    T sum[ITEM_ROWS][ITEM_COLUMNS];

    UNROLL
    for (int i = 0; i < ITEM_ROWS; i++) {
        UNROLL
        for (int j = 0; j < ITEM_COLUMNS; j++)
            sum[i][j] = 0;
    }
    add_TILE(sum, &left, &right, walk, 0, whole, 1, panels, a_panel, b_panel);
    add_TILE(sum, &left, &right, walk, whole, walk.depth, 0, panels, a_panel, b_panel);

    const int wide = n == COLUMNS && !c_columns && c_column == 1 && c_row % WIDTH == 0 && is_aligned_T(c);
    UNROLL
    for (int i = 0; i < ITEM_ROWS; i++) {
        const int r = row + i / WIDTH * ROW_JUMP + i % WIDTH;
        if (r < m) {
            __global STORED *to = c + place_T(to_rows, r);
            UNROLL
            for (int j = 0; j < ITEM_COLUMNS; j += WIDTH)
                store_run_T(to, to_columns, column + j / WIDTH * COLUMN_JUMP, n, wide, &sum[i][j], alpha, accumulate);
        }
    }
}
