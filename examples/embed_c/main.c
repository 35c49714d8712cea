/* Attention's weights for random queries and keys, by two functions of one header. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "attention.h"

enum { M = 300, N = 200, D = 64, THREADS = 2 };

static float Q[M][D], K[N][D], S[M][N], P[M][N];

static void fill(float *values, int count)
{
    for (int i = 0; i < count; i++)
        values[i] = (float)rand() / (float)RAND_MAX - 0.5f;
}

/* Every function returns a status. Unless it is OK, nothing was changed. */
static void must(attention_status status)
{
    if (status != ATTENTION_OK) {
        fprintf(stderr, "%s\n", attention_status_text(status));
        exit(1);
    }
}

int main(void)
{
    fill(&Q[0][0], M * D);
    fill(&K[0][0], N * D);

    /* Allocate memory for packed panels once, so that no call allocates. A negative result is a negated status. */
    const int64_t bytes = attention_scores_workspace_size(M, D, N, THREADS);
    if (bytes < 0)
        must((attention_status)-bytes);
    void *workspace = malloc((size_t)bytes + 1);

    /* The stride after each matrix is the number of elements from row to row; 0 means that there are no gaps. */
    must(attention_scores_with_workspace(M, D, N, 0.125f, &Q[0][0], 0, &K[0][0], 0, &S[0][0], 0, THREADS, workspace, bytes));

    /* If speed does not matter, the plain call allocates its own memory. */
    must(attention_softmax(M, N, &S[0][0], N, &P[0][0], N, THREADS));

    for (int i = 0; i < M; i++) {
        double sum = 0;
        for (int j = 0; j < N; j++)
            sum += (double)P[i][j];
        if (fabs(sum - 1) > 1e-4) {
            fprintf(stderr, "row %d sums up to %g\n", i, sum);
            return 1;
        }
    }
    printf("%d rows, each of which sums up to 1\n", M);

    /* Arguments that do not fit are refused. */
    printf("a stride shorter than its row: %s\n", attention_status_text(attention_softmax(M, N, &S[0][0], N - 1, &P[0][0], N, 1)));
    free(workspace);
    return 0;
}
