/* axpy: C99 and C++11, one file, no dependence but libc and libm.
   Made by poly 0.0.
   Schedules were chosen on a machine; the code runs anywhere.

   axpy computes

       def axpy(a: f64, x: f64[N], y: f64[N]):
           for i in range(N):
               y[i] += a * x[i]

       N        sizes, from 0 to AXPY_SIZE_LIMIT
       a        f64, by value
       x        f64[N], read
       y        f64[N], read and written
       threads  how many, from 1 to AXPY_MAX_THREADS

   For any size: a schedule that was given, for portable and 2 threads.

   The first kernel's loops, on portable (the others stand above theirs):

       for i in range(N):  # parallel
           y[i] += a * x[i]

   Arrays are row-major, their last dimension without gaps, and aligned to their elements. An output overlaps
   no other array; inputs may overlap each other. Nothing outside of the arrays is read or written.

   #include this file where it is needed; in one C or C++ file, #define AXPY_IMPLEMENTATION before. No flags are needed.
   axpy(...) allocates its workspace with AXPY_MALLOC and AXPY_FREE, which may be defined before, and frees it.
   axpy_with_workspace(...) allocates nothing: it takes axpy_workspace_size(...) bytes or more, at any address.
   Calls may be made from several threads at once: they share only the choice of the instruction set, which is atomic.
   Threads: `threads` share the work where the file is built with -fopenmp; else one thread does it all.
   Instruction sets: portable. The CPU is asked once; axpy_force_isa(...) takes one by force.
   32-bit, big-endian and other CPUs run the portable kernels.
   #define AXPY_DEBUG: every access in the loops is checked against the bounds of its array.
   #define AXPY_SELFTEST: a main that checks every kernel against the loops above, and measures it:
       cc -O2 -fopenmp -x c -D AXPY_SELFTEST FILE.h -o try -lm && ./try

   Arguments are checked in this order, and the first that is wrong makes the status: sizes, and the shapes that
   follow from them; threads; strides; null pointers; alignment; overlaps; the workspace. An array's bytes are limited
   as if each dimension of 0 were 1. An array without elements may be null, and overlaps nothing. Two arrays overlap
   where the bytes from the first element to the last do, unless their first strides are equal and they are blocks of
   one matrix, side by side. Where no output has an element, a call that is right so far returns AXPY_OK and takes no
   workspace. */

#ifndef AXPY_H
#define AXPY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AXPY_VERSION "0.0"

/* The most that a size, a stride, and the bytes of an array may be; the most threads. */
#if UINTPTR_MAX > 0xFFFFFFFFu
#define AXPY_SIZE_LIMIT INT64_C(0xFFFFFFFFFFFF)
#else
#define AXPY_SIZE_LIMIT INT64_C(0x3FFFFFFF)
#endif
#define AXPY_MAX_THREADS 256

/* What a call returns; but for AXPY_OK nothing was changed. */
typedef enum axpy_status {
  AXPY_OK = 0,                  /* done */
  AXPY_NULL_POINTER = 1,        /* an array that has elements is a null pointer */
  AXPY_MISALIGNED = 2,          /* an array is not aligned to its elements */
  AXPY_BAD_SIZE = 3,            /* a size, or an extent that follows, is negative or too large, or an assertion fails */
  AXPY_BAD_STRIDE = 4,          /* a stride is negative, too large, or shorter than what lies within it */
  AXPY_OVERLAP = 5,             /* an output, or the workspace, overlaps another array */
  AXPY_BAD_THREADS = 6,         /* threads is less than 1 or more than AXPY_MAX_THREADS */
  AXPY_WORKSPACE_TOO_SMALL = 7, /* the workspace is null, or smaller than the workspace_size function says */
  AXPY_OUT_OF_MEMORY = 8,       /* no memory for the workspace */
  AXPY_UNSUPPORTED_ISA = 9,     /* this CPU, or this build, does not have the instruction set */
  AXPY_BAD_INDEX = 10,          /* an element that is looked up as an index is outside of the array */
} axpy_status;

typedef enum axpy_isa {
  AXPY_ISA_AUTO = 0,
  AXPY_ISA_PORTABLE = 1,
  AXPY_ISA_NEON = 2,
  AXPY_ISA_AVX2 = 3,
  AXPY_ISA_AVX512 = 4
} axpy_isa;

/* A status in words. */
const char *axpy_status_text(axpy_status status);
/* What calls run on now. */
axpy_isa axpy_isa_in_use(void);
/* From now on, in every thread; AUTO leaves it to the CPU again. AXPY_UNSUPPORTED_ISA where it cannot run. */
axpy_status axpy_force_isa(axpy_isa isa);

