"""C text that checks microkernels against plain loops in higher precision, with operands next to unreadable pages.

Buffers are filled with NaN (of integers, with a number that no operand has), operands are written into them, and
everything outside the result must stay unchanged, bit for bit. Odd checks put an operand's end at the page after it,
even ones its start at the page before it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from microkernels.contract import Access
from microkernels.ctext import Elements, pack_suffix, specialise
from microkernels.custom_kernel import CustomKernel, element, strides
from microkernels.dtypes import DType
from microkernels.isa import ISA
from microkernels.kernel import OuterProduct

PRELUDE = r"""
#define _GNU_SOURCE
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
"""

BUFFERS = r"""
enum { ROOM = 1 << 20, PAGE = 1 << 16 };
typedef struct { char *low; int64_t count; T *data; T before[1 << 14]; } buffer;
static int64_t checks, failures;
static uint64_t seed = 1;

static T random_T(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return RANDOM;
}

static void reserve(buffer *x)
{
    x->low = mmap(0, ROOM + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(x->low + PAGE, ROOM, PROT_READ | PROT_WRITE);
}

/* `count` poisoned elements that end, or start, at an unreadable page. */
static T *fresh(buffer *x, int64_t count)
{
    x->count = count;
    x->data = (T *)(checks % 2 ? x->low + PAGE + ROOM - count * sizeof(T) : x->low + PAGE);
    for (int64_t i = 0; i < count; i++)
        x->data[i] = POISON;
    return x->data;
}

static void remember(buffer *x) { memcpy(x->before, x->data, x->count * sizeof(T)); }

static void fail(const char *what, int64_t m, int64_t n, int64_t K, int64_t index, double got, double want)
{
    if (failures++ < 5)
        printf("%s: m=%d n=%d K=%d at %d: got %g, expected %g\n", what, (int)m, (int)n, (int)K, (int)index, got, want);
}

/* Where `touched` is not set, nothing may have changed. */
static void check_rest(const char *what, buffer *x, const char *touched, int64_t m, int64_t n, int64_t K)
{
    for (int64_t i = 0; i < x->count; i++)
        if (!touched[i] && memcmp(x->data + i, x->before + i, sizeof(T)))
            fail(what, m, n, K, i, x->data[i], x->before[i]);
}

static buffer A, B, C;
static char touched[1 << 14];
typedef WIDE wide;
"""

GEMM_CHECK = r"""
typedef void (*kernel_T)(int64_t m, int64_t n, const T *const *a, const T *b, T *const *c,
    int64_t K, int64_t a0, int64_t b0, int64_t K1, int64_t a1, int64_t b1, int64_t K2, int64_t a2, int64_t b2,
    T alpha, int accumulate);

/* kind 0: packed A and B; 1: strided rows; 2: rows in any order, three levels of reduction. */
static void check_gemm(const char *what, kernel_T kernel, int64_t rows, int64_t columns,
                       int64_t m, int64_t n, int64_t K, int kind, int accumulate)
{
    const int64_t K1 = kind == 2 ? 2 : 1, K2 = kind == 2 ? 3 : 1;
    const int64_t a0 = kind == 0 ? rows : kind == 1 ? 1 : 2, b0 = kind == 0 ? columns : n + 3;
    const int64_t a1 = K * a0 + 1, b1 = K * b0, a2 = K1 * a1 + 2, b2 = K1 * b1 + 1;
    const int64_t row = kind == 0 ? 1 : K2 * a2 + 1, ldc = n + kind;
    const int64_t last = K ? (K - 1) : 0;
    const T alpha = kind == 1 ? (T)1 : (T)SCALE;
    fresh(&A, (m - 1) * row + (K2 - 1) * a2 + (K1 - 1) * a1 + last * a0 + 1);
    fresh(&B, (K2 - 1) * b2 + (K1 - 1) * b1 + last * b0 + n);
    fresh(&C, (m - 1) * ldc + n);
    const T *a[64];
    T *c[64];
    memset(touched, 0, sizeof touched);
    for (int64_t i = 0; i < m; i++) {
        const int64_t at = kind == 2 ? m - 1 - i : i;
        a[i] = A.data + at * row;
        c[i] = C.data + at * ldc;
        for (int64_t j = 0; j < n; j++) {
            touched[at * ldc + j] = 1;
            if (accumulate)
                c[i][j] = random_T();
        }
    }
    for (int64_t k2 = 0; k2 < K2; k2++)
        for (int64_t k1 = 0; k1 < K1; k1++)
            for (int64_t k = 0; k < K; k++) {
                for (int64_t i = 0; i < m; i++)
                    A.data[i * row + k2 * a2 + k1 * a1 + k * a0] = random_T();
                for (int64_t j = 0; j < n; j++)
                    B.data[k2 * b2 + k1 * b1 + k * b0 + j] = random_T();
            }
    remember(&C);
    kernel(m, n, a, B.data, c, K, a0, b0, K1, a1, b1, K2, a2, b2, alpha, accumulate);
    checks++;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            wide sum = 0, size = 0;
            for (int64_t k2 = 0; k2 < K2; k2++)
                for (int64_t k1 = 0; k1 < K1; k1++)
                    for (int64_t k = 0; k < K; k++) {
                        const T *b = B.data + k2 * b2 + k1 * b1 + k * b0;
                        const wide term = (wide)a[i][k2 * a2 + k1 * a1 + k * a0] * b[j];
                        sum += term;
                        size += term < 0 ? -term : term;
                    }
            const wide old = accumulate ? C.before[c[i] + j - C.data] : 0, want = alpha * sum + old;
            const wide bound = (K2 * K1 * K + 3) * EPSILON * (size + (old < 0 ? -old : old));
            const wide error = ROUNDED(c[i][j] - want);
            if (!(error <= bound && -error <= bound))
                fail(what, m, n, K, i * n + j, c[i][j], want);
        }
    check_rest(what, &C, touched, m, n, K);
}
"""

GEMM_CLIMB = r"""
static void climb_gemm(const char *what, kernel_T kernel, int64_t rows, int64_t columns)
{
    static const int64_t depths[] = {0, 1, 2, 3, 7, 16, 33};
    for (int64_t m = 1; m <= rows; m++)
        for (int64_t n = 1; n <= columns; n++)
            for (int kind = 0; kind < 3; kind++)
                for (int accumulate = 0; accumulate < 2; accumulate++) {
                    const int every = (m == rows || n == columns || m * n < 9);
                    for (int d = 0; d < 7; d++)
                        if (every || d == (m + n) % 7 || d == 4)
                            check_gemm(what, kernel, rows, columns, m, n, depths[d], kind, accumulate);
                }
}
"""

PACK = r"""
typedef void (*packer_T)(T *dst, int64_t width, int64_t lanes, const T *src, int64_t ls,
                         int64_t K, int64_t s0, int64_t p0, int64_t K1, int64_t s1, int64_t p1,
                         int64_t K2, int64_t s2, int64_t p2);
