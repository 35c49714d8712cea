#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Values are eighths from -1 to 1 and sums are short, so every result is exact, in whatever order it is summed up. */
enum {
    PFX_TRIALS = 300,
    PFX_TRIED = 1 << 15, /* words that the trials' matrices reach: at most 139 x 142 */
    PFX_WORDS = 1 << 20
  };

static uint32_t pfx_seed = 1;
static int pfx_failures = 0;

PFX_WRAPS static uint32_t pfx_random(uint32_t below)
{
    pfx_seed = pfx_seed * 1664525u + 1013904223u;
    return (pfx_seed >> 8) % below;
}

/* A size: most are small, some reach past a block. */
static int pfx_random_size(void)
{
    static const uint32_t limits[] = {4, 20, 70, 140};
    return (int)pfx_random(limits[pfx_random(4)]);
}

static double pfx_random_factor(void)
{
    static const double factors[] = {0, 1, -0.5};
    return factors[pfx_random(3)];
}

static CBLAS_LAYOUT pfx_random_layout(void) { return pfx_random(2) ? CblasRowMajor : CblasColMajor; }

static CBLAS_TRANSPOSE pfx_random_trans(void)
{
    static const CBLAS_TRANSPOSE all[] = {CblasNoTrans, CblasTrans, CblasConjTrans};
    return all[pfx_random(3)];
}

/* A leading dimension for a rows x columns matrix as it is stored. */
static int pfx_random_ld(CBLAS_LAYOUT layout, int rows, int columns)
{
    const int length = layout == CblasRowMajor ? columns : rows;
    return (length > 1 ? length : 1) + (int)pfx_random(4);
}

/* Where element (i, j) of op(A) lies. */
static int64_t pfx_place(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE trans, int64_t i, int64_t j, int64_t ld)
{
    return (layout == CblasRowMajor) == (trans == CblasNoTrans) ? i * ld + j : j * ld + i;
}

static double pfx_seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

static void *pfx_words(size_t size)
{
    void *const memory = malloc(PFX_WORDS * size);
    if (!memory) {
        printf("no memory for the self-test\n");
        exit(2);
    }
    return memory;
}