axpy_status axpy(int64_t N, double a, const double *x, double *y, int32_t threads);
axpy_status axpy_with_workspace(int64_t N, double a, const double *x, double *y, int32_t threads, void *workspace,
        int64_t workspace_bytes);
int64_t axpy_workspace_size(int64_t N, int32_t threads);

#ifdef __cplusplus
}
#endif

#endif /* AXPY_H */

#if defined(AXPY_SELFTEST) && !defined(AXPY_IMPLEMENTATION)
#define AXPY_IMPLEMENTATION
#endif

#if defined(AXPY_IMPLEMENTATION) && !defined(AXPY_IMPLEMENTED)
#define AXPY_IMPLEMENTED

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
#define AXPY_RESTRICT __restrict
#define AXPY_INLINE static inline __attribute__((always_inline, unused))
#define AXPY_NOINLINE static __attribute__((noinline, unused))
#define AXPY_UNROLL _Pragma("GCC unroll 32")
#if defined(__clang__)
#define AXPY_WRAPS __attribute__((no_sanitize("integer")))
#else
#define AXPY_WRAPS
#endif
#if defined(_OPENMP)
#define AXPY_PRAGMA(...) _Pragma(#__VA_ARGS__)
#define AXPY_OMP(...) AXPY_PRAGMA(omp __VA_ARGS__)
#else
#define AXPY_OMP(...)
#endif