typedef void (*gatherer_T)(T *dst, int64_t width, int64_t lanes, const T *src, const int64_t *offsets,
                           int64_t K, int64_t s0, int64_t p0, int64_t K1, int64_t s1, int64_t p1,
                           int64_t K2, int64_t s2, int64_t p2);

/* kind 0: lanes contiguous; 1: k contiguous; 2: neither; 3: runs of lanes; 4: lanes anywhere, k contiguous;
   5: lanes anywhere, nothing contiguous; 6: runs of lanes, k contiguous, as in the taps on an image.
   Where turned, the panel's outermost step is the source's innermost. */
static void check_pack(const char *what, packer_T pack, gatherer_T gather,
                       int64_t width, int64_t lanes, int64_t K, int kind, int turned)
{
    const int64_t K1 = 2, K2 = 1 + K % 2;
    const int64_t s0 = kind == 1 || kind == 4 || kind == 6 ? 1 : kind == 2 || kind == 5 ? 3 : lanes + 3;
    const int64_t s1 = K * s0 + 1, s2 = K1 * s1 + 1;
    const int64_t ls = kind == 0 ? 1 : K2 * s2 + 1;
    const int64_t p0 = turned ? K2 * K1 * width : width, p1 = turned ? K2 * width : K * width;
    const int64_t p2 = turned ? width : K1 * K * width;
    int64_t offsets[256];
    for (int64_t l = 0; l < lanes; l++)
        offsets[l] = kind < 3 ? l * ls : kind == 3 ? l + l / 5 : kind == 6 ? l + l / 7 * 2
                                                                            : (lanes - 1 - l) * ls + l % 3;
    int64_t reach = 0;
    for (int64_t l = 0; l < lanes; l++)
        if (offsets[l] > reach) reach = offsets[l];
    fresh(&A, reach + (K2 - 1) * s2 + (K1 - 1) * s1 + (K ? K - 1 : 0) * s0 + 1);
    for (int64_t i = 0; i < A.count; i++)
        A.data[i] = random_T();
    fresh(&C, K2 * K1 * K * width);
    if (kind < 3)
        pack(C.data, width, lanes, A.data, ls, K, s0, p0, K1, s1, p1, K2, s2, p2);
    else
        gather(C.data, width, lanes, A.data, offsets, K, s0, p0, K1, s1, p1, K2, s2, p2);
    checks++;
    for (int64_t k2 = 0; k2 < K2; k2++)
        for (int64_t k1 = 0; k1 < K1; k1++)
            for (int64_t k = 0; k < K; k++)
                for (int64_t l = 0; l < width; l++) {
                    const T *at = C.data + k2 * p2 + k1 * p1 + k * p0 + l;
                    const T want = l < lanes ? A.data[offsets[l] + k2 * s2 + k1 * s1 + k * s0] : 0;
                    if (!(*at == want))
                        fail(what, width, lanes, K, at - C.data, *at, want);
                }
}

