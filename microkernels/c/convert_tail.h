/* The first lanes of a vector, of numbers of another type. */
INLINE vec_T get_tail_S_T(const S *p, tail_T tail)
{
    T wanted[LANES_T] = {0};
    S there[LANES_T] = {0};
    store_tail_T(wanted, broadcast_T(1), tail);
    for (int64_t l = 0; l < LANES_T; l++)
        if (wanted[l] > 0)
            there[l] = p[l];
    return get_S_T(there);
}