#if defined(AXPY_DEBUG)
#include <stdio.h>
#include <stdlib.h>
static inline void axpy_inside(int64_t index, int64_t extent, const char *where, const char *texts, int line)
{
  if (index >= 0 && index < extent) return;
  fprintf(stderr, "%s:%d: %s: AXPY_IN(%s) fails: %lld is not from 0 to below %lld\n", __FILE__, line, where, texts,
          (long long)index, (long long)extent);
  abort();
}
#define AXPY_IN(index, extent) \
  axpy_inside(index, extent, __func__, #index ", " #extent, __LINE__)
#else
#define AXPY_IN(index, extent) ((void)sizeof((index) < (extent)))
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


static void axpy_any_i_portable(int64_t N, double a, const double *AXPY_RESTRICT x, double *AXPY_RESTRICT y, int64_t i)
{
  AXPY_IN(i, N);
  y[i] += a * x[i];
}

static int32_t axpy_any_portable(int64_t N, double a, const double *AXPY_RESTRICT x, double *AXPY_RESTRICT y,
        int64_t threads, void *workspace)
{
  (void)threads;
  (void)workspace;
  AXPY_OMP(parallel for schedule(static) num_threads((int)threads) if(threads > 1 && N > 1))
  for (int64_t i = 0; i < N; i += 1) {
    axpy_any_i_portable(N, a, x, y, i);
  }
  return 0;
}
#if defined(__clang__)
#pragma clang fp contract(on)
#else
#pragma GCC diagnostic pop
#pragma GCC pop_options
#endif

const char *axpy_status_text(axpy_status status)
{
  switch (status) {
  case AXPY_OK: return "done";
  case AXPY_NULL_POINTER: return "an array that has elements is a null pointer";
  case AXPY_MISALIGNED: return "an array is not aligned to its elements";
  case AXPY_BAD_SIZE: return "a size, or an extent that follows, is negative or too large, or an assertion fails";
  case AXPY_BAD_STRIDE: return "a stride is negative, too large, or shorter than what lies within it";
  case AXPY_OVERLAP: return "an output, or the workspace, overlaps another array";
  case AXPY_BAD_THREADS: return "threads is less than 1 or more than AXPY_MAX_THREADS";
  case AXPY_WORKSPACE_TOO_SMALL: return "the workspace is null, or smaller than the workspace_size function says";
  case AXPY_OUT_OF_MEMORY: return "no memory for the workspace";
  case AXPY_UNSUPPORTED_ISA: return "this CPU, or this build, does not have the instruction set";
  case AXPY_BAD_INDEX: return "an element that is looked up as an index is outside of the array";
  }
  return "no status of this file";
}

/* 0 until the first call; afterwards a axpy_isa. Read and written by atomic operations alone. */
static int32_t axpy_isa_now;

static int axpy_runs(axpy_isa isa)
{
  switch (isa) {
    case AXPY_ISA_PORTABLE: return 1;
    default: return 0;
  }
}

/* Two threads may come here at once: both find the same. What a caller forces meanwhile stays. */
static axpy_isa axpy_detect(void)
{
  int32_t now = 0, best = 0;
#if defined(__x86_64__) || defined(__i386__)
  __builtin_cpu_init();
#endif
  if (!best && axpy_runs(AXPY_ISA_PORTABLE)) best = (int32_t)AXPY_ISA_PORTABLE;
  if (__atomic_compare_exchange_n(&axpy_isa_now, &now, best, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    return (axpy_isa)best;
  return (axpy_isa)now;
}

static inline axpy_isa axpy_chosen_isa(void)
{
  const int32_t now = __atomic_load_n(&axpy_isa_now, __ATOMIC_RELAXED);
  return now ? (axpy_isa)now : axpy_detect();
}

axpy_isa axpy_isa_in_use(void) { return axpy_chosen_isa(); }

axpy_status axpy_force_isa(axpy_isa isa)
{
  if (isa != AXPY_ISA_AUTO && !axpy_runs(isa)) return AXPY_UNSUPPORTED_ISA;
  __atomic_store_n(&axpy_isa_now, (int32_t)isa, __ATOMIC_RELAXED);
  return AXPY_OK;
}

AXPY_INLINE int axpy_select(axpy_isa isa, int64_t N)
{
  (void)N;
  switch (isa) {
  case AXPY_ISA_PORTABLE:
    return 1; /* axpy_any_portable */
  default: return 0;
  }
}

AXPY_INLINE int64_t axpy_need(int serving, int64_t N, int64_t threads)
{
  (void)N; (void)threads;
  switch (serving) {
  default: return 0;
  }
}

AXPY_INLINE int64_t axpy_most(int64_t N, int64_t threads)
{
  (void)N; (void)threads;
  int64_t most = 0, bytes = 0;
  (void)bytes;
  return most;
}

AXPY_INLINE void
        axpy_run(int serving, int64_t N, double a, const double *x, double *y, int64_t threads, void *workspace)
{
  switch (serving) {
  case 1: (void)axpy_any_portable(N, a, x, y, threads, workspace); return;
  default: return;
  }
}

#if !defined(AXPY_MALLOC) && !defined(AXPY_FREE)
#include <stdlib.h>
#define AXPY_MALLOC malloc
#define AXPY_FREE free
#elif !defined(AXPY_MALLOC) || !defined(AXPY_FREE)
#error "define both AXPY_MALLOC and AXPY_FREE, or neither"
#endif

/* The bytes of a workspace that is given at any address, where `bytes` are needed at a multiple of 64. */
AXPY_INLINE int64_t axpy_with_slack(int64_t bytes) { return bytes > 0 ? bytes + 63 : 0; }

/* Whether a workspace holds the bytes that are needed; none goes beyond the last address. */
AXPY_INLINE int axpy_holds(const void *workspace, int64_t bytes, int64_t needed)
{
  return workspace && bytes >= needed && (uint64_t)needed <= UINTPTR_MAX - (uintptr_t)workspace;
}

/* The address of what has no bytes. Kernels may add to it, as C forbids for null, but neither read nor write it. */
static char axpy_nothing[64] __attribute__((aligned(64)));

/* The first multiple of 64 in a workspace. */
AXPY_INLINE void *axpy_aligned(void *workspace, int64_t needed)
{
  return needed > 0 ? (char *)workspace + (64u - (uintptr_t)workspace % 64u) % 64u : axpy_nothing;
}

AXPY_INLINE void *axpy_allocate(int64_t bytes)
{
  return bytes > AXPY_SIZE_LIMIT ? NULL : AXPY_MALLOC((size_t)bytes);
}

AXPY_INLINE void axpy_release(void *memory) { AXPY_FREE(memory); }

#if defined(_OPENMP) && defined(__unix__)
#include <unistd.h>

/* The threads to run: one in a child of a process that has run several, since OpenMP waits for those there. */
AXPY_INLINE int32_t axpy_team(int32_t threads)
{
  static long owner; /* the process that has */
  const long here = (long)getpid();
  long found = 0;
  if (threads < 2 || __atomic_compare_exchange_n(&owner, &found, here, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    return threads;
  return found == here ? threads : 1;
}
#else
AXPY_INLINE int32_t axpy_team(int32_t threads) { return threads; }
#endif

#if UINTPTR_MAX > 0xFFFFFFFFu
#define AXPY_BITS(wide, narrow) wide
#else
#define AXPY_BITS(wide, narrow) narrow
#endif

/* An extent, 0 counted as 1. */
static inline int64_t axpy_some(int64_t count) { return count > 1 ? count : 1; }

/* The product of two numbers from 0 up; INT64_MAX where it is more than that. */
static inline int64_t axpy_times(int64_t a, int64_t b)
{
  uint64_t result;
  const int wraps = __builtin_mul_overflow((uint64_t)a, (uint64_t)b, &result);
  return wraps || result > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)result;
}

/* Whether two arrays share bytes; addresses are subtracted modulo all addresses. */
AXPY_WRAPS static inline int axpy_overlap(const void *a, int64_t a_bytes, const void *b, int64_t b_bytes)
{
  const uintptr_t distance = (uintptr_t)b - (uintptr_t)a;
  return distance < (uintptr_t)a_bytes || (uintptr_t)0 - distance < (uintptr_t)b_bytes;
}

AXPY_INLINE axpy_status axpy_sizes(int64_t N, int32_t threads)
{
  if (((uint64_t)N) >> AXPY_BITS(45, 27) != 0) {
    if (((uint64_t)N) > (uint64_t)AXPY_SIZE_LIMIT) return AXPY_BAD_SIZE;
    /* x: f64[N] */
    if (axpy_times(8, axpy_some(N)) > AXPY_SIZE_LIMIT) return AXPY_BAD_SIZE;
    /* y: f64[N] */
    if (axpy_times(8, axpy_some(N)) > AXPY_SIZE_LIMIT) return AXPY_BAD_SIZE;
  }
  if (threads < 1 || threads > AXPY_MAX_THREADS) return AXPY_BAD_THREADS;
  return AXPY_OK;
}

AXPY_INLINE axpy_status axpy_check(int64_t N, const double *x, double *y, int64_t *bytes)
{
  bytes[0] = 8*N;
  bytes[1] = 8*N;
  if (!x && N > 0) return AXPY_NULL_POINTER;
  if (!y && N > 0) return AXPY_NULL_POINTER;
  if (((uintptr_t)x | (uintptr_t)y) % 8 != 0) return AXPY_MISALIGNED;
  if (axpy_overlap(y, bytes[1], x, bytes[0]) && N > 0) return AXPY_OVERLAP;
  return AXPY_OK;
}

AXPY_INLINE axpy_status axpy_call(int64_t N, double a, const double *x, double *y, int32_t threads, int allocate,
        void *workspace, int64_t workspace_bytes)
{
  int64_t bytes[2], needed;
  int serving;
  axpy_status status = axpy_sizes(N, threads);
  if (status != AXPY_OK) return status;
  status = axpy_check(N, x, y, bytes);
  if (status != AXPY_OK) return status;
  if (!(N > 0)) return AXPY_OK;
  threads = axpy_team(threads);
  serving = axpy_select(axpy_chosen_isa(), N);
  needed = axpy_with_slack(axpy_need(serving, N, threads));
  if (!allocate) {
    const int64_t most = axpy_with_slack(axpy_most(N, threads));
    if (most > 0 && !axpy_holds(workspace, workspace_bytes, most)) return AXPY_WORKSPACE_TOO_SMALL;
    if (most > 0 && axpy_overlap(workspace, most, x, bytes[0]) && N > 0) return AXPY_OVERLAP;
    if (most > 0 && axpy_overlap(workspace, most, y, bytes[1]) && N > 0) return AXPY_OVERLAP;
  } else if (needed > 0) {
    workspace = axpy_allocate(needed);
    if (!workspace) return AXPY_OUT_OF_MEMORY;
  }
  if (!x) x = (const double *)(void *)axpy_nothing;
  axpy_run(serving, N, a, x, y, threads, axpy_aligned(workspace, needed));
  if (needed > 0 && allocate) axpy_release(workspace);
  return AXPY_OK;
}

axpy_status axpy(int64_t N, double a, const double *x, double *y, int32_t threads)
{
  return axpy_call(N, a, x, y, threads, 1, NULL, 0);
}

axpy_status axpy_with_workspace(int64_t N, double a, const double *x, double *y, int32_t threads, void *workspace,
        int64_t workspace_bytes)
{
  return axpy_call(N, a, x, y, threads, 0, workspace, workspace_bytes);
}

int64_t axpy_workspace_size(int64_t N, int32_t threads)
{
  const axpy_status status = axpy_sizes(N, threads);
  return status == AXPY_OK ? axpy_with_slack(axpy_most(N, threads)) : -(int64_t)status;
}

#if defined(AXPY_SELFTEST)
...
#endif /* AXPY_SELFTEST */

#if defined(__clang__)
#pragma clang diagnostic pop
#endif

#endif /* AXPY_IMPLEMENTATION */