static void climb_pack(const char *what, packer_T pack, gatherer_T gather, int64_t width)
{
    static const int64_t depths[] = {0, 1, 3, 8, 17, 35};
    for (int64_t lanes = 1; lanes <= width; lanes++)
        for (int kind = 0; kind < 7; kind++)
            for (int d = 0; d < 6; d++)
                for (int turned = 0; turned < 2; turned++)
                    check_pack(what, pack, gather, width, lanes, depths[d], kind, turned);
}
"""

BESIDE = r"""
typedef void (*groupwise_T)(T *dst, int64_t next, int64_t width, int64_t lanes, const T *src,
                            int64_t K, int64_t s0, int64_t p0, int64_t K1, int64_t s1, int64_t p1,
                            int64_t K2, int64_t s2, int64_t p2);

/* Panels side by side, the last one partial; where turned, the outermost step of a panel is the source's innermost. */
static void check_beside(const char *what, groupwise_T pack, int64_t width, int64_t lanes, int64_t K, int turned)
{
    const int64_t K1 = 2, K2 = 1 + K % 2, panels = (lanes + width - 1) / width;
    const int64_t s0 = lanes + 3, s1 = K * s0 + 1, s2 = K1 * s1 + 1;
    const int64_t p0 = turned ? K2 * K1 * width : width, p1 = turned ? K2 * width : K * width;
    const int64_t p2 = turned ? width : K1 * K * width, next = K2 * K1 * K * width;
    fresh(&A, lanes - 1 + (K2 - 1) * s2 + (K1 - 1) * s1 + (K ? K - 1 : 0) * s0 + 1);
    for (int64_t i = 0; i < A.count; i++)
        A.data[i] = random_T();
    fresh(&C, panels * next);
    pack(C.data, next, width, lanes, A.data, K, s0, p0, K1, s1, p1, K2, s2, p2);
    checks++;
    for (int64_t k2 = 0; k2 < K2; k2++)
        for (int64_t k1 = 0; k1 < K1; k1++)
            for (int64_t k = 0; k < K; k++)
                for (int64_t l = 0; l < panels * width; l++) {
                    const T *at = C.data + l / width * next + k2 * p2 + k1 * p1 + k * p0 + l % width;
                    const T want = l < lanes ? A.data[l + k2 * s2 + k1 * s1 + k * s0] : 0;
                    if (!(*at == want))
                        fail(what, width, lanes, K, at - C.data, *at, want);
                }
}

