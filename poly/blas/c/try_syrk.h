static void pfx_try_Xsyrk(int trial)
{
    const CBLAS_LAYOUT layout = pfx_random_layout();
    const CBLAS_UPLO uplo = pfx_random(2) ? CblasUpper : CblasLower;
    const CBLAS_TRANSPOSE trans = pfx_random_trans();
    const int n = pfx_random_size(), k = pfx_random_size(), ldc = pfx_random_ld(layout, n, n);
    const int lda = pfx_random_ld(layout, trans == CblasNoTrans ? n : k, trans == CblasNoTrans ? k : n);
    const T alpha = (T)pfx_random_factor(), beta = (T)pfx_random_factor();
    pfx_fill_T();
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = uplo == CblasUpper ? i : 0; j < (uplo == CblasUpper ? n : i + 1); j++) {
            T *const c = pfx_wanted_T + pfx_place(layout, CblasNoTrans, i, j, ldc);
            T sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += pfx_a_T[pfx_place(layout, trans, i, p, lda)] * pfx_a_T[pfx_place(layout, trans, j, p, lda)];
            *c = alpha * sum + beta * *c;
        }
    PFX_CBLAS(Xsyrk)(layout, uplo, trans, n, k, alpha, pfx_a_T, lda, beta, pfx_c_T, ldc);
    pfx_compare_T("cblas_Xsyrk", trial);
}

static double pfx_once_Xsyrk(int n)
{
    PFX_CBLAS(Xsyrk)(CblasRowMajor, CblasLower, CblasNoTrans, n, n, 1, pfx_a_T, n, 0, pfx_c_T, n);
    return 1.0 * n * n * (n + 1);
}
