/* The position of the first argument that is wrong; 0 where none is. */
static int pfx_Xgemv_wrong(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE trans, int m, int n, T alpha, const T *a, int lda,
                           const T *x, int incx, const T *y, int incy)
{
    const int nothing = m == 0 || n == 0, unread = nothing || alpha == 0;
    if (!pfx_is_layout(layout)) return 1;
    if (!pfx_is_trans(trans)) return 2;
    if (m < 0) return 3;
    if (n < 0) return 4;
    if (!a && !unread) return 6;
    if (pfx_is_short(lda, layout == CblasRowMajor ? n : m)) return 7;
    if (!x && !unread) return 8;
    if (incx == 0) return 9;
    if (!y && !nothing) return 11;
    if (incy == 0) return 12;
    return 0;
}

void PFX_CBLAS(Xgemv)(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE trans, int m, int n, T alpha, const T *a, int lda,
                      const T *x, int incx, T beta, T *y, int incy)
{
    const int wrong = pfx_Xgemv_wrong(layout, trans, m, n, alpha, a, lda, x, incx, y, incy);
    const int along = (layout == CblasRowMajor) == (trans == CblasNoTrans);
    const int64_t rows = trans == CblasNoTrans ? m : n, columns = trans == CblasNoTrans ? n : m;
    const int64_t step_x = incx, step_y = incy;
    if (wrong) {
        PFX_XERBLA(wrong, "cblas_Xgemv");
        return;
    }
    if (m == 0 || n == 0) return;
    if (step_x < 0) x += (1 - columns) * step_x;
    if (step_y < 0) y += (1 - rows) * step_y;
    if (beta != 1)
        for (int64_t i = 0; i < rows; i++)
            y[i * step_y] = beta == 0 ? 0 : beta * y[i * step_y];
    if (alpha == 0) return;
    pfx_gemv_T(rows, columns, alpha, a, along ? lda : 1, along ? 1 : lda, x, step_x, y, step_y);
}