static void climb_beside(const char *what, groupwise_T pack, int64_t width)
{
    static const int64_t depths[] = {0, 1, 3, 8, 17};
    for (int64_t lanes = 1; lanes <= 4 * width; lanes++)
        for (int d = 0; d < 5; d++)
            for (int turned = 0; turned < 2; turned++)
                check_beside(what, pack, width, lanes, depths[d], turned);
}
"""

GEMV = r"""
static void n_form_T(int64_t n, int64_t K, const T *x, int64_t xs, const T *b, int64_t ldb, T *y,
                     T alpha, int accumulate)
{
    gemvn_T(n, K, x, xs, b, ldb, y, alpha, accumulate);
}

static void t_form_T(int64_t m, int64_t K, const T *a, int64_t lda, const T *x, T *y, int64_t ys,
                     T alpha, int accumulate)
{
    gemvt_T(m, K, a, lda, x, y, ys, alpha, accumulate);
}

/* Both forms on a matrix of `outer` rows of `inner` columns: the n-form sums over rows, the t-form over columns. */
static void check_gemv(int t_form, int64_t outer, int64_t inner, int64_t gap, int accumulate)
{
    const int64_t ld = inner + gap, count = t_form ? outer : inner, K = t_form ? inner : outer;
    const int64_t xs = t_form ? 1 : 1 + gap, ys = t_form ? 1 + gap : 1;
    const T alpha = gap ? (T)1.5 : (T)1;
    const char *what = t_form ? "gemvt" : "gemvn";
    fresh(&A, outer ? (outer - 1) * ld + inner : 0);
    fresh(&B, K ? (K - 1) * xs + 1 : 0);
    fresh(&C, (count - 1) * ys + 1);
    memset(touched, 0, sizeof touched);
    for (int64_t i = 0; i < outer; i++)
        for (int64_t j = 0; j < inner; j++)
            A.data[i * ld + j] = random_T();
    for (int64_t k = 0; k < K; k++)
        B.data[k * xs] = random_T();
    for (int64_t j = 0; j < count; j++) {
        touched[j * ys] = 1;
        if (accumulate)
            C.data[j * ys] = random_T();
    }
    remember(&C);
    if (t_form)
        t_form_T(count, K, A.data, ld, B.data, C.data, ys, alpha, accumulate);
    else
        n_form_T(count, K, B.data, xs, A.data, ld, C.data, alpha, accumulate);
    checks++;
    for (int64_t j = 0; j < count; j++) {
        wide sum = 0, size = 0;
        for (int64_t k = 0; k < K; k++) {
            const wide term = (wide)B.data[k * xs] * (t_form ? A.data[j * ld + k] : A.data[k * ld + j]);
            sum += term;
            size += term < 0 ? -term : term;
        }
        const wide old = accumulate ? C.before[j * ys] : 0, want = alpha * sum + old;
        const wide bound = 2 * (K + 3) * EPSILON * (size + (old < 0 ? -old : old)), error = C.data[j * ys] - want;
        if (!(error <= bound && -error <= bound))
            fail(what, count, count, K, j, C.data[j * ys], want);
    }
    check_rest(what, &C, touched, count, count, K);
}

static void climb_gemv(void)
{
    static const int64_t some[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 67, 100};
    for (int o = 0; o < 17; o++)
        for (int i = 0; i < 17; i++)
            for (int flags = 0; flags < 8; flags++)
                if ((flags & 1) ? some[o] : some[i])
                    check_gemv(flags & 1, some[o], some[i], flags & 2 ? 3 : 0, flags >> 2);
}
"""

SCATTER = r"""
/* Tiles up to more than a vector each way, with results contiguous along the rows, or apart along both. */
static void climb_apart(void)
{
    const int64_t most = LANES_T + 2, pitch = 2 * LANES_T;
    for (int64_t rows = 1; rows <= most; rows++)
        for (int64_t columns = 1; columns <= most; columns++)
            for (int flags = 0; flags < 8; flags++) {
                const int accumulate = flags / 4; /* each at both ends of the buffers */
                const int64_t down = flags & 2 ? 1 : 3 * most, across = flags & 2 ? rows + 2 : 2;
                fresh(&A, rows * pitch);
                fresh(&C, (rows - 1) * down + (columns - 1) * across + 1);
                for (int64_t i = 0; i < rows; i++)
                    for (int64_t j = 0; j < columns; j++) {
                        A.data[i * pitch + j] = random_T();
                        if (accumulate)
                            C.data[i * down + j * across] = random_T();
                    }
                remember(&C);
                store_apart_T(C.data, down, across, A.data, pitch, rows, columns, accumulate);
                checks++;
                for (int64_t i = 0; i < rows; i++)
                    for (int64_t j = 0; j < columns; j++) {
                        const int64_t at = i * down + j * across;
                        const T want = accumulate ? A.data[i * pitch + j] + C.before[at] : A.data[i * pitch + j];
                        if (!(C.data[at] == want))
                            fail("store_apart", rows, columns, i, j, C.data[at], want);
                        C.data[at] = C.before[at];
                    }
                if (memcmp(C.data, C.before, C.count * sizeof(T)))
                    fail("store_apart, gaps", rows, columns, 0, 0, 0, 0);
            }
}

