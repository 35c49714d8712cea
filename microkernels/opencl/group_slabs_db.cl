/* Add the steps from k to `end` of the reduction to the sums, a slab after the other.

   There are two pairs of panels: the next slab is put into one while the other is still read. */
INLINE void add_TILE(
    T sum[ITEM_ROWS][ITEM_COLUMNS], const operand_T *left, const operand_T *right, walk_T walk, int k, int end,
    int wide, __local T *panels, const __local T *a, const __local T *b)
{
    T left_share[LEFT_SHARE], right_share[RIGHT_SHARE];
    int full = 0;

    barrier(CLK_LOCAL_MEM_FENCE);
    if (k < end) {
        fetch_LEFT(left_share, left, walk, k, wide);
        fetch_RIGHT(right_share, right, walk, k, wide);
        put_LEFT(panels, left_share, left->along_steps, wide);
        put_RIGHT(panels + LEFT_PANEL, right_share, right->along_steps, wide);
    }
    for (; k < end; k += SLAB) {
        if (k + SLAB < end) { /* before the barrier, behind which compilers would move it to where it is needed */
            fetch_LEFT(left_share, left, walk, k + SLAB, wide);
            fetch_RIGHT(right_share, right, walk, k + SLAB, wide);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        multiply_TILE(sum, a + full, b + full);
        full = PAIR - full;
        if (k + SLAB < end) {
            put_LEFT(panels + full, left_share, left->along_steps, wide);
            put_RIGHT(panels + full + LEFT_PANEL, right_share, right->along_steps, wide);
        }
    }
}
