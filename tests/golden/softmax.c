#include <math.h>
#include <stdint.h>
#if defined(__x86_64__) && defined(__GLIBC__)  /* glibc's vector versions, for loops in vector lanes */
__attribute__((simd("notinbranch"))) float expf(float);
__attribute__((simd("notinbranch"))) double exp(double);
#if __GLIBC_PREREQ(2, 35)
__attribute__((simd("notinbranch"))) float tanhf(float);
__attribute__((simd("notinbranch"))) double tanh(double);
#endif
#endif

static inline float max_f32(float a, float b) { return b > a ? b : a; }
static inline int64_t align64(int64_t bytes) { return (bytes + 63)/64*64; }

int32_t softmax(int64_t M, int64_t N, const float *restrict x, float *restrict y, int64_t threads,
    void *workspace)
{
  (void)threads;
  float *restrict const top = (float *)__builtin_assume_aligned((char *)workspace, 64);
  float *restrict const total = (float *)__builtin_assume_aligned((char *)workspace + align64(M*4), 64);
  for (int64_t i = 0; i < M; i += 1)
  {
    top[i] = -INFINITY;
    total[i] = 0.0f;
    if (0 < N)
    {
      float top_max = -INFINITY;
      #pragma omp simd reduction(max:top_max)
      for (int64_t j = 0; j < N; j += 1)
      {
        top_max = max_f32(top_max, x[i*N + j]);
      }
      top[i] = max_f32(top[i], top_max);
    }
    #pragma omp simd
    for (int64_t j = 0; j < N; j += 1)
    {
      y[i*N + j] = expf(x[i*N + j] - top[i]);
    }
    if (0 < N)
    {
      float total_sum = 0.0f;
      #pragma omp simd reduction(+:total_sum)
      for (int64_t j = 0; j < N; j += 1)
      {
        total_sum += y[i*N + j];
      }
      total[i] += total_sum;
    }
    #pragma omp simd
    for (int64_t j = 0; j < N; j += 1)
    {
      y[i*N + j] = y[i*N + j] / total[i];
    }
  }
  return 0;
}

int64_t softmax_workspace(int64_t M, int64_t N, int64_t threads)
{
  (void)N;
  (void)threads;
  return align64(M*4) + align64(M*4);
}

static inline int overlap(const char *a, int64_t a_bytes, const char *b, int64_t b_bytes)
{
  return a < b + b_bytes && b < a + a_bytes;
}

int32_t softmax_guarded(int64_t M, int64_t N, const float *x, float *y, int64_t threads, void *workspace)
{
  const int64_t x_bytes = M*N*4;
  const int64_t y_bytes = M*N*4;
  if (!y_bytes) return 0;
  if (overlap((const char *)y, y_bytes, (const char *)x, x_bytes)) return 1;
  if ((uintptr_t)x % 4) return 1;
  if ((uintptr_t)y % 4) return 1;
  return softmax(M, N, x, y, threads, workspace);
}
