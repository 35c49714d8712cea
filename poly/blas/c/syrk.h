enum { PFX_SQUARE_T = 256 / sizeof(T) }; /* rows of the blocks on the diagonal: they are computed whole, in a square apart */

/* A block on the diagonal of C += alpha A A^T: a triangle of the square is added to C. */
static void pfx_syrk_square_T(int upper, int64_t n, int64_t k, T alpha, pfx_operand_T a, T *c, int64_t ldc)
{
    T square[PFX_SQUARE_T * PFX_SQUARE_T];
    for (int64_t i = 0; i < n * n; i++)
        square[i] = 0;
    pfx_gemm_T(n, n, k, alpha, a, pfx_turned_T(a), square, n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = upper ? i : 0; j < (upper ? n : i + 1); j++)
            c[i * ldc + j] += square[i * n + j];
}

/* A triangle of C += alpha A A^T: two triangles half as large, and the rectangle beside them. */
static void pfx_syrk_T(int upper, int64_t n, int64_t k, T alpha, pfx_operand_T a, T *c, int64_t ldc)
{
    const int64_t half = (n / 2 + PFX_SQUARE_T - 1) / PFX_SQUARE_T * PFX_SQUARE_T;
    const pfx_operand_T rest = pfx_part_T(a, half, 0);
    if (n <= PFX_SQUARE_T) {
        pfx_syrk_square_T(upper, n, k, alpha, a, c, ldc);
        return;
    }
    pfx_syrk_T(upper, half, k, alpha, a, c, ldc);
    pfx_syrk_T(upper, n - half, k, alpha, rest, c + half * ldc + half, ldc);
    if (upper)
        pfx_gemm_T(half, n - half, k, alpha, a, pfx_turned_T(rest), c + half, ldc);
    else
        pfx_gemm_T(n - half, half, k, alpha, rest, pfx_turned_T(a), c + half * ldc, ldc);
}

/* The position of the first argument that is wrong; 0 where none is. */
static int pfx_Xsyrk_wrong(CBLAS_LAYOUT layout, CBLAS_UPLO uplo, CBLAS_TRANSPOSE trans, int n, int k, T alpha,
                           const T *a, int lda, const T *c, int ldc)
{
    if (!pfx_is_layout(layout)) return 1;
    if (uplo != CblasUpper && uplo != CblasLower) return 2;
    if (!pfx_is_trans(trans)) return 3;
    if (n < 0) return 4;
    if (k < 0) return 5;
    if (!a && n && k && alpha != 0) return 7;
    if (pfx_is_short(lda, (layout == CblasRowMajor) == (trans == CblasNoTrans) ? k : n)) return 8;
    if (!c && n) return 10;
    if (pfx_is_short(ldc, n)) return 11;
    return 0;
}

void PFX_CBLAS(Xsyrk)(CBLAS_LAYOUT layout, CBLAS_UPLO uplo, CBLAS_TRANSPOSE trans, int n, int k, T alpha,
                      const T *a, int lda, T beta, T *c, int ldc)
{
    const int wrong = pfx_Xsyrk_wrong(layout, uplo, trans, n, k, alpha, a, lda, c, ldc);
    const int upper = (layout == CblasRowMajor) == (uplo == CblasUpper); /* as rows: the columns of C are those of C^T = C */
    const int along = (layout == CblasRowMajor) == (trans == CblasNoTrans);
    const pfx_operand_T op = {a, along ? lda : 1, along ? 1 : lda};
    if (wrong) {
        PFX_XERBLA(wrong, "cblas_Xsyrk");
        return;
    }
    if (beta != 1)
        for (int64_t i = 0; i < n; i++)
            pfx_scale_T(1, upper ? n - i : i + 1, beta, c + i * (int64_t)ldc + (upper ? i : 0), ldc);
    if (n == 0 || k == 0 || alpha == 0) return;
    pfx_syrk_T(upper, n, k, alpha, op, c, ldc);
}
