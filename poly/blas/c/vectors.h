/* y += alpha A x with the rows of A contiguous. x is gathered in parts where it isn't. */
static void pfx_gemv_by_rows_T(int64_t m, int64_t n, T alpha, const T *a, int64_t lda, const T *x, int64_t incx,
                               T *y, int64_t incy)
{
    enum { PART = PFX_GATHERED / sizeof(T) };
    T part[PART];
    const int kernel = pfx_gemv_dots_T_select(pfx_chosen_isa(), m, n, lda, incy);
    if (incx == 1) {
        pfx_gemv_dots_T_run(kernel, m, n, lda, incy, alpha, a, x, y, 1, NULL);
        return;
    }
    for (int64_t first = 0; first < n; first += PART) {
        const int64_t here = pfx_least(n - first, PART);
        for (int64_t j = 0; j < here; j++)
            part[j] = x[(first + j) * incx];
        pfx_gemv_dots_T_run(kernel, m, here, lda, incy, alpha, a + first, part, y, 1, NULL);
    }
}

/* y += alpha A x with the columns of A contiguous. They are summed up apart, in parts, where y isn't. */
static void pfx_gemv_by_columns_T(int64_t m, int64_t n, T alpha, const T *a, int64_t lda, const T *x, int64_t incx,
                                  T *y, int64_t incy)
{
    enum { PART = PFX_GATHERED / sizeof(T) };
    T part[PART];
    const int kernel = pfx_gemv_sums_T_select(pfx_chosen_isa(), n, m, lda, incx);
    if (incy == 1) {
        pfx_gemv_sums_T_run(kernel, n, m, lda, incx, alpha, a, x, y, 1, NULL);
        return;
    }
    for (int64_t first = 0; first < m; first += PART) {
        const int64_t here = pfx_least(m - first, PART);
        for (int64_t i = 0; i < here; i++)
            part[i] = 0;
        pfx_gemv_sums_T_run(kernel, n, here, lda, incx, alpha, a + first, x, part, 1, NULL);
        for (int64_t i = 0; i < here; i++)
            y[(first + i) * incy] += part[i];
    }
}

/* y += alpha A x. Neighbours in A are `down` and `along` apart, in a column and in a row; one of the two is 1. */
static void pfx_gemv_T(int64_t m, int64_t n, T alpha, const T *a, int64_t down, int64_t along, const T *x, int64_t incx,
                       T *y, int64_t incy)
{
    if (along == 1)
        pfx_gemv_by_rows_T(m, n, alpha, a, down, x, incx, y, incy);
    else
        pfx_gemv_by_columns_T(m, n, alpha, a, along, x, incx, y, incy);
}