static void climb_scatter(void)
{
    for (int64_t length = 1; length <= 40; length++)
        for (int flags = 0; flags < 4; flags++) {
            const int accumulate = flags / 2; /* each at both ends of the buffers */
            fresh(&A, length);
            fresh(&C, length);
            for (int64_t j = 0; j < length; j++) {
                A.data[j] = random_T();
                if (accumulate)
                    C.data[j] = random_T();
            }
            remember(&C);
            store_run_T(C.data, A.data, length, accumulate);
            checks++;
            for (int64_t j = 0; j < length; j++) {
                const T want = accumulate ? A.data[j] + C.before[j] : A.data[j];
                if (!(C.data[j] == want))
                    fail("store_run", length, length, 0, j, C.data[j], want);
            }
        }
    climb_apart();
}
"""


def wrappers(kernel: OuterProduct) -> str:
    """An outlined copy of a kernel, so that the whole ladder calls it once."""
    parameters = """(int64_t m, int64_t n, const T *const *a, const T *b, T *const *c,
    int64_t K, int64_t a0, int64_t b0, int64_t K1, int64_t a1, int64_t b1, int64_t K2, int64_t a2, int64_t b2,
    T alpha, int accumulate)"""
    arguments = "(m, n, a, b, c, K, a0, b0, K1, a1, b1, K2, a2, b2, alpha, accumulate)"
    return f"static void run_{kernel.c_name}{parameters}\n{{\n    {kernel.c_name}{arguments};\n}}\n"


CUSTOM_BUFFERS = """
static buffer *const left_buffer = &A, *const right_buffer = &B, *const output_buffer = &C;
"""


def custom_check(kernel: CustomKernel) -> str:
    """C text of `climb_custom`, which calls a user's microkernel with all counts up to its tile, and 0 to 33 steps."""
    c = kernel.contract
    parameters = ", ".join(f"int64_t {loop}_count" for loop in c.loops)
    operands = ", ".join(", ".join((access.array, *strides(access))) for access in (c.left, c.right, c.output))
    counts = ", ".join(f"{loop}_count" for loop in c.loops)
    left, right, output = map(element, (c.left, c.right, c.output))
    at = output.removeprefix(c.output.array)[1:-1]
    return f"""{CUSTOM_BUFFERS}
static void check_custom({parameters}, int64_t gap, T alpha, int accumulate)
{{
    {_placed(c.left, "left_buffer")}
    {_placed(c.right, "right_buffer")}
    {_placed(c.output, "output_buffer")}
    memset(touched, 0, sizeof touched);
    {_each(c.left.loops, f"{left} = random_T();")}
    {_each(c.right.loops, f"{right} = random_T();")}
    {_each(c.output.loops, f"touched[{at}] = 1; if (accumulate) {output} = random_T();")}
    remember(output_buffer);
    {kernel.function}({counts}, {operands}, alpha, accumulate);
    checks++;
    const int64_t depth = {" * ".join(f"{loop}_count" for loop in c.reduce)};
    {_each(c.output.loops, _compared(kernel, at))}
    check_rest("{kernel.c_name}", output_buffer, touched, 0, {c.columns}_count, depth);
}}

static void climb_custom(void)
{{
    static const int64_t depths[] = {{0, 1, 2, 3, 7, 16, 33}};
    (void)depths;
    for (int accumulate = 0; accumulate < 2; accumulate++)
        for (int64_t gap = 0; gap < 4; gap += 3)
            {_climbed(kernel, counts)}
}}
"""


