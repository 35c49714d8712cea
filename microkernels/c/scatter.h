/* Put a run of results where they belong: C[j] = tile[j] (+ C[j]) for j < length, by whole vectors and one partial. */
INLINE void store_run_T(GLOBAL T *c, const T *tile, int64_t length, int accumulate)
{
    int64_t j = 0;
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
