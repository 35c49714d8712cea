/* f16 as vectors of T. The exponents' biases differ by 112, which a product with 2^112 adds, to subnormal numbers too;
   infinities and NaNs get the largest exponent. */
typedef uint16_t few_S_T __attribute__((vector_size(LANES_T * 2)));
typedef uint32_t bits_S_T __attribute__((vector_size(LANES_T * 4)));

INLINE vec_T get_S_T(const uint16_t *p)
{
    few_S_T x;
    __builtin_memcpy(&x, p, sizeof x);
    const bits_S_T half = __builtin_convertvector(x, bits_S_T);
    const vec_T scaled = (vec_T)((half & 0x7FFFu) << 13) * 5192296858534827628530496329220096.0f;
    const bits_S_T beyond = (bits_S_T)((half & 0x7C00u) == 0x7C00u) & 0x7F800000u;
    return (vec_T)((bits_S_T)scaled | beyond | (half & 0x8000u) << 16);
}

INLINE T one_S_T(uint16_t x)
{
    const uint16_t all[LANES_T] = {x};
    return get_S_T(all)[0];
}
