/* The position of the first argument that is wrong; 0 where none is. */
static int pfx_Xgemm_wrong(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE transa, CBLAS_TRANSPOSE transb, int m, int n, int k, T alpha,
                           const T *a, int lda, const T *b, int ldb, const T *c, int ldc)
{
    const int rows = layout == CblasRowMajor;
    const int nothing = m == 0 || n == 0, unread = nothing || k == 0 || alpha == 0;
    if (!pfx_is_layout(layout)) return 1;
    if (!pfx_is_trans(transa)) return 2;
    if (!pfx_is_trans(transb)) return 3;
    if (m < 0) return 4;
    if (n < 0) return 5;
    if (k < 0) return 6;
    if (!a && !unread) return 8;
    if (pfx_is_short(lda, rows == (transa == CblasNoTrans) ? k : m)) return 9;
    if (!b && !unread) return 10;
    if (pfx_is_short(ldb, rows == (transb == CblasNoTrans) ? n : k)) return 11;
    if (!c && !nothing) return 13;
    if (pfx_is_short(ldc, rows ? n : m)) return 14;
    return 0;
}

void PFX_CBLAS(Xgemm)(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE transa, CBLAS_TRANSPOSE transb, int m, int n, int k, T alpha,
                      const T *a, int lda, const T *b, int ldb, T beta, T *c, int ldc)
{
    const int wrong = pfx_Xgemm_wrong(layout, transa, transb, m, n, k, alpha, a, lda, b, ldb, c, ldc);
    const int rows = layout == CblasRowMajor;
    const int a_along = rows == (transa == CblasNoTrans), b_along = rows == (transb == CblasNoTrans);
    const pfx_operand_T op_a = {a, a_along ? lda : 1, a_along ? 1 : lda}, op_b = {b, b_along ? ldb : 1, b_along ? 1 : ldb};
    if (wrong) {
        PFX_XERBLA(wrong, "cblas_Xgemm");
        return;
    }
    if (m == 0 || n == 0) return;
    if (beta != 1)
        pfx_scale_T(rows ? m : n, rows ? n : m, beta, c, ldc);
    if (k == 0 || alpha == 0) return;
    if (rows)
        pfx_gemm_T(m, n, k, alpha, op_a, op_b, c, ldc);
    else /* the rows of C^T = op(B)^T op(A)^T are the columns of C */
        pfx_gemm_T(n, m, k, alpha, pfx_turned_T(op_b), pfx_turned_T(op_a), c, ldc);
}
