/* The vector layer in OpenCL C for CPU devices. What takes pointers is a macro, so that it serves every address space. */
enum { LANES_T = LANES };
typedef VEC vec_T;

#if defined(__clang__) && (defined(__x86_64__) || defined(__aarch64__)) /* all address spaces are one memory */
typedef VEC loose_T __attribute__((aligned(SIZE))); /* at any element's address */
typedef HALF_VEC loose_half_T __attribute__((aligned(SIZE)));
#define load_T(p) (*(const loose_T *)(size_t)(p))
#define store_T(p, x) (*(loose_T *)(size_t)(p) = (x))
#define store_upper_T(p, x) (*(loose_half_T *)(size_t)(p) = (x).hi)
#else
#define load_T(p) VLOAD(0, p)
#define store_T(p, x) VSTORE(x, 0, p)
#define store_upper_T(p, x) STORE_HIGH_X
#endif

#ifndef __clang__
#define __builtin_constant_p(x) 0
#define __builtin_prefetch(p, written, nearness) (void)0
#endif

INLINE int64_t least_T(int64_t a, int64_t b) { return a < b ? a : b; }

INLINE vec_T zero_T(void) { return (vec_T)(0); }
INLINE vec_T broadcast_T(T x) { return (vec_T)(x); }
INLINE vec_T fma_T(vec_T a, vec_T b, vec_T c) { return a * b + c; } /* fused where the device does that fast */
INLINE void hold_T(vec_T *sum, vec_T x) { (void)sum, (void)x; }
INLINE void all_registers_T(void) {}
INLINE void unknown_T(int64_t *n) { (void)n; }

INLINE T total_T(vec_T x)
{
    T lane[LANES_T];
    store_T(lane, x);
    UNROLL
    for (int n = LANES_T / 2; n > 0; n /= 2) {
        UNROLL
        for (int l = 0; l < n; l++)
            lane[l] += lane[l + n];
    }
    return lane[0];
}

/* zip_low is a0 b0 a1 b1 …, zip_high the rest of the same. */
INLINE vec_T zip_low_T(vec_T a, vec_T b)
{
    vec_T x;
    x.even = a.lo;
    x.odd = b.lo;
    return x;
}

INLINE vec_T zip_high_T(vec_T a, vec_T b)
{
    vec_T x;
    x.even = a.hi;
    x.odd = b.hi;
    return x;
}
