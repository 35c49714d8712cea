#include <math.h>
#include <stdint.h>

static inline int64_t imin(int64_t a, int64_t b) { return a < b ? a : b; }

int32_t matmul(int64_t M, int64_t N, int64_t K, const float *restrict A, const float *restrict B,
    float *restrict C, int64_t threads, void *workspace)
{
  (void)threads;
  (void)workspace;
  for (int64_t i_tile = 0; i_tile < M; i_tile += 6)
  {
    for (int64_t i = 0; i < imin(6, M - i_tile); i += 1)
    {
      for (int64_t j = 0; j < N; j += 1)
      {
        if (0 < K)
        {
          float C_sum = 0.0f;
          #pragma omp simd reduction(+:C_sum)
          for (int64_t k = 0; k < K; k += 1)
          {
            C_sum += A[(i + i_tile)*K + k] * B[k*N + j];
          }
          C[(i + i_tile)*N + j] += C_sum;
        }
      }
    }
  }
  return 0;
}

int64_t matmul_workspace(int64_t M, int64_t N, int64_t K, int64_t threads)
{
  (void)M;
  (void)N;
  (void)K;
  (void)threads;
  return 0;
}

static inline int overlap(const char *a, int64_t a_bytes, const char *b, int64_t b_bytes)
{
  return a < b + b_bytes && b < a + a_bytes;
}

int32_t matmul_guarded(int64_t M, int64_t N, int64_t K, const float *A, const float *B, float *C,
    int64_t threads, void *workspace)
{
  const int64_t A_bytes = M*K*4;
  const int64_t B_bytes = K*N*4;
  const int64_t C_bytes = M*N*4;
  if (!C_bytes) return 0;
  if (overlap((const char *)C, C_bytes, (const char *)A, A_bytes)) return 1;
  if (overlap((const char *)C, C_bytes, (const char *)B, B_bytes)) return 1;
  if ((uintptr_t)A % 4) return 1;
  if ((uintptr_t)B % 4) return 1;
  if ((uintptr_t)C % 4) return 1;
  return matmul(M, N, K, A, B, C, threads, workspace);
}
