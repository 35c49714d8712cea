static void pfx_try_Xgemm(int trial)
{
    const CBLAS_LAYOUT layout = pfx_random_layout();
    const CBLAS_TRANSPOSE ta = pfx_random_trans(), tb = pfx_random_trans();
    const int m = pfx_random_size(), n = pfx_random_size(), k = pfx_random_size();
    const int lda = pfx_random_ld(layout, ta == CblasNoTrans ? m : k, ta == CblasNoTrans ? k : m);
    const int ldb = pfx_random_ld(layout, tb == CblasNoTrans ? k : n, tb == CblasNoTrans ? n : k);
    const int ldc = pfx_random_ld(layout, m, n);
    const T alpha = (T)pfx_random_factor(), beta = (T)pfx_random_factor();
    pfx_fill_T();
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            T *const c = pfx_wanted_T + pfx_place(layout, CblasNoTrans, i, j, ldc);
            T sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += pfx_a_T[pfx_place(layout, ta, i, p, lda)] * pfx_b_T[pfx_place(layout, tb, p, j, ldb)];
            *c = alpha * sum + beta * *c;
        }
    PFX_CBLAS(Xgemm)(layout, ta, tb, m, n, k, alpha, pfx_a_T, lda, pfx_b_T, ldb, beta, pfx_c_T, ldc);
    pfx_compare_T("cblas_Xgemm", trial);
}

static double pfx_once_Xgemm(int n)
{
    PFX_CBLAS(Xgemm)(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, pfx_a_T, n, pfx_b_T, n, 0, pfx_c_T, n);
    return 2.0 * n * n * n;
}
