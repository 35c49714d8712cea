/* C = beta C for m rows of n elements; where beta is 0, C is not read. */
static void pfx_scale_T(int64_t m, int64_t n, T beta, T *c, int64_t ldc)
{
    for (int64_t i = 0; i < m; i++) {
        T *const row = c + i * ldc;
        if (beta == 0)
            for (int64_t j = 0; j < n; j++)
                row[j] = 0;
        else if (beta != 1)
            for (int64_t j = 0; j < n; j++)
                row[j] *= beta;
    }
}

/* An operand of a product as it lies: neighbours are `down` and `along` apart, in a column and in a row; one is 1. */
typedef struct {
    const T *at;
    int64_t down, along;
} pfx_operand_T;

PFX_INLINE pfx_operand_T pfx_part_T(pfx_operand_T a, int64_t i, int64_t j)
{
    a.at += i * a.down + j * a.along;
    return a;
}

PFX_INLINE pfx_operand_T pfx_turned_T(pfx_operand_T a)
{
    const int64_t down = a.down;
    a.down = a.along;
    a.along = down;
    return a;
}

/* C += alpha A B. What it needs for a panel of B lies in `memory`. */
PFX_INLINE void pfx_gemm_within_T(void *memory, int64_t threads, int64_t m, int64_t n, int64_t k, T alpha,
                                  pfx_operand_T a, pfx_operand_T b, T *c, int64_t ldc)
{
    const int kernel = pfx_gemm_panels_T_select(pfx_chosen_isa(), m, k, n, a.down, a.along, b.down, b.along, ldc);
    pfx_gemm_panels_T_run(kernel, m, k, n, a.down, a.along, b.down, b.along, ldc, alpha, a.at, b.at, c, threads,
                          pfx_aligned(memory, 1));
}

PFX_NOINLINE void pfx_gemm_on_stack_T(int64_t m, int64_t n, int64_t k, T alpha, pfx_operand_T a, pfx_operand_T b, T *c,
                                      int64_t ldc)
{
    char memory[PFX_STACK];
    pfx_gemm_within_T(memory, 1, m, n, k, alpha, a, b, c, ldc);
}

/* C += alpha A B. Where there is no memory for a panel, half of the reduction is done after the other. */
static void pfx_gemm_by_panels_T(int64_t m, int64_t n, int64_t k, T alpha, pfx_operand_T a, pfx_operand_T b, T *c,
                                 int64_t ldc)
{
    const int64_t threads = pfx_threads_for((double)m * (double)n * (double)k), half = k / 2;
    const int64_t bytes = pfx_with_slack(pfx_gemm_panels_T_most(m, k, n, threads));
    void *const memory = bytes > PFX_STACK ? pfx_allocate(bytes) : NULL;
    if (memory) {
        pfx_gemm_within_T(memory, threads, m, n, k, alpha, a, b, c, ldc);
        pfx_release(memory);
    } else if (pfx_with_slack(pfx_gemm_panels_T_most(m, k, n, 1)) <= PFX_STACK) {
        pfx_gemm_on_stack_T(m, n, k, alpha, a, b, c, ldc);
    } else {
        pfx_gemm_by_panels_T(m, n, half, alpha, a, b, c, ldc);
        pfx_gemm_by_panels_T(m, n, k - half, alpha, pfx_part_T(a, 0, half), pfx_part_T(b, half, 0), c, ldc);
    }
}

/* C += alpha A B where the columns of A are contiguous: blocks of it are copied, so that they share no places in a cache. */
static void pfx_gemm_by_blocks_T(int64_t m, int64_t n, int64_t k, T alpha, pfx_operand_T a, pfx_operand_T b, T *c,
                                 int64_t ldc)
{
    enum { ROWS = 768, GRAIN = 48, GAP = 24, DEPTH = 2048 / sizeof(T) };
    const int64_t blocks = (m + ROWS - 1) / ROWS;
    const int64_t most = ((m + blocks - 1) / blocks + GRAIN - 1) / GRAIN * GRAIN;
    T *const block = (T *)pfx_allocate((most + GAP) * DEPTH * (int64_t)sizeof(T));
    if (!block) {
        pfx_gemm_by_panels_T(m, n, k, alpha, a, b, c, ldc);
        return;
    }
    for (int64_t p = 0; p < k; p += DEPTH)
        for (int64_t i = 0; i < m; i += most) {
            const int64_t depth = pfx_least(k - p, DEPTH), rows = pfx_least(m - i, most);
            const pfx_operand_T copy = {block, 1, most + GAP};
            for (int64_t q = 0; q < depth; q++)
                for (int64_t r = 0; r < rows; r++)
                    block[q * copy.along + r] = a.at[(p + q) * a.along + i + r];
            pfx_gemm_by_panels_T(rows, n, depth, alpha, copy, pfx_part_T(b, p, 0), c + i * ldc, ldc);
        }
    pfx_release(block);
}

/* C += alpha A B without any copy: the rows of B are contiguous. */
PFX_INLINE void pfx_gemm_in_place_T(int64_t m, int64_t n, int64_t k, T alpha, pfx_operand_T a, pfx_operand_T b, T *c,
                                    int64_t ldc)
{
    const int kernel = pfx_gemm_small_T_select(pfx_chosen_isa(), m, k, n, a.down, a.along, b.down, ldc);
    pfx_gemm_small_T_run(kernel, m, k, n, a.down, a.along, b.down, ldc, alpha, a.at, b.at, c, 1, NULL);
}

/* C += alpha A B in the way that suits the operands' sizes. */
static void pfx_gemm_T(int64_t m, int64_t n, int64_t k, T alpha, pfx_operand_T a, pfx_operand_T b, T *c, int64_t ldc)
{
    enum { FEW_ROWS = 24, SMALL = 1 << 20, FEW_COLUMNS = 64, LARGE = 131072 / sizeof(T) };
    if (n == 1)
        pfx_gemv_T(m, k, alpha, a.at, a.down, a.along, b.at, b.down, c, ldc);
    else if (m == 1)
        pfx_gemv_T(n, k, alpha, b.at, b.along, b.down, a.at, a.along, c, 1);
    else if (b.along == 1 && (m <= FEW_ROWS || (double)m * (double)n * (double)k <= (double)SMALL))
        pfx_gemm_in_place_T(m, n, k, alpha, a, b, c, ldc);
    else if (a.along != 1 && n > FEW_COLUMNS && (double)m * (double)k > (double)LARGE)
        pfx_gemm_by_blocks_T(m, n, k, alpha, a, b, c, ldc);
    else
        pfx_gemm_by_panels_T(m, n, k, alpha, a, b, c, ldc);
}
