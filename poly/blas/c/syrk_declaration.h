/* The triangle `uplo` of C = alpha A A^T + beta C, or with CblasTrans of alpha A^T A + beta C: C is n x n, op(A) is n x k. */
void PFX_CBLAS(Xsyrk)(CBLAS_LAYOUT layout, CBLAS_UPLO uplo, CBLAS_TRANSPOSE trans, int n, int k, T alpha,
                      const T *a, int lda, T beta, T *c, int ldc);
