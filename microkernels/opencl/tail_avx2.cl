typedef INTS tail_T; /* the sign bit of each lane that is there */
INLINE tail_T tail_of_T(int64_t lanes) { return (tail_T)(NUMBERS) < (tail_T)((int_of_T)lanes); }
#define load_tail_T(p, tail) MASKED_LOAD((const vec_T *)(size_t)(p), tail)
#define store_tail_T(p, x, tail) MASKED_STORE((vec_T *)(size_t)(p), tail, x)
