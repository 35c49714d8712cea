/* matmul: C99 and C++11, one file, no dependence but libc and libm.
   Made by poly 0.0.
   Schedules were chosen on a machine; the code runs anywhere.

   matmul computes

       def matmul(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
           for i in range(M):
               for j in range(N):
                   for k in range(K):
                       C[i, j] += A[i, k] * B[k, j]

       A     f32[16, 16], read
       A_ld  elements of A from one row to the next: 0 for 16, or at least what lies within it
       B     f32[16, 16], read
       B_ld  elements of B from one row to the next: 0 for 16, or at least what lies within it
       C     f32[16, 16], read and written
       C_ld  elements of C from one row to the next: 0 for 16, or at least what lies within it

   For M = 16, K = 16, N = 16: a schedule that was given, for portable and 1 thread.

   The first kernel's loops, on portable (the others stand above theirs):

       for i in range(16):
           for k in range(16):
               for j in range(16):  # vectorize
                   C[i, j] += A[i, k] * B[k, j]

   Arrays are row-major, their last dimension without gaps, and aligned to their elements. An output overlaps
   no other array; inputs may overlap each other. Nothing outside of the arrays is read or written.

   #include this file where it is needed; in one C or C++ file, #define MATMUL_IMPLEMENTATION before. No flags are
   needed.
   matmul(...) allocates its workspace with MATMUL_MALLOC and MATMUL_FREE, which may be defined before, and frees it.
   matmul_with_workspace(...) allocates nothing: it takes matmul_workspace_size(...) bytes or more, at any address.
   Calls may be made from several threads at once: they share only the choice of the instruction set, which is atomic.
   Threads: a call runs in the thread that makes it.
   Instruction sets: portable. The CPU is asked once; matmul_force_isa(...) takes one by force.
   32-bit, big-endian and other CPUs run the portable kernels.
   #define MATMUL_DEBUG: every access in the loops is checked against the bounds of its array.
   #define MATMUL_SELFTEST: a main that checks every kernel against the loops above, and measures it:
       cc -O2 -x c -D MATMUL_SELFTEST FILE.h -o try -lm && ./try

   Arguments are checked in this order, and the first that is wrong makes the status: sizes, and the shapes that
   follow from them; threads; strides; null pointers; alignment; overlaps; the workspace. An array's bytes are limited
   as if each dimension of 0 were 1. An array without elements may be null, and overlaps nothing. Two arrays overlap
   where the bytes from the first element to the last do, unless their first strides are equal and they are blocks of
   one matrix, side by side. Where no output has an element, a call that is right so far returns MATMUL_OK and takes no
   workspace. */

#ifndef MATMUL_H
#define MATMUL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MATMUL_VERSION "0.0"

/* The most that a size, a stride, and the bytes of an array may be; the most threads. */
#if UINTPTR_MAX > 0xFFFFFFFFu
#define MATMUL_SIZE_LIMIT INT64_C(0xFFFFFFFFFFFF)
#else
#define MATMUL_SIZE_LIMIT INT64_C(0x3FFFFFFF)
#endif
#define MATMUL_MAX_THREADS 256

/* What a call returns; but for MATMUL_OK nothing was changed. */
typedef enum matmul_status {
  MATMUL_OK = 0,                  /* done */
  MATMUL_NULL_POINTER = 1,        /* an array that has elements is a null pointer */
  MATMUL_MISALIGNED = 2,          /* an array is not aligned to its elements */
  /* a size, or an extent that follows, is negative or too large, or an assertion fails */
  MATMUL_BAD_SIZE = 3,
  MATMUL_BAD_STRIDE = 4,          /* a stride is negative, too large, or shorter than what lies within it */
  MATMUL_OVERLAP = 5,             /* an output, or the workspace, overlaps another array */
  MATMUL_BAD_THREADS = 6,         /* threads is less than 1 or more than MATMUL_MAX_THREADS */
  MATMUL_WORKSPACE_TOO_SMALL = 7, /* the workspace is null, or smaller than the workspace_size function says */
  MATMUL_OUT_OF_MEMORY = 8,       /* no memory for the workspace */
  MATMUL_UNSUPPORTED_ISA = 9,     /* this CPU, or this build, does not have the instruction set */
  MATMUL_BAD_INDEX = 10,          /* an element that is looked up as an index is outside of the array */
} matmul_status;

