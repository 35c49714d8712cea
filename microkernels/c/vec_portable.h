/* The vector layer in the vector extensions of gcc and clang, 16 bytes wide: any CPU. */
#include <stdint.h>

enum { LANES_T = (int)(16 / sizeof(T)) };
typedef lane_of_T vec_T __attribute__((vector_size(16)));
typedef lane_of_T loose_T __attribute__((vector_size(16), may_alias, aligned(sizeof(T)))); /* at any element's address */

INLINE int64_t least_T(int64_t a, int64_t b) { return a < b ? a : b; }

INLINE vec_T zero_T(void)
{
    const vec_T zero = {0};
    return zero;
}

INLINE vec_T broadcast_T(T x)
{
    const vec_T all = {EACH_X};
    return all;
}

INLINE vec_T load_T(const T *p) { return (vec_T)*(const loose_T *)p; }
INLINE void store_T(T *p, vec_T x) { *(loose_T *)p = (loose_T)x; }
INLINE vec_T fma_T(vec_T a, vec_T b, vec_T c) { return a * b + c; }
INLINE void hold_T(vec_T *sum, vec_T x) { (void)sum, (void)x; } /* see AVX2 */
INLINE void all_registers_T(void) {} /* see AVX2 */
INLINE void unknown_T(int64_t *n) { (void)n; } /* see AVX2 */

INLINE T total_T(vec_T x)
{
    lane_of_T total = x[0];
    UNROLL
    for (int l = 1; l < LANES_T; l++)
        total += x[l];
    return (T)total;
}

/* The upper half of a vector. */
INLINE void store_upper_T(T *p, vec_T x)
{
    T all[LANES_T];
    store_T(all, x);
    __builtin_memcpy(p, all + LANES_T / 2, sizeof x / 2);
}

/* zip_low is a0 b0 a1 b1 …, zip_high the rest of the same. */
INLINE vec_T zip_low_T(vec_T a, vec_T b)
{
    vec_T x = zero_T();
    UNROLL
    for (int l = 0; l < LANES_T; l++)
        x[l] = l % 2 ? b[l / 2] : a[l / 2];
    return x;
}

INLINE vec_T zip_high_T(vec_T a, vec_T b)
{
    vec_T x = zero_T();
    UNROLL
    for (int l = 0; l < LANES_T; l++)
        x[l] = l % 2 ? b[(LANES_T + l) / 2] : a[(LANES_T + l) / 2];
    return x;
}
