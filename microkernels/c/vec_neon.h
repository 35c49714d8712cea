/* The vector layer for NEON on AArch64: 4 floats or integers, or 2 doubles. */
#include <arm_neon.h>
#include <stdint.h>

enum { LANES_T = (int)(16 / sizeof(T)) };
typedef lane_of_T vec_T __attribute__((vector_size(16)));

INLINE int64_t least_T(int64_t a, int64_t b) { return a < b ? a : b; }

INLINE vec_T zero_T(void) { return (vec_T)vdupq_n_px(0); }
INLINE vec_T broadcast_T(T x) { return (vec_T)vdupq_n_px(x); }
INLINE vec_T load_T(const T *p) { return (vec_T)vld1q_px(p); }
INLINE void store_T(T *p, vec_T x) { vst1q_px(p, (RAW_128)x); }
INLINE vec_T fma_T(vec_T a, vec_T b, vec_T c) { return FMA_128; }
INLINE void hold_T(vec_T *sum, vec_T x) { (void)sum, (void)x; } /* see AVX2 */
INLINE void all_registers_T(void) /* see AVX2 */
{
    __asm__ volatile("" :::
        "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16",
        "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31");
}
INLINE void unknown_T(int64_t *n) { __asm__("" : "+r"(*n)); } /* see AVX2 */

INLINE T total_T(vec_T x) { return vaddvq_px((RAW_128)x); }

/* The upper half of a vector. */
INLINE void store_upper_T(T *p, vec_T x)
{
    T all[LANES_T];
    store_T(all, x);
    __builtin_memcpy(p, all + LANES_T / 2, sizeof x / 2);
}

/* zip_low is a0 b0 a1 b1 …, zip_high the rest of the same. */
INLINE vec_T zip_low_T(vec_T a, vec_T b) { return (vec_T)vzip1q_px((RAW_128)a, (RAW_128)b); }
INLINE vec_T zip_high_T(vec_T a, vec_T b) { return (vec_T)vzip2q_px((RAW_128)a, (RAW_128)b); }