def _placed(access: Access, buffer: str) -> str:
    """C text that puts an array at the end or the start of a buffer, with gaps between its rows."""
    *others, last = access.loops
    pitch, size, lines = f"{last}_count + gap", [f"({last}_count - 1)"], []
    for loop, stride in reversed(list(zip(others, strides(access), strict=True))):
        lines.append(f"const int64_t {stride} = {pitch};")
        size.append(f"({loop}_count - 1) * {stride}")
        pitch = f"{loop}_count * {stride} + gap"
    some = " && ".join(f"{loop}_count" for loop in access.loops)
    return "\n    ".join((*lines, f"T *{access.array} = fresh({buffer}, {some} ? {' + '.join(size)} + 1 : 0);"))


def _compared(kernel: CustomKernel, at: str) -> str:
    """C text that compares an element of the result with plain loops."""
    c = kernel.contract
    left, right, output = map(element, (c.left, c.right, c.output))
    term = f"const wide term = (wide){left} * {right}; sum += term; size += term < 0 ? -term : term;"
    return f"""
        wide sum = 0, size = 0;
        {_each(c.reduce, term)}
        const wide old = accumulate ? output_buffer->before[{at}] : 0, want = alpha * sum + old;
        const wide bound = (depth + 3) * EPSILON * (size + (old < 0 ? -old : old)), error = {output} - want;
        if (!(error <= bound && -error <= bound))
            fail("{kernel.c_name}", {c.output.loops[0]}_count, {c.columns}_count, depth, {at}, {output}, want);
    """


def _climbed(kernel: CustomKernel, counts: str) -> str:
    """C text of the calls with all counts up to the tile; operands end at a page, and then start there."""
    text = f"check_custom({counts}, gap, gap ? (T)-0.75 : (T)1, accumulate);" * 2
    for loop in reversed(kernel.contract.loops):
        count, most = f"{loop}_count", kernel.tile.get(loop)
        least = int(loop in kernel.contract.output.loops)
        each = f"for (int64_t {count} = {least}; {count} <= {most}; {count}++) {{"
        given = f"for (int at_{loop} = 0; at_{loop} < 7; at_{loop}++) {{ const int64_t {count} = depths[at_{loop}];"
        text = f"{given if most is None else each} {text} }}"
    return text


def _each(loops: Sequence[str], text: str) -> str:
    """A C statement for each value of some loops."""
    heads = (f"for (int64_t {loop} = 0; {loop} < {loop}_count; {loop}++) " for loop in loops)
    return f"{''.join(heads)}{{ {text} }}"


def pack_wrappers(isa: ISA, dtype: DType, width: int) -> str:
    """Copies of the pack routines with a constant width, as in generated programs."""
    rest = "int64_t K, int64_t s0, int64_t p0, int64_t K1, int64_t s1, int64_t p1, int64_t K2, int64_t s2, int64_t p2"
    return f"""
static void pack_{width}(T *dst, int64_t width, int64_t lanes, const T *src, int64_t ls, {rest})
{{
    (void)width;
    pack_T(dst, {width}, lanes, src, ls, K, s0, p0, K1, s1, p1, K2, s2, p2);
}}
static void gather_{width}(T *dst, int64_t width, int64_t lanes, const T *src, const int64_t *offsets, {rest})
{{
    (void)width;
    pack_gather_T(dst, {width}, lanes, src, offsets, K, s0, p0, K1, s1, p1, K2, s2, p2);
}}
"""


def beside_wrapper(width: int) -> str:
    """A copy of the routine for panels side by side, with a constant width."""
    return f"""
static void beside_{width}(T *dst, int64_t next, int64_t width, int64_t lanes, const T *src, int64_t K, int64_t s0,
                           int64_t p0, int64_t K1, int64_t s1, int64_t p1, int64_t K2, int64_t s2, int64_t p2)
{{
    (void)width;
    pack_beside_T(dst, next, {width}, lanes, src, K, s0, p0, K1, s1, p1, K2, s2, p2);
}}
"""


