/* Elements in `__global` memory that are halves: a work-group computes with them as floats, which every device can. */
INLINE T load_T(const __global STORED *p)
{
    return vload_half(0, p);
}

INLINE wide_T load_wide_T(const __global STORED *p)
{
    return vloada_half4(0, p);
}

INLINE void store_T(__global STORED *p, T value)
{
    vstore_half_rte(value, 0, p);
}

INLINE void store_wide_T(__global STORED *p, wide_T value)
{
    vstorea_half4_rte(value, 0, p);
}
