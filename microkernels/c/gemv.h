/* Matrix times vector, both ways round. Each element of the matrix is read once, by whole vectors. */

enum {
    GEMV_ROWS_T = 8,                  /* streams that the hardware prefetches well at a time; software prefetch slows them */
    GEMV_BLOCK_T = (int)(16384 / sizeof(T)), /* of y, which stays in L1 */
};

/* A few rows of B times their elements of x, added to y: y passes through registers once for all of them. `first` says that
   y starts as 0. The number of rows must be a constant. */
INLINE void gemvn_rows_T(int64_t rows, int64_t n, const T *scale, GLOBAL const T *B, int64_t ldb, GLOBAL T *y,
                         int first)
{
    int64_t j = 0;
    for (; j + LANES_T <= n; j += LANES_T) {
        vec_T sum = first ? zero_T() : load_T(y + j);
        UNROLL
        for (int64_t r = 0; r < rows; r++)
            sum = fma_T(broadcast_T(scale[r]), load_T(B + r * ldb + j), sum);
        store_T(y + j, sum);
    }
    if (j < n) {
        const tail_T tail = tail_of_T(n - j);
        vec_T sum = first ? zero_T() : load_tail_T(y + j, tail);
        UNROLL
        for (int64_t r = 0; r < rows; r++)
            sum = fma_T(broadcast_T(scale[r]), load_tail_T(B + r * ldb + j, tail), sum);
        store_tail_T(y + j, sum, tail);
    }
}

/* y[j] = alpha * sum over k of x[k*xs] * B[k*ldb + j]   (+ y[j]) */
INLINE void gemvn_T(int64_t n, int64_t K, GLOBAL const T *x, int64_t xs, GLOBAL const T *B, int64_t ldb,
                    GLOBAL T *y, T alpha, int accumulate)
{
    if (K == 0 && !accumulate)
        for (int64_t j = 0; j < n; j++)
            y[j] = 0;
    for (int64_t block = 0; block < n; block += GEMV_BLOCK_T) {
        const int64_t here = least_T(n - block, GEMV_BLOCK_T);
        for (int64_t k = 0, some; k < K; k += some) {
            const int64_t left = K - k;
            const int first = k == 0 && !accumulate;
            GLOBAL const T *rows = B + k * ldb + block;
            T scale[GEMV_ROWS_T];
            some = left >= GEMV_ROWS_T ? (int64_t)GEMV_ROWS_T : left >= 2 ? 2 : 1;
            for (int64_t r = 0; r < some; r++)
                scale[r] = alpha * x[(k + r) * xs];
            if (some == GEMV_ROWS_T)
                gemvn_rows_T(GEMV_ROWS_T, here, scale, rows, ldb, y + block, first);
            else if (some == 2)
                gemvn_rows_T(2, here, scale, rows, ldb, y + block, first);
            else
                gemvn_rows_T(1, here, scale, rows, ldb, y + block, first);
        }
    }
}

/* Dot products of a few rows of A with x, which is loaded once for all of them. The number of rows must be a constant. */
INLINE void gemvt_rows_T(int64_t rows, int64_t K, GLOBAL const T *A, int64_t lda, GLOBAL const T *x,
                         GLOBAL T *y, int64_t ys, T alpha, int accumulate)
{
    /* Sums of a row, so that multiply-adds need not wait for each other. */
    const int64_t chains = rows > 2 ? GEMV_ROWS_T / rows : 4, step = chains * LANES_T;
    vec_T sum[GEMV_ROWS_T][4];
    UNROLL
    for (int64_t r = 0; r < rows; r++) {
        UNROLL
        for (int64_t v = 0; v < chains; v++)
            sum[r][v] = zero_T();
    }
    int64_t k = 0;
    UNROLL_BY_2
    for (; k + step <= K; k += step) {
        UNROLL
        for (int64_t v = 0; v < chains; v++) {
            const vec_T part = load_T(x + k + v * LANES_T);
            UNROLL
            for (int64_t r = 0; r < rows; r++)
                sum[r][v] = fma_T(load_T(A + r * lda + k + v * LANES_T), part, sum[r][v]);
        }
    }
    for (; k + LANES_T <= K; k += LANES_T) {
        const vec_T part = load_T(x + k);
        UNROLL
        for (int64_t r = 0; r < rows; r++)
            sum[r][0] = fma_T(load_T(A + r * lda + k), part, sum[r][0]);
    }
    if (k < K) {
        const tail_T tail = tail_of_T(least_T(K - k, LANES_T));
        const vec_T part = load_tail_T(x + k, tail);
        UNROLL
        for (int64_t r = 0; r < rows; r++)
            sum[r][0] = fma_T(load_tail_T(A + r * lda + k, tail), part, sum[r][0]);
    }
    UNROLL
    for (int64_t r = 0; r < rows; r++) {
        UNROLL
        for (int64_t v = 1; v < chains; v++)
            sum[r][0] += sum[r][v];
        const T total = total_T(sum[r][0]);
        y[r * ys] = accumulate ? y[r * ys] + alpha * total : alpha * total;
    }
}

/* y[i*ys] = alpha * sum over k of A[i*lda + k] * x[k]   (+ y[i*ys]) */
INLINE void gemvt_T(int64_t m, int64_t K, GLOBAL const T *A, int64_t lda, GLOBAL const T *x,
                    GLOBAL T *y, int64_t ys, T alpha, int accumulate)
{
    int64_t i = 0;
    for (; i + GEMV_ROWS_T <= m; i += GEMV_ROWS_T)
        gemvt_rows_T(GEMV_ROWS_T, K, A + i * lda, lda, x, y + i * ys, ys, alpha, accumulate);
    for (; i + 4 <= m; i += 4)
        gemvt_rows_T(4, K, A + i * lda, lda, x, y + i * ys, ys, alpha, accumulate);
    for (; i + 2 <= m; i += 2)
        gemvt_rows_T(2, K, A + i * lda, lda, x, y + i * ys, ys, alpha, accumulate);
    if (i < m)
        gemvt_rows_T(1, K, A + i * lda, lda, x, y + i * ys, ys, alpha, accumulate);
}