FLOATS = {
    "RANDOM": "(T)((double)(int64_t)(seed >> 33) / (1u << 30) - 1)",
    "POISON": "NAN",
    "SCALE": "-0.75",
    "ROUNDED": "",
}
INTEGERS = {
    "RANDOM": "(T)((int64_t)(seed >> 33) % 65536 - 32768)",
    "POISON": "0x5EAF5EAF",
    "SCALE": "-70001",
    "ROUNDED": "(T)",
    "WIDE": "int64_t",
    "EPSILON": "0",
}
"""The numbers of checks; sums of integers are exact in 64 bits, and equal in the lower 32."""


def words_check(kernel: OuterProduct, left: DType, right: DType) -> str:
    """C text of `climb_LEFT_RIGHT`: operands of these types are packed in words, and the kernel's sums compared."""
    assert kernel.dot is not None
    text = WORDS
    for side, own, width in (("left", left, kernel.rows), ("right", right, kernel.columns)):
        elements = Elements(own, kernel.dot.words(side), kernel.dot)
        ending = pack_suffix(kernel.isa, kernel.dtype, elements)
        words = {"OWN": own.c_name, "ENDING": ending, "WIDTH": str(width), "SIDE": side}
        packing = PACK_WORDS
        for word, value in words.items():
            packing = packing.replace(word, value)
        text = packing + text
    words = {"LEFT": left.c_name, "RIGHT": right.c_name, "ROWS": str(kernel.rows), "COLUMNS": str(kernel.columns)}
    named = {"KERNEL": kernel.c_name, "STEPS": str(kernel.steps), "CLIMB": f"climb_{left}_{right}"}
    for word, value in (words | named).items():
        text = text.replace(word, value)
    return re.sub(r"\b(extreme_\w+|\w+_words|read_\w+)\b", rf"\1_{left}_{right}", text)


PACK_WORDS = r"""
static OWN extreme_SIDE(void)
{
    const int64_t low = (OWN)-1 < 0 ? -((int64_t)1 << (8 * sizeof(OWN) - 1)) : 0;
    const int64_t high = low + ((int64_t)1 << 8 * sizeof(OWN)) - 1, any = (int64_t)(uint32_t)random_T();
    return (OWN)(any % 4 == 0 ? low : any % 4 == 1 ? high : low + any / 4 % (high - low + 1));
}

/* Elements at the end or the start of a page, and their panel. The lanes lie: 0, ls apart, k contiguous; 1, side by
   side; 2, neither; 3, anywhere, k contiguous. The panel ends where the buffer does. */
static T *pack_SIDE_words(buffer *from, buffer *to, int64_t lanes, int64_t K, int64_t K1, int64_t K2, int kind,
                          const OWN **src, int64_t *offsets, int64_t *s)
{
    s[0] = kind == 1 ? lanes + 3 : kind == 2 ? 2 : 1;
    s[1] = K * s[0] + 1;
    s[2] = K1 * s[1] + 2;
    const int64_t apart = kind == 1 ? 1 : K2 * s[2] + 1, words = (K + STEPS - 1) / STEPS;
    int64_t reach = 0;
    for (int64_t l = 0; l < lanes; l++) {
        offsets[l] = kind == 3 ? (lanes - 1 - l) * apart : l * apart;
        reach = offsets[l] > reach ? offsets[l] : reach;
    }
    const int64_t count = reach + (K2 - 1) * s[2] + (K1 - 1) * s[1] + (K ? K - 1 : 0) * s[0] + 1;
    OWN *data = (OWN *)(checks % 2 ? from->low + PAGE + ROOM - count * sizeof(OWN) : from->low + PAGE);
    for (int64_t i = 0; i < count; i++)
        data[i] = extreme_SIDE();
    *src = data;
    T *panel = fresh(to, (K2 * K1 * words + 1) * WIDTH) + WIDTH;
    const int64_t p0 = WIDTH, p1 = words * WIDTH, p2 = K1 * words * WIDTH;
    if (kind == 3)
        pack_gather_ENDING(panel, WIDTH, lanes, data, offsets, K, s[0], p0, K1, s[1], p1, K2, s[2], p2);
    else if (kind == 1)
        pack_across_ENDING(panel, WIDTH, lanes, data, K, s[0], p0, K1, s[1], p1, K2, s[2], p2);
    else if (kind == 0)
        pack_along_ENDING(panel, WIDTH, lanes, data, apart, K, p0, K1, s[1], p1, K2, s[2], p2);
    else
        pack_ENDING(panel, WIDTH, lanes, data, apart, K, s[0], p0, K1, s[1], p1, K2, s[2], p2);
    return panel;
}
"""

