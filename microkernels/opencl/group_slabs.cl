/* Add the steps from k to `end` of the reduction to the sums, a slab after the other. */
INLINE void add_TILE(
    T sum[ITEM_ROWS][ITEM_COLUMNS], const operand_T *left, const operand_T *right, walk_T walk, int k, int end,
    int wide, __local T *panels, const __local T *a, const __local T *b)
{
    T left_share[LEFT_SHARE], right_share[RIGHT_SHARE];

    if (k < end) {
        fetch_LEFT(left_share, left, walk, k, wide);
        fetch_RIGHT(right_share, right, walk, k, wide);
    }
    for (; k < end; k += SLAB) {
        barrier(CLK_LOCAL_MEM_FENCE);
        put_LEFT(panels, left_share, left->along_steps, wide);
        put_RIGHT(panels + LEFT_PANEL, right_share, right->along_steps, wide);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (k + SLAB < end) {
            fetch_LEFT(left_share, left, walk, k + SLAB, wide);
            fetch_RIGHT(right_share, right, walk, k + SLAB, wide);
        }
        multiply_TILE(sum, a, b);
    }
}
