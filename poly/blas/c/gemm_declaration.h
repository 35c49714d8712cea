/* C = alpha op(A) op(B) + beta C: op(A) is m x k, op(B) is k x n, C is m x n. */
void PFX_CBLAS(Xgemm)(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE transa, CBLAS_TRANSPOSE transb, int m, int n, int k, T alpha,
                      const T *a, int lda, const T *b, int ldb, T beta, T *c, int ldc);