typedef enum matmul_isa {
  MATMUL_ISA_AUTO = 0,
  MATMUL_ISA_PORTABLE = 1,
  MATMUL_ISA_NEON = 2,
  MATMUL_ISA_AVX2 = 3,
  MATMUL_ISA_AVX512 = 4
} matmul_isa;

/* A status in words. */
const char *matmul_status_text(matmul_status status);
/* What calls run on now. */
matmul_isa matmul_isa_in_use(void);
/* From now on, in every thread; AUTO leaves it to the CPU again. MATMUL_UNSUPPORTED_ISA where it cannot run. */
matmul_status matmul_force_isa(matmul_isa isa);

matmul_status matmul(const float *A, int64_t A_ld, const float *B, int64_t B_ld, float *C, int64_t C_ld);
matmul_status matmul_with_workspace(const float *A, int64_t A_ld, const float *B, int64_t B_ld, float *C, int64_t C_ld,
        void *workspace, int64_t workspace_bytes);
int64_t matmul_workspace_size(void);

#ifdef __cplusplus
}
#endif

#endif /* MATMUL_H */

#if defined(MATMUL_SELFTEST) && !defined(MATMUL_IMPLEMENTATION)
#define MATMUL_IMPLEMENTATION
#endif

#if defined(MATMUL_IMPLEMENTATION) && !defined(MATMUL_IMPLEMENTED)
#define MATMUL_IMPLEMENTED

#if defined(__clang__) /* it warns of loops where vectors would not pay, or a sanitizer's check stands */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

#include <math.h>
#include <stddef.h>

#if !defined(__GNUC__)
#error "this file needs gcc, clang or a compiler that knows their extensions"
#endif
#if defined(__i386__) && !defined(__SSE__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi" /* it speaks of calls, but those are all inlined */
#endif
#define MATMUL_RESTRICT __restrict
#define MATMUL_INLINE static inline __attribute__((always_inline, unused))
#define MATMUL_NOINLINE static __attribute__((noinline, unused))
#define MATMUL_UNROLL _Pragma("GCC unroll 32")
#if defined(__clang__)
#define MATMUL_WRAPS __attribute__((no_sanitize("integer")))
#else
#define MATMUL_WRAPS
#endif
#if defined(__clang__)
#define MATMUL_SIMD _Pragma("clang loop vectorize(assume_safety) interleave(disable)")
#define MATMUL_LANES _Pragma("clang loop vectorize(assume_safety) unroll(disable)")
#elif defined(__GNUC__)
#define MATMUL_SIMD _Pragma("GCC ivdep") _Pragma("GCC unroll 4")
#define MATMUL_LANES _Pragma("GCC ivdep") _Pragma("GCC unroll 1")
#else
#define MATMUL_SIMD
#define MATMUL_LANES
#endif

