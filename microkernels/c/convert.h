/* Numbers of another type S as vectors of T, where panels have another type than the array. */
typedef S few_S_T __attribute__((vector_size(LANES_T * sizeof(S))));

INLINE T one_S_T(S x) { return (T)x; }

INLINE vec_T get_S_T(const S *p)
{
    few_S_T x;
    __builtin_memcpy(&x, p, sizeof x);
    return __builtin_convertvector(x, vec_T);
}
