/* bf16 as vectors of T: the upper halves of its elements. */
typedef uint16_t few_S_T __attribute__((vector_size(LANES_T * 2)));
typedef uint32_t bits_S_T __attribute__((vector_size(LANES_T * 4)));

INLINE vec_T get_S_T(const uint16_t *p)
{
    few_S_T x;
    __builtin_memcpy(&x, p, sizeof x);
    return (vec_T)(__builtin_convertvector(x, bits_S_T) << 16);
}

INLINE T one_S_T(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    T value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}
