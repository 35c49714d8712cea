/* Elements in `__global` memory of the type in which a work-group computes. */
INLINE T load_T(const __global STORED *p)
{
    return *p;
}

INLINE wide_T load_wide_T(const __global STORED *p)
{
    return *(const __global wide_T *)p;
}

INLINE void store_T(__global STORED *p, T value)
{
    *p = value;
}

INLINE void store_wide_T(__global STORED *p, wide_T value)
{
    *(__global wide_T *)p = value;
}
