/* y = alpha op(A) x + beta y: A is m x n. With a negative increment, a vector's first element is the last in memory. */
void PFX_CBLAS(Xgemv)(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE trans, int m, int n, T alpha, const T *a, int lda,
                      const T *x, int incx, T beta, T *y, int incy);