#if defined(MATMUL_DEBUG)
#include <stdio.h>
#include <stdlib.h>
static inline void matmul_inside(int64_t index, int64_t extent, const char *where, const char *texts, int line)
{
  if (index >= 0 && index < extent) return;
  fprintf(stderr, "%s:%d: %s: MATMUL_IN(%s) fails: %lld is not from 0 to below %lld\n", __FILE__, line, where, texts,
          (long long)index, (long long)extent);
  abort();
}
#define MATMUL_IN(index, extent) \
  matmul_inside(index, extent, __func__, #index ", " #extent, __LINE__)
#else
#define MATMUL_IN(index, extent) ((void)sizeof((index) < (extent)))
#endif

#if defined(__clang__)
#pragma clang fp contract(fast)
#else
#pragma GCC push_options
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=fast")
#pragma GCC optimize("no-tree-loop-distribution", "no-loop-interchange")
#endif


static int32_t matmul_dense_portable(const float *MATMUL_RESTRICT A, const float *MATMUL_RESTRICT B,
        float *MATMUL_RESTRICT C, int64_t threads, void *workspace)
{
  (void)threads;
  (void)workspace;
  for (int64_t i = 0; i < 16; i += 1) {
    for (int64_t k = 0; k < 16; k += 1) {
      MATMUL_SIMD
      for (int64_t j = 0; j < 16; j += 1) {
        MATMUL_IN(i, 16); MATMUL_IN(j, 16); MATMUL_IN(k, 16);
        C[16*i + j] += A[16*i + k] * B[16*k + j];
      }
    }
  }
  return 0;
}
/* for i in range(16):
       for k in range(16):
           for j in range(16):  # vectorize
               C[i, j] += A[i, k] * B[k, j] */
static int32_t matmul_any_portable(int64_t A_ld, int64_t B_ld, int64_t C_ld, const float *MATMUL_RESTRICT A,
        const float *MATMUL_RESTRICT B, float *MATMUL_RESTRICT C, int64_t threads, void *workspace)
{
  (void)threads;
  (void)workspace;
  for (int64_t i = 0; i < 16; i += 1) {
    for (int64_t k = 0; k < 16; k += 1) {
      MATMUL_SIMD
      for (int64_t j = 0; j < 16; j += 1) {
        MATMUL_IN(i, 16); MATMUL_IN(j, 16); MATMUL_IN(k, 16);
        C[i*C_ld + j] += A[i*A_ld + k] * B[k*B_ld + j];
      }
    }
  }
  return 0;
}
#if defined(__clang__)
#pragma clang fp contract(on)
#else
#pragma GCC diagnostic pop
#pragma GCC pop_options
#endif

const char *matmul_status_text(matmul_status status)
{
  switch (status) {
  case MATMUL_OK: return "done";
  case MATMUL_NULL_POINTER: return "an array that has elements is a null pointer";
  case MATMUL_MISALIGNED: return "an array is not aligned to its elements";
  case MATMUL_BAD_SIZE: return "a size, or an extent that follows, is negative or too large, or an assertion fails";
  case MATMUL_BAD_STRIDE: return "a stride is negative, too large, or shorter than what lies within it";
  case MATMUL_OVERLAP: return "an output, or the workspace, overlaps another array";
  case MATMUL_BAD_THREADS: return "threads is less than 1 or more than MATMUL_MAX_THREADS";
  case MATMUL_WORKSPACE_TOO_SMALL: return "the workspace is null, or smaller than the workspace_size function says";
  case MATMUL_OUT_OF_MEMORY: return "no memory for the workspace";
  case MATMUL_UNSUPPORTED_ISA: return "this CPU, or this build, does not have the instruction set";
  case MATMUL_BAD_INDEX: return "an element that is looked up as an index is outside of the array";
  }
  return "no status of this file";
}

/* 0 until the first call; afterwards a matmul_isa. Read and written by atomic operations alone. */
static int32_t matmul_isa_now;

static int matmul_runs(matmul_isa isa)
{
  switch (isa) {
    case MATMUL_ISA_PORTABLE: return 1;
    default: return 0;
  }
}

/* Two threads may come here at once: both find the same. What a caller forces meanwhile stays. */
static matmul_isa matmul_detect(void)
{
  int32_t now = 0, best = 0;
#if defined(__x86_64__) || defined(__i386__)
  __builtin_cpu_init();
#endif
  if (!best && matmul_runs(MATMUL_ISA_PORTABLE)) best = (int32_t)MATMUL_ISA_PORTABLE;
  if (__atomic_compare_exchange_n(&matmul_isa_now, &now, best, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    return (matmul_isa)best;
  return (matmul_isa)now;
}

static inline matmul_isa matmul_chosen_isa(void)
{
  const int32_t now = __atomic_load_n(&matmul_isa_now, __ATOMIC_RELAXED);
  return now ? (matmul_isa)now : matmul_detect();
}

matmul_isa matmul_isa_in_use(void) { return matmul_chosen_isa(); }

matmul_status matmul_force_isa(matmul_isa isa)
{
  if (isa != MATMUL_ISA_AUTO && !matmul_runs(isa)) return MATMUL_UNSUPPORTED_ISA;
  __atomic_store_n(&matmul_isa_now, (int32_t)isa, __ATOMIC_RELAXED);
  return MATMUL_OK;
}

MATMUL_INLINE int matmul_select(matmul_isa isa, int64_t A_ld, int64_t B_ld, int64_t C_ld)
{
  switch (isa) {
  case MATMUL_ISA_PORTABLE:
    if (A_ld == 16 && B_ld == 16 && C_ld == 16) return 1; /* matmul_dense_portable */
    return 2; /* matmul_any_portable */
  default: return 0;
  }
}

MATMUL_INLINE int64_t matmul_need(int serving, int64_t threads)
{
  (void)threads;
  switch (serving) {
  default: return 0;
  }
}

MATMUL_INLINE int64_t matmul_most(int64_t threads)
{
  (void)threads;
  int64_t most = 0, bytes = 0;
  (void)bytes;
  return most;
}

MATMUL_INLINE void matmul_run(int serving, int64_t A_ld, int64_t B_ld, int64_t C_ld, const float *A, const float *B,
        float *C, int64_t threads, void *workspace)
{
  switch (serving) {
  case 1: (void)matmul_dense_portable(A, B, C, threads, workspace); return;
  case 2: (void)matmul_any_portable(A_ld, B_ld, C_ld, A, B, C, threads, workspace); return;
  default: return;
  }
}

#if !defined(MATMUL_MALLOC) && !defined(MATMUL_FREE)
#include <stdlib.h>
#define MATMUL_MALLOC malloc
#define MATMUL_FREE free
#elif !defined(MATMUL_MALLOC) || !defined(MATMUL_FREE)
#error "define both MATMUL_MALLOC and MATMUL_FREE, or neither"
#endif

/* The bytes of a workspace that is given at any address, where `bytes` are needed at a multiple of 64. */
MATMUL_INLINE int64_t matmul_with_slack(int64_t bytes) { return bytes > 0 ? bytes + 63 : 0; }

/* Whether a workspace holds the bytes that are needed; none goes beyond the last address. */
MATMUL_INLINE int matmul_holds(const void *workspace, int64_t bytes, int64_t needed)
{
  return workspace && bytes >= needed && (uint64_t)needed <= UINTPTR_MAX - (uintptr_t)workspace;
}

/* The address of what has no bytes. Kernels may add to it, as C forbids for null, but neither read nor write it. */
static char matmul_nothing[64] __attribute__((aligned(64)));

/* The first multiple of 64 in a workspace. */
MATMUL_INLINE void *matmul_aligned(void *workspace, int64_t needed)
{
  return needed > 0 ? (char *)workspace + (64u - (uintptr_t)workspace % 64u) % 64u : matmul_nothing;
}

MATMUL_INLINE void *matmul_allocate(int64_t bytes)
{
  return bytes > MATMUL_SIZE_LIMIT ? NULL : MATMUL_MALLOC((size_t)bytes);
}

MATMUL_INLINE void matmul_release(void *memory) { MATMUL_FREE(memory); }

/* Whether the product of two numbers from 0 up is beyond a limit. */
static inline int matmul_beyond(int64_t a, int64_t b, int64_t limit)
{
  uint64_t result;
  return __builtin_mul_overflow((uint64_t)a, (uint64_t)b, &result) || result > (uint64_t)limit;
}

/* Whether two arrays share bytes; addresses are subtracted modulo all addresses. */
MATMUL_WRAPS static inline int matmul_overlap(const void *a, int64_t a_bytes, const void *b, int64_t b_bytes)
{
  const uintptr_t distance = (uintptr_t)b - (uintptr_t)a;
  return distance < (uintptr_t)a_bytes || (uintptr_t)0 - distance < (uintptr_t)b_bytes;
}

/* Whether two arrays are blocks of one matrix: their parts lie equally far apart, side by side. */
static int
        matmul_blocks(const void *a, int64_t a_part, int64_t a_stride, const void *b, int64_t b_part, int64_t b_stride)
{
  const uintptr_t from = (uintptr_t)a, to = (uintptr_t)b, stride = (uintptr_t)a_stride;
  const uintptr_t gap = from <= to ? (to - from) % stride : stride - 1 - (from - to - 1) % stride;
  return a_stride == b_stride && gap >= (uintptr_t)a_part && gap <= stride - (uintptr_t)b_part;
}

MATMUL_INLINE matmul_status matmul_sizes(void)
{
  return MATMUL_OK;
}

MATMUL_INLINE matmul_status
        matmul_check(const float *A, int64_t A_ld, const float *B, int64_t B_ld, float *C, int64_t C_ld, int64_t *bytes)
{
  int64_t reach;
  if (((uint64_t)A_ld | (uint64_t)B_ld | (uint64_t)C_ld) > (uint64_t)MATMUL_SIZE_LIMIT) return MATMUL_BAD_STRIDE;
  /* A: f32[16, 16] */
  reach = 16;
  if (A_ld < reach) return MATMUL_BAD_STRIDE;
  if (matmul_beyond(16, A_ld, MATMUL_SIZE_LIMIT/4)) return MATMUL_BAD_STRIDE;
  reach += (16 - 1)*A_ld;
  bytes[0] = reach*4;
  /* B: f32[16, 16] */
  reach = 16;
  if (B_ld < reach) return MATMUL_BAD_STRIDE;
  if (matmul_beyond(16, B_ld, MATMUL_SIZE_LIMIT/4)) return MATMUL_BAD_STRIDE;
  reach += (16 - 1)*B_ld;
  bytes[1] = reach*4;
  /* C: f32[16, 16] */
  reach = 16;
  if (C_ld < reach) return MATMUL_BAD_STRIDE;
  if (matmul_beyond(16, C_ld, MATMUL_SIZE_LIMIT/4)) return MATMUL_BAD_STRIDE;
  reach += (16 - 1)*C_ld;
  bytes[2] = reach*4;
  if (!A) return MATMUL_NULL_POINTER;
  if (!B) return MATMUL_NULL_POINTER;
  if (!C) return MATMUL_NULL_POINTER;
  if (((uintptr_t)A | (uintptr_t)B | (uintptr_t)C) % 4 != 0) return MATMUL_MISALIGNED;
  if (matmul_overlap(C, bytes[2], A, bytes[0]) && !matmul_blocks(C, 16*4, C_ld*4, A, 16*4, A_ld*4)) return
          MATMUL_OVERLAP;
  if (matmul_overlap(C, bytes[2], B, bytes[1]) && !matmul_blocks(C, 16*4, C_ld*4, B, 16*4, B_ld*4)) return
          MATMUL_OVERLAP;
  return MATMUL_OK;
}

MATMUL_INLINE matmul_status matmul_call(const float *A, int64_t A_ld, const float *B, int64_t B_ld, float *C,
        int64_t C_ld, int allocate, void *workspace, int64_t workspace_bytes)
{
  int64_t bytes[3], needed;
  int serving;
  matmul_status status = matmul_sizes();
  if (status != MATMUL_OK) return status;
  if (A_ld == 0) A_ld = 16;
  if (B_ld == 0) B_ld = 16;
  if (C_ld == 0) C_ld = 16;
  status = matmul_check(A, A_ld, B, B_ld, C, C_ld, bytes);
  if (status != MATMUL_OK) return status;
  serving = matmul_select(matmul_chosen_isa(), A_ld, B_ld, C_ld);
  needed = matmul_with_slack(matmul_need(serving, 1));
  if (!allocate) {
    const int64_t most = matmul_with_slack(matmul_most(1));
    if (most > 0 && !matmul_holds(workspace, workspace_bytes, most)) return MATMUL_WORKSPACE_TOO_SMALL;
    if (most > 0 && matmul_overlap(workspace, most, A, bytes[0])) return MATMUL_OVERLAP;
    if (most > 0 && matmul_overlap(workspace, most, B, bytes[1])) return MATMUL_OVERLAP;
    if (most > 0 && matmul_overlap(workspace, most, C, bytes[2])) return MATMUL_OVERLAP;
  } else if (needed > 0) {
    workspace = matmul_allocate(needed);
    if (!workspace) return MATMUL_OUT_OF_MEMORY;
  }
  matmul_run(serving, A_ld, B_ld, C_ld, A, B, C, 1, matmul_aligned(workspace, needed));
  if (needed > 0 && allocate) matmul_release(workspace);
  return MATMUL_OK;
}

matmul_status matmul(const float *A, int64_t A_ld, const float *B, int64_t B_ld, float *C, int64_t C_ld)
{
  return matmul_call(A, A_ld, B, B_ld, C, C_ld, 1, NULL, 0);
}

matmul_status matmul_with_workspace(const float *A, int64_t A_ld, const float *B, int64_t B_ld, float *C, int64_t C_ld,
        void *workspace, int64_t workspace_bytes)
{
  return matmul_call(A, A_ld, B, B_ld, C, C_ld, 0, workspace, workspace_bytes);
}

int64_t matmul_workspace_size(void)
{
  const matmul_status status = matmul_sizes();
  return status == MATMUL_OK ? matmul_with_slack(matmul_most(1)) : -(int64_t)status;
}

#if defined(MATMUL_SELFTEST)
...
#endif /* MATMUL_SELFTEST */

#if defined(__clang__)
#pragma clang diagnostic pop
#endif

#endif /* MATMUL_IMPLEMENTATION */
