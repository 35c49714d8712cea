"""`poly.from_c`: what becomes an argument, a size or a local, and how C's text reaches the nest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import poly
from codegen.ir.expr import Cast, Const
from poly.commands.nestfile import load_nest, open_nests


def arguments(text: str, **options: object) -> tuple[str, ...]:
    return tuple(map(str, poly.from_c(text + "\n", **options).arguments))  # type: ignore[arg-type]


def test_arguments_keep_their_order_and_integers_in_bounds_are_sizes() -> None:
    head = "void f(float c, int n, int k, double x[n], int m, float y[m])"
    text = head + "{ for (int i = 0; i < n; i++) { x[i] = k; y[i] = c; } }"
    nest = poly.from_c(text)
    assert arguments(text) == ("c: f32", "k: i32", "x: f64[n]", "y: f32[m]")
    assert nest.sizes == ("n", "m")


def test_extents_that_c_does_not_tell_follow_from_the_loops() -> None:
    loop = "for (int i = 0; i < n; i++) for (int j = 0; j <= i; j++)"
    assert arguments(f"void f(int n, double *x) {{ {loop} x[i + j + 1] = 0; }}") == ("x: f64[2*n]",)
    assert arguments(f"void f(int n, double (*x)[n]) {{ {loop} x[i][j] = 0; }}") == ("x: f64[n, n]",)
    assert arguments(f"void f(int n, int m, double x[]) {{ {loop} x[(i + 1)*m + j] = 0; }}") == ("x: f64[n + 1, m]",)
    cube = "x[(i*m + j)*n + i] = x[j + n*(m*i + j)]"
    assert arguments(f"void f(int n, int m, double *x) {{ {loop} {cube}; }}") == ("x: f64[n, m, n]",)


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        ("x[(i*m + j)*3 + c] = x[3*(j + i*m)]", "n, 3*m"),
        ("x[i*(2*m) + m + j] = x[2*i*m + j]", "2*n, m"),
        ("x[2*i*m + j] = c", "2*n - 1, m"),
        ("x[(i*m + m - 1 - j)*2 + 1] = c", "n, 2*m"),
        ("x[((c*n + i)*m + j)*2] = x[((c*n + i)*m + j)*2 + 1]", "3, n, 2*m"),
    ],
)
def test_elements_of_several_values_in_one_dimension(body: str, shape: str) -> None:
    loops = "for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) for (int c = 0; c < 3; c++)"
    nest = poly.from_c(f"void f(int n, int m, double *x) {{ {loops} {body}; }}")
    assert tuple(map(str, nest.arguments)) == (f"x: f64[{shape}]",)
    assert poly.compile(nest).source


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        ("c[i] = p[(j > 1 ? j - 1 : 0)*n + i]", "n, n"),
        ("c[i] = p[MAX(j - 5, 0)*n + i]", "n, n"),
        ("c[i] = p[MIN(j + 5, n - 1)*n + i]", "n, n"),
        ("c[i] = p[(i*n + j/2)*3]", "n, 3*n"),
    ],
)
def test_rows_reach_as_far_as_a_choice_does_for_any_size(body: str, shape: str) -> None:
    """A choice of `j - 1` and 0 reaches row 0 at n = 1, too; a column that divides says not where its row ends."""
    macros = "#define MIN(a, b) ((a) < (b) ? (a) : (b))\n#define MAX(a, b) ((a) > (b) ? (a) : (b))\n"
    loops = "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++)"
    nest = poly.from_c(f"{macros}void f(int n, const double *restrict p, double c[n]) {{ {loops} {body}; }}")
    assert tuple(map(str, nest.arguments)) == (f"p: f64[{shape}]", "c: f64[n]")


def test_of_a_choice_in_a_condition_one_side_may_have_no_data() -> None:
    text = """
        void f(int n, const short b[n], unsigned char a[n], unsigned char c[n]) {
            for (int i = 0; i < n; i++) {
                if ((i <= 2 ? b[i] : 3) < 3L) { a[i] += 1; }
                else { c[i] += 2; }
            }
        }"""
    b, a, c = np.array([2, 3, 4, 0], np.int16), np.zeros(4, np.uint8), np.zeros(4, np.uint8)
    poly.from_c(text).reference(b, a, c)
    np.testing.assert_array_equal((a, c), ([1, 0, 0, 0], [0, 2, 2, 2]))


def test_rows_in_one_dimension_may_be_chosen_and_divided() -> None:
    text = """
        #define MIN(a, b) ((a) < (b) ? (a) : (b))
        static int within(int v, int low, int high) { return v < low ? low : v > high ? high : v; }
        void f(int h, int w, const float *restrict x, const float *restrict small, float *restrict y) {
            for (int i = 0; i < 2 * h; i++)
                for (int j = 0; j < w; j++) {
                    int below = MIN(i + 2, 2 * h - 1);
                    float half = small[(i / 2) * w + j / 2 + i % 2];
                    y[i * w + j] = x[below * w + within(j - 1, 0, w - 1)] - half;
                }
        }"""
    nest = poly.from_c(text)
    assert tuple(map(str, nest.arguments)) == ("x: f32[2*h, w]", "small: f32[h, w]", "y: f32[2*h, w]")
    h, w = 5, 6
    x, small = (np.random.default_rng(0).random((n, w)).astype(np.float32) for n in (2 * h, h))
    y = np.full((2 * h, w), np.nan, np.float32)
    nest(x, small, y)
    i, j = np.indices(y.shape)
    wanted = x[np.minimum(i + 2, 2 * h - 1), np.maximum(j - 1, 0)] - small[i // 2, j // 2 + i % 2]
    np.testing.assert_array_equal(y, wanted)


def test_what_is_declared_before_a_scop_is_local_constant_or_argument() -> None:
    text = """
        static double G[8];
        enum { K = 4 };
        typedef float real;
        void f(int n, real x[n]) {
            double eps = 0.5, w, z[n];
            real v[4];
            int i;
            v[0] = 1;
        #pragma scop
            for (i = 0; i < n; i++) { w = x[i]; z[i] = w * eps; x[i] = z[i] + v[i % K] * G[0]; }
        #pragma endscop
        }"""
    text = text.replace("v[i % K]", "v[0] * K")
    nest = poly.from_c(text)
    assert tuple(map(str, nest.arguments)) == ("G: f64[8]", "x: f32[n]", "v: f32[4]")
    assert {array.name for array in nest.arrays if array.kind == "local"} == {"w", "z"}


def test_blocks_that_begin_with_a_value_of_their_own_have_a_local_of_their_own() -> None:
    text = """
        void f(int n, double A[n][n]) {
            double w;
            for (int i = 0; i < n; i++) {
                for (int j = 0; j < i; j++) { w = A[i][j]; A[i][j] = w / A[j][j]; }
                for (int j = i; j < n; j++) { %s; w = A[i][j]; A[i][j] = 2 * w; }
            }
        }"""
    apart, one = poly.from_c(text % ""), poly.from_c(text % "A[0][0] = w")
    assert {array.name: len(array.shape) for array in apart.arrays if array.kind == "local"} == {"w": 2, "w_2": 2}
    assert {array.name: len(array.shape) for array in one.arrays if array.kind == "local"} == {"w": 0}


def test_macros_comments_and_spellings(tmp_path: Path) -> None:
    (tmp_path / "defs.h").write_text("#define SQUARE(v) \\\n  ((v) * (v)) // twice\n")
    text = """
        #include <math.h>
        #include <pthread.h>
        #include <setjmp.h>
        #include <stddef.h>
        #include <stdio.h>
        #include "defs.h"
        struct job { pthread_mutex_t lock; jmp_buf *back; __typeof__(int *) at; } all[offsetof(struct job, at)];
        static __thread _Float128 wide;
        __attribute__((noinline)) static inline void f(long n, const float *__restrict__ x, float *__restrict y) {
            /* a comment */ _Pragma("omp simd")
            for (long i = 0; i < n; ++i) y[i] = SQUARE(x[i]) * (float)SCALE + sqrtf(x[i]); // M_PI
        }
        int main(void) { printf("%p", NULL); return 0; }"""
    nest = poly.from_c(text, "f", include=[tmp_path], define={"SCALE": 3})
    x, y = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    nest(x, y)
    np.testing.assert_allclose(y, x * x * 3 + np.sqrt(x), rtol=1e-6)


def test_types_of_system_headers() -> None:
    text = "#include <stdint.h>\n#include <stdlib.h>\nstatic int_least8_t one(void) { return 1; }\n"
    text += "void f(uint_least8_t x[3], int_fast16_t y[3], div_t *q) {"
    nest = poly.from_c(f"{text} x[0] = y[0]; }}")
    assert tuple(map(str, nest.arguments)) == ("x: u8[3]", "y: i64[3]")
    with pytest.raises(poly.SpecError, match="the structure with the member `q->rem` is not declared"):
        poly.from_c(f"{text} y[0] = q[0].rem; }}")


def test_a_nest_from_c_is_scheduled_and_compiled_as_any_other(tmp_path: Path) -> None:
    path = tmp_path / "gemm.c"
    path.write_text(
        """
        void gemm(int n, double alpha, double C[n][n], double A[n][n], double B[n][n]) {
            for (int i = 0; i < n; i++)
                for (int j = 0; j < n; j++)
                    for (int k = 0; k < n; k++)
                        C[i][j] += alpha * A[i][k] * B[k][j];
        }"""
    )
    nest = poly.from_c(path, function="gemm")
    assert poly.schedule(nest).tile(i=4, j=8).loops
    kernel = poly.compile(nest, n=48, records=False)
    A, B, C = (np.random.default_rng(seed).normal(size=(48, 48)) for seed in range(3))
    expected = C + 0.5 * A @ B
    kernel(0.5, C, A, B)
    np.testing.assert_allclose(C, expected, rtol=1e-12)
    assert "microkernel" in repr(kernel.schedule)


@pytest.mark.parametrize("kind", ["short", "signed char", "unsigned char", "unsigned short"])
@pytest.mark.parametrize(
    "update", ["if (x[i] < m) m = x[i];", "m = x[i] < m ? x[i] : m;", "m = (%s)(m <= x[i] ? m : x[i]);"]
)
def test_the_least_of_small_integers_is_a_reduction_although_c_promotes_them(kind: str, update: str) -> None:
    def op(own: str) -> str:
        body = f"{own} m = 0; for (int i = 0; i < n; i++) {{ {update.replace('%s', own)} }} y[0] = m;"
        return poly.from_c(f"void f(int n, {kind} x[n], {own} y[1]) {{ {body} }}").statements[1].op

    assert op(kind) == "min"
    other = kind.removeprefix("unsigned ") if kind.startswith("unsigned") else "unsigned " + kind.split()[-1]
    assert op(other) == "=", "an element converted to another type may be the less one only before or behind that"


def test_a_float_that_meets_a_double_is_computed_as_one() -> None:
    nest = poly.from_c("void f(float x[2], float s[1]) { x[0] = x[0] * 0.5; s[0] += x[1] * 0.1; }")
    halved, added = nest.statements
    assert halved.op == "*" and halved.expr == Const(0.5)
    assert isinstance(added.expr, Cast) and added.expr.dtype == poly.f32


def test_commands_take_c_files(tmp_path: Path) -> None:
    path = tmp_path / "axpy.c"
    head, loop = "void axpy(int n, double a, double x[n], double y[n])", "for (int i = 0; i < n; i++)"
    path.write_text(f"{head} {{ {loop} y[i] += a * x[i]; }}")
    assert load_nest(f"{path}:axpy").sizes == ("n",)
    opened = open_nests(str(path))
    assert [nest.name for nest in opened.nests] == ["axpy"]
    assert opened.sources == (path,)
