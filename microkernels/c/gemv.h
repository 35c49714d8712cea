/* Matrix times vector, both ways round. */

/* y[j] = alpha * sum over k of x[k*xs] * B[k*ldb + j]   (+ y[j]) */
INLINE void gemvn_T(int64_t n, int64_t K, const T *x, int64_t xs, const T *B, int64_t ldb, T *y, T alpha, int accumulate)
{
    if (!accumulate)
        for (int64_t j = 0; j < n; j++)
            y[j] = 0;
    for (int64_t k = 0; k < K; k++) {
        const T scale = alpha * x[k * xs];
        for (int64_t j = 0; j < n; j++)
            y[j] += scale * B[k * ldb + j];
    }
}

/* y[i*ys] = alpha * sum over k of A[i*lda + k] * x[k]   (+ y[i*ys]) */
INLINE void gemvt_T(int64_t m, int64_t K, const T *A, int64_t lda, const T *x, T *y, int64_t ys, T alpha, int accumulate)
{
    for (int64_t i = 0; i < m; i++) {
        vec_T sum = zero_T();
        int64_t k = 0;
        for (; k + LANES_T <= K; k += LANES_T)
            sum = fma_T(load_T(A + i * lda + k), load_T(x + k), sum);
        if (k < K) {
            const tail_T tail = tail_of_T(K - k);
            sum = fma_T(load_tail_T(A + i * lda + k, tail), load_tail_T(x + k, tail), sum);
        }
        T total = 0;
        for (int l = 0; l < LANES_T; l++)
            total += sum[l];
        y[i * ys] = accumulate ? y[i * ys] + alpha * total : alpha * total;
    }
}