WORDS = r"""
static buffer read_left, read_right;

static void check_words(int64_t m, int64_t n, int64_t K, int kind, int accumulate)
{
    const int64_t K1 = kind == 2 ? 2 : 1, K2 = kind == 2 ? 3 : 1, words = (K + STEPS - 1) / STEPS, ldc = n + kind;
    const T alpha = kind == 1 ? (T)1 : (T)SCALE;
    const LEFT *from_left;
    const RIGHT *from_right;
    int64_t left_offsets[64], right_offsets[64], s[3], t[3];
    const T *pa = pack_left_words(&read_left, &A, m, K, K1, K2, kind, &from_left, left_offsets, s);
    const T *pb = pack_right_words(&read_right, &B, n, K, K1, K2, (kind + m) % 4, &from_right, right_offsets, t);
    const T *a[64];
    T *c[64];
    fresh(&C, (m - 1) * ldc + n);
    memset(touched, 0, sizeof touched);
    for (int64_t i = 0; i < m; i++) {
        a[i] = pa + i;
        c[i] = C.data + i * ldc;
        for (int64_t j = 0; j < n; j++) {
            touched[i * ldc + j] = 1;
            if (accumulate)
                c[i][j] = random_T();
        }
    }
    remember(&C);
    KERNEL(m, n, a, pb, c, K2 * K1 * words, ROWS, COLUMNS, 1, 0, 0, 1, 0, 0, alpha, accumulate);
    checks++;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            int64_t sum = 0;
            for (int64_t k2 = 0; k2 < K2; k2++)
                for (int64_t k1 = 0; k1 < K1; k1++)
                    for (int64_t k = 0; k < K; k++)
                        sum += (int64_t)from_left[left_offsets[i] + k2 * s[2] + k1 * s[1] + k * s[0]]
                               * from_right[right_offsets[j] + k2 * t[2] + k1 * t[1] + k * t[0]];
            const uint32_t want = (uint32_t)alpha * (uint32_t)sum + (accumulate ? (uint32_t)C.before[i * ldc + j] : 0);
            if ((uint32_t)c[i][j] != want)
                fail("KERNEL", m, n, K, i * ldc + j, c[i][j], (int32_t)want);
        }
    check_rest("KERNEL", &C, touched, m, n, K);
}

static void CLIMB(void)
{
    static const int64_t depths[] = {0, 1, 2, 3, 4, 5, 33, 67};
    reserve(&read_left);
    reserve(&read_right);
    for (int64_t m = 1; m <= ROWS; m++)
        for (int64_t n = 1; n <= COLUMNS; n += m == ROWS || n < 3 || n > COLUMNS - 3 ? 1 : 5)
            for (int kind = 0; kind < 4; kind++)
                for (int accumulate = 0; accumulate < 2; accumulate++)
                    check_words(m, n, depths[(m + n + kind) % 8], kind, accumulate);
}
"""


def program(isa: ISA, dtype: DType, sources: Sequence[str], checks: str, calls: Sequence[str]) -> str:
    """A program that runs the calls and prints `N checks, N failures`."""
    body = BUFFERS + checks + "\nint main(void)\n{\n    reserve(&A);\n    reserve(&B);\n    reserve(&C);\n"
    body += "".join(f"    {call}\n" for call in calls)
    body += '    printf("%d checks, %d failures\\n", (int)checks, (int)failures);\n    return failures != 0;\n}\n'
    for word, text in (FLOATS if dtype.is_float else INTEGERS).items():
        body = body.replace(word, text)
    body = body.replace("WIDE", "double" if dtype.size == 4 else "long double")
    body = body.replace("EPSILON", "FLT_EPSILON" if dtype.size == 4 else "DBL_EPSILON")
    return PRELUDE + "".join(sources) + specialise(body, isa, dtype)
