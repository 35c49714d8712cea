static void pfx_try_Xgemv(int trial)
{
    static const int steps[] = {1, 1, 2, -1, -3};
    const CBLAS_LAYOUT layout = pfx_random_layout();
    const CBLAS_TRANSPOSE trans = pfx_random_trans();
    const int m = pfx_random_size(), n = pfx_random_size(), lda = pfx_random_ld(layout, m, n);
    const int rows = trans == CblasNoTrans ? m : n, columns = trans == CblasNoTrans ? n : m;
    const int incx = steps[pfx_random(5)], incy = steps[pfx_random(5)];
    const T alpha = (T)pfx_random_factor(), beta = (T)pfx_random_factor();
    pfx_fill_T();
    for (int64_t i = 0; i < rows && columns > 0; i++) {
        T *const y = pfx_wanted_T + (incy > 0 ? i : i - rows + 1) * incy;
        T sum = 0;
        for (int64_t j = 0; j < columns; j++)
            sum += pfx_a_T[pfx_place(layout, trans, i, j, lda)] * pfx_b_T[(incx > 0 ? j : j - columns + 1) * incx];
        *y = alpha * sum + beta * *y;
    }
    PFX_CBLAS(Xgemv)(layout, trans, m, n, alpha, pfx_a_T, lda, pfx_b_T, incx, beta, pfx_c_T, incy);
    pfx_compare_T("cblas_Xgemv", trial);
}

static double pfx_once_Xgemv(int n)
{
    PFX_CBLAS(Xgemv)(CblasRowMajor, CblasNoTrans, n, n, 1, pfx_a_T, n, pfx_b_T, 1, 0, pfx_c_T, 1);
    return 2.0 * n * n;
}
