/* Where the elements of an operand lie, seen from a work-group's tile.

   Its lanes are the rows of A or the columns of B. The reduction's steps k2 < K2, k1 < K1, k < K are walked as one loop
   over `depth` = K2 * K1 * K steps. */

/* Element i is at table[i]; without a table at i * stride. With one, `stride` divides all its entries. */
typedef struct {
    const __local long *table;
    long stride;
} line_T;

typedef struct {
    int K, K1, depth;
    int straight; /* steps of one slab are always neighbours in the innermost loop */
} walk_T;

typedef struct {
    const __global STORED *from;
    line_T lane;
    int lanes;
    long s0, s1, s2;
    int along_steps; /* neighbouring steps lie next to each other, and not neighbouring lanes */
    int aligned;     /* WIDTH neighbours can be loaded at once, where all of them exist */
} operand_T;

INLINE long place_T(line_T line, int i)
{
    return line.table ? line.table[i] : i * line.stride;
}

INLINE int is_aligned_T(const __global STORED *p)
{
    return (uintptr_t)p % WIDE_BYTES == 0;
}

INLINE operand_T operand_of_T(
    const __global STORED *from, line_T lane, int lanes, walk_T walk, long s0, long s1, long s2)
{
    const int along_steps = s0 == 1 && lane.stride != 1;
    const int by_lanes = !lane.table && lane.stride == 1 && s0 % WIDTH == 0;
    const int by_steps = lane.stride % WIDTH == 0 && (walk.K == walk.depth || walk.K % WIDTH == 0);
    const int even = s1 % WIDTH == 0 && s2 % WIDTH == 0 && (along_steps ? by_steps : by_lanes);
    const operand_T o = {from, lane, lanes, s0, s1, s2, along_steps, even && is_aligned_T(from)};
    return o;
}

INLINE long step_place_T(const operand_T *o, walk_T walk, int k)
{
    if (walk.depth == walk.K)
        return k * o->s0;
    const uint row = (uint)k / (uint)walk.K;
    return row / (uint)walk.K1 * o->s2 + row % (uint)walk.K1 * o->s1 + (uint)k % (uint)walk.K * o->s0;
}

/* The place of step k + `later` of a slab that starts at k, whose place is `begin`. */
INLINE long later_place_T(const operand_T *o, walk_T walk, int k, long begin, int later)
{
    return walk.straight ? begin + later * o->s0 : step_place_T(o, walk, k + later);
}
