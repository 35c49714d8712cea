/* Integers of 8 and 16 bits as vectors of T. They are widened by two at a time: to widen by four, compilers take lanes apart. */
typedef S few_S_T __attribute__((vector_size(LANES_T * sizeof(S))));
typedef S_16 halves_S_T __attribute__((vector_size(LANES_T * 2)));
typedef int32_t words_S_T __attribute__((vector_size(LANES_T * 4)));

INLINE T one_S_T(S x) { return (T)x; }

INLINE vec_T get_S_T(const S *p)
{
    few_S_T x;
    __builtin_memcpy(&x, p, sizeof x);
    const words_S_T words = __builtin_convertvector(__builtin_convertvector(x, halves_S_T), words_S_T);
    return __builtin_convertvector(words, vec_T);
}
