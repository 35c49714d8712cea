/* The first lanes of a vector, of numbers of another type. */
INLINE vec_T get_tail_S_T(const S *p, tail_T tail)
{
    const int64_t lanes = lanes_in_T(tail);
    S there[LANES_T] = {0};
    for (int64_t l = 0; l < lanes; l++)
        there[l] = p[l];
    return get_S_T(there);
}
