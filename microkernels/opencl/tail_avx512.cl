typedef MASK_512 tail_T; /* which lanes of a partial vector are there */
INLINE tail_T tail_of_T(int64_t lanes) { return (tail_T)((1u << lanes) - 1); }
#define load_tail_T(p, tail) LOAD_512((const T *)(size_t)(p), zero_T(), tail)
#define store_tail_T(p, x, tail) STORE_512((T *)(size_t)(p), x, tail)
