#if !defined(PFX_XERBLA) /* what is done about a wrong argument, before the function returns without touching anything */
#include <stdio.h>
#define PFX_XERBLA(number, routine) ((void)fprintf(stderr, "Parameter %d to routine %s was incorrect\n", number, routine))
#endif
#if !defined(PFX_THREADS) /* how many threads a large product may use */
#define PFX_THREADS 1
#endif

enum {
    PFX_STACK = 32768 + 64, /* bytes of a workspace that lies on the stack; a larger one is allocated */
    PFX_GATHERED = 4096     /* bytes of a vector that are gathered at a time */
  };

/* The threads for so many multiply-adds: few of them don't pay for starting any. */
PFX_INLINE int64_t pfx_threads_for(double work) { return work < 4e6 ? 1 : PFX_THREADS; }

PFX_INLINE int64_t pfx_least(int64_t a, int64_t b) { return a < b ? a : b; }

PFX_INLINE int pfx_is_layout(CBLAS_LAYOUT layout) { return layout == CblasRowMajor || layout == CblasColMajor; }

PFX_INLINE int pfx_is_trans(CBLAS_TRANSPOSE trans)
{
    return trans == CblasNoTrans || trans == CblasTrans || trans == CblasConjTrans;
}

/* Whether a leading dimension is too short for rows, or in column-major order columns, of so many elements. */
PFX_INLINE int pfx_is_short(int ld, int length) { return ld < (length > 1 ? length : 1); }
