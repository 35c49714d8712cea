"""Loops in C: random nests printed as C are those of the same loops in Python, and compute what the compiler does."""

from __future__ import annotations

import ast
import ctypes
import math
import re
import subprocess
from pathlib import Path
from random import Random

import numpy as np
import pytest
from fuzz.nests import Generator, _finished
from fuzz.syntax import (
    Assign,
    Binary,
    Call,
    Condition,
    DataTest,
    Expr,
    For,
    If,
    Joined,
    Local,
    Name,
    Negative,
    Not,
    Number,
    Program,
    Quotient,
    Read,
    Stmt,
    Test,
    walk,
)

import poly
from poly.frontends.python import parse_text
from poly.frontends.source import Source

SEEDS = 60
SUBSCRIPT = re.compile(r"\[[^\]]*\]")


def drawn(seed: int) -> Program:
    """A random nest of doubles."""
    rng = Random(seed)
    generator = Generator(rng, rng.choice(["any", "deep", "stencil"]))
    for family in generator.families:
        family.dtype = "f64"
    generator.constants = {}
    return _finished(generator.drawn(), rng).program


def is_common(program: Program) -> bool:
    """Whether the nest has nothing that C writes otherwise."""
    text = program.text("")
    calls = ("min(", "max(", "//", "%", "abs(-", "f64(", "linux", "unix")  # the last two are macros of gcc
    plain = all(len(name) < 5 for name in (*program.sizes, *(arg.name for arg in program.args)))
    plain = plain and not any(arg.below for arg in program.args)
    return plain and not any(call in text for call in calls) and program.reassociate and not overflows(text)


def overflows(text: str) -> bool:
    """Whether a product or sum of integers is no int, in which C computes it."""
    sums = [ast.unparse(node) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.BinOp)]
    return any(abs(eval(one)) >= 2**31 for one in sums if set(one) <= set("0123456789()+-* "))


def expr(value: Expr) -> str:
    match value:
        case Number(number):
            return repr(number)
        case Name(name):
            return name
        case Read(array, indices):
            return array + "".join(f"[{index}]" for index in indices)
        case Negative(inner):
            return f"(-{expr(inner)})"
        case Binary(op, left, right):
            return f"({expr(left)} {op} {expr(right)})"
        case Call(function, args) if function.startswith("if"):
            left, right, then, other = map(expr, args)
            return f"({left} {function[2:]} {right} ? {then} : {other})"
        case Call(function, args):
            return f"{'fabs' if function == 'abs' else function}({', '.join(map(expr, args))})"
    raise TypeError(value)


def test_of(condition: Condition) -> str:
    match condition:
        case Test(left, op, right):
            assert not isinstance(left, Quotient)
            return f"{left} {op} {right}"
        case DataTest(left, op, right):
            return f"{expr(left)} {op} {expr(right)}"
        case Joined(word, left, right):
            return f"({test_of(left)} {'&&' if word == 'and' else '||'} {test_of(right)})"
        case Not(inner):
            return f"!({test_of(inner)})"


test_of.__test__ = False  # type: ignore[attr-defined]


def lines(statement: Stmt, by_hand: bool) -> list[str]:
    """The text of a statement; `by_hand`: subscripts name an integer that each iteration advances like its counter."""
    match statement:
        case For(index, lower, upper, step, body):
            inside = [line for inner in body for line in lines(inner, by_hand)]
            low, high = " && ".join(f"{index} >= {b}" for b in lower), " && ".join(f"{index} < {b}" for b in upper)
            head = f"{index} = {lower[0]}; {high}; {index} += {step}"
            if step < 0:
                head = f"{index} = {upper[0]} - 1; {low}; {index} -= {-step}"
            own = f"{index}_k"
            other = [SUBSCRIPT.sub(lambda f: re.sub(rf"\b{index}\b", own, f[0]), line) for line in inside]
            if not by_hand or other == inside:
                return [f"for (int {head}) {{", *inside, "}"]
            start = lower[0] if step > 0 else f"{upper[0]} - 1"
            return [f"{{ int {own} = {start};", f"for (int {head}) {{", *other, f"{own} += {step}; }} }}"]
        case If(test, body, orelse):
            first = [line for inner in body for line in lines(inner, by_hand)]
            second = [line for inner in orelse for line in lines(inner, by_hand)]
            return [f"if ({test_of(test)}) {{", *first, "} else {", *second, "}"]
        case Assign(target, op, value):
            return [f"{expr(target)} {op} {expr(value)};"]
        case Local(name, _, None, value) if value is not None:
            return [f"double {name} = {expr(value)};"]
        case Local(name, _, shape):
            return [f"double {name}{''.join(f'[{extent}]' for extent in shape or ())};"]
    raise TypeError(statement)


def c_text(program: Program, by_hand: bool = False) -> str:
    sizes = [f"int {size}" for size in program.sizes]
    shaped = [f"double {a.name}{''.join(f'[{e}]' for e in a.shape or ())}" for a in program.args]
    body = [line for statement in program.body for line in lines(statement, by_hand)]
    return "\n".join([f"void {program.name}({', '.join(sizes + shaped)}) {{", *body, "}"])


def has_single_bounds(program: Program) -> bool:
    bounds = [s for s, _ in walk(program.body) if isinstance(s, For)]
    several = any(len(loop.lower if loop.step > 0 else loop.upper) > 1 for loop in bounds)
    return not several and all(arg.shape != () for arg in program.args)


def common_programs() -> list[Program]:
    found = [program for seed in range(SEEDS * 8) if is_common(program := drawn(seed)) and has_single_bounds(program)]
    return found[:SEEDS]


def by_python(program: Program) -> poly.Nest:
    names = {size: poly.sizes(size) for size in program.sizes}
    return parse_text(Source(program.text(""), "python", 1), {**names, "f64": poly.f64})


@pytest.mark.parametrize("by_hand", [False, True])
def test_loops_in_c_are_the_nest_of_the_same_loops_in_python(by_hand: bool) -> None:
    programs = common_programs()
    assert len(programs) > SEEDS // 2
    for program in programs:
        made, wanted = poly.from_c(c_text(program, by_hand)), by_python(program)
        if set(made.sizes) != set(wanted.sizes):  # an integer that is only a value is a scalar in C
            continue
        assert [s.op for s in made.statements] == [s.op for s in wanted.statements]
        assert [s.expr for s in made.statements] == [s.expr for s in wanted.statements], program.text("")
        pairs = zip(made.statements, wanted.statements, strict=True)
        for one, other in pairs:
            same = other.domain.align_params(one.domain.get_space())
            assert one.domain.align_params(same.get_space()).is_equal(same), program.text("")


SOURCES = {
    "narrow": """
        void narrow(int n, float x[n], double y[n], float z[n], char c[n], int k[n]) {
            for (int i = 0; i < n; i++) {
                float t = x[i] * 0.5 + 1;
                z[i] += t * 0.1 - y[i];
                x[i] = x[i] / 3.0 + 0.1f * i;
                y[i] = (float)y[i] + x[i] * 0.1;
                k[i] = c[i] + c[i] == 4 ? k[i] * 2 : (int)(y[i] * 3) + 1 / 2;
                c[i] = c[i] + 100;
                z[i] = -z[i] / 7 + 1.0f / 3 * x[i];
            }
        }""",
    "loops": """
        #define MAX(a, b) ((a) > (b) ? (a) : (b))
        #define MIN(a, b) ((a) < (b) ? (a) : (b))
        void loops(int n, int m, double a[n][m], double b[n], double *restrict s) {
            int i, j, last;
            for (i = n - 1; i > 0; --i)
                for (j = MAX(i - 2, 0); j <= MIN(i + 1, m - 1); j = j + 1) {
                    last = m - 1 - j;
                    if (j % 3 == 1 || i / 2 < 2) a[i][last] += b[i] * (j == 0 ? b[0] : a[i - 1][j]);
                    else if (a[i][j] > 0.5 && i < n - 1) { s[0] += a[i][j]; b[i + 1] *= 1.5; }
                }
            for (int t = 0; t < 3; t++) {
                double most = -1, local[m];
                for (j = 0; j < m; j += 2) b[j] += t;
                for (j = 0; j < m; j++) {
                    local[j] = fmax(a[0][j], b[0]);
                    if (a[0][j] > most) most = a[0][j];
                }
                double run = 0;
                for (j = 0; j < m / 2 + 1; j++) { run += b[j]; b[j] = run; }
                for (j = m - 1; j >= 0; j--) a[0][j] = local[j] - most;
            }
            s[1] = s[0] = s[0] / (n + 1);
        }""",
    "state": """
        void state(int n, int m, double a[n][m], double b[n], double s[2]) {
            double t, u = 1;
            int i, j, k = 0, last = n - 1;
            for (int q = 0; q < 2; q++)
                for (i = 0; i < n; i++) { u += a[i][0]; b[i] = u; }
            for (i = 0; i < n; i++) if (b[i] > 1 && i > 0 && b[i - 1] > 0) k++;
            for (i = 0; i < n; i++) {
                t = a[last - i][1];
                if (t > 0) { double v = t * 2; b[i] -= v; } else t = -t;
                j = m - 1;
                if (i > 2) { j = 0; b[i] += a[i][j]; }
                b[i] += t * i / 2 + (i < 3 ? a[i][i] : u) + !(b[i] > 3);
                s[0] = s[1] = b[i] + k;
            }
            t = u;
            s[1] /= t;
        }""",
    "shared": """
        void shared(int n, int m, double a[n][m], double b[n], unsigned char c[n]) {
            double w, v;
            int i, j, k;
            unsigned char u;
            for (i = 0; i < n; i++) {
                for (j = 0; j < i && j < m; j++) {
                    w = a[i][j];
                    for (k = 0; k < j; k++) w -= a[i][k] * b[k];
                    a[i][j] = w / (3 + b[j]);
                }
                for (j = 0; j < m; j++) { w = v = a[i][j]; b[i] += w * v; }
                if (b[i] > 2) { w = 1; b[i] -= w; } else { w = 2; b[i] += w + i; }
            }
            for (i = 0; i < n; i++) { k = c[i]; u = k * 2; c[i] = u + 1; }
            for (i = 0; i + 1 < n; i++) { u = c[i] - c[i + 1]; c[i] = u >> 1; }
        }""",
    "advanced": """
        void advanced(int n, int m, double a[n][m], double b[3 * n + 4], double *restrict f) {
            int j, k = 0, last = n - 1, before = n - 2, end;
            for (int i = 0; i < n; i++) {
                b[i] += a[last][0] - 2 * a[before][m - 1];
                before = last;
                last = i;
            }
            for (int i = 0; i < n; i++)
                for (int q = 0; q < m; q++) { f[k] += a[i][q]; k++; }
            j = -1;
            for (int i = n - 1; i >= 0; i--) {
                double t = b[i];
                if (t > 0) { ++j; b[j] -= a[i][0]; } else { j = 1 + j; b[j] *= 0.5; }
            }
            b[j + 1] = j;
            for (int i = 4; i < 9; i += 2) { for (int q = 2; q > 0; q--) j += 1; j -= 1; }
            end = j - 3;
            for (int i = 0; i < n; i += 3) { b[end] += a[i][0]; end += 6; b[end - 6] *= 2; end -= 3; }
            int half = 0;
            for (int i = 0; i + 1 < n; i += 2) { b[half] += b[i + 1]; half++; }
        }""",
    "divided": """
        #include <stdlib.h>
        void divided(int n, int m, double a[n][m], double b[n], int k[n]) {
            for (int i = 0; i < n; i++)
                for (int j = 0; j < m; j++) {
                    a[i][j] += a[(i + 1) % n][(j - 1 + m) % m] * b[(i + j) / 2 % 5] + (i - 4) / 3;
                    if ((j - 3) % 2 == -1 || (i - 2) % n > 1) b[(2 * i + n - 1) % n] -= a[i][0] * ((i - j) % 3);
                    k[i / 2] += (i - 5) % 4 - j / m + ((i - 5) >> 1) / 2;
                }
            double t[(n + 1) / 2];
            for (int i = 0; i < (n + 1) / 2; i++) if (a[(i + n / 2) % n][0] > 0) k[(i + 1) / 3] = (3 - i) / 2;
            for (int i = 0; i < (n + 1) / 2; i++) t[i] = b[2 * i] + abs(b[i] * 9.7);
            for (int i = 0; i < (n + 1) / 2; i++) b[i] = t[(n + 1) / 2 - 1 - i];
        }""",
    "small": """
        #include <math.h>
        #include <stdint.h>
        #include <stddef.h>
        void small(int n, short x[n], uint8_t y[n], signed char z[n], double in[n], int lambda[n]) {
            for (size_t is = 0; is < n; is++) {
                unsigned char or = x[is] * 77;
                in[is] += x[is] * y[is] - -y[is] + (z[is] < y[is]) + or;
                if (isnan(in[is]) || isinf(in[is] * HUGE_VAL - 1)) in[is] = isfinite(in[is]) + fmin(in[is], INFINITY);
                lambda[is] = (x[is] + 30000) * 2 + abs(z[is]) + (short)(y[is] * 999);
                x[is] = 2000 * x[is] * y[is];
                y[is] = y[is] + 77 * z[is] - 3u;
                in[is] += lambda[is] * 1000000L - (x[is] > 0 ? n : 2L) * (long)n * lambda[is];
                lambda[is] += is * 3u - x[is];
                z[is] += y[is] * 3;
            }
            for (size_t i = 1; i + 1 < n; i++) in[i - 1] = in[i + 1] - in[n - 1 - i];
        }""",
    "counters": """
        #include <stddef.h>
        void counters(size_t n, double x[n], double y[n], int z[n], double w[9]) {
            for (size_t i = n; i-- > 1;) x[i] -= x[i - 1];
            for (unsigned i = 8; i >= 1; i--) w[i] += w[i - 1] * 2;
            for (short i = 0; i != 9; ++i) w[i] -= i / 2;
            for (unsigned char i = 9; i--;) w[i] *= i - 3;
            for (size_t i = n; i > 0; i -= 1) z[i - 1] += 3 * (int)i;
            for (size_t i = 0; n != i; i++) {
                if (i > 2 && x[i - 3] > 0) y[i] += i - 1;
                else if (i) y[i] -= y[i - 1] * (i - 1 > 1 || i - 1 == 0 ? 2 : 3);
                x[i] = i < 2 ? 1.0 : y[i - 2] + (i - 2) / 3;
            }
        }""",
    "calls": """
        static double square(double v) { double t; t = v; if (v > 0) { t *= v; } else t = v * v; return t; }
        static int none(void) { return 0; }
        static float total(int n, const double *x) {
            double s = 0;
            for (int i = 0; i < n; i++) s += x[i];
            return s / 3;
        }
        static double length(int n, const double *x) { return sqrt(1 + square(total(n, x))); }
        static int twice(int n) { int k = 0; for (int i = 0; i < n; i++) k += 2; return k; }
        static void axpy(int n, float s, const double *x, double *y) {
            for (int i = 0; i < n; i++) y[i] += s * x[i];
            return;
        }
        static void scaled(int n, double *a, const double *b, double s) {
            double t = square(s) / 7;
            if (n > 2) axpy(n - 1, t, b + 1, &a[0]);
            s = a[0];
            a[1] += s;
        }
        static void down(int n, int m, int j, double A[n][m]) {
            for (int i = 1; i < n; i++) A[i][j] += A[i - 1][j] / 3;
        }
        void calls(int n, int m, double A[n][m], double B[m][m], double x[n]) {
            #pragma scop
            double n_2 = 2;
            none(); (void) x;
            A[1][2] -= total(m, A[0]);
            for (int i = 0; i < m; i++) scaled(m, A[i], &B[i][0], 0.1 * i);
            int four = twice(2);
            for (int j = 0; j < m; j++) { down(n, m, j, A); down(m, m, j, B); }
            for (int i = 0; i < n - 1; i++) {
                double *row = A[i], *next = row + 1, *here = &x[i];
                *here += next[0] * *(row + 2);
                for (int j = 0; j < m - 1; j++) next[j] -= 0.1 * row[j] + here[1];
            }
            for (int i = 0; i < n - 4; i++) {
                const double t = total(m, A[i]), u = 2 * length(m - 1, A[i] + 1) - t;
                if (length(m, A[i + four]) > 1.5 || t < 1) x[i] += u; else x[i + four] = square(total(m, A[0])) / 9;
            }
            for (int i = 0; i < n; i++) if (i > 2) x[i] += n_2; else axpy(1, 0.1, &A[i][1], x + i);
            #pragma endscop
        }""",
    "whole": """
        void whole(int n, int m, const int A[n][m], int x[n], short y[n], double z[n]) {
            static const double taps[2][3] = {{0.25, 0.5}, {1, -1, 2}};
            for (int i = 0; i < n; i++) {
                int all = 1, at = -1, least = 2;
                for (int j = 0; j < m; j++) {
                    if (j == i) continue;
                    if (A[i][j] < least) { least = A[i][j]; at = j; }
                    if (A[i][j] % 3 == 0) all = 0;
                    if (A[i][j] < -2) { y[i] += 5; continue; }
                    z[i] += taps[i % 2][j % 3] * (A[i][j] >> 1);
                }
                x[i] = (x[i] * 77 + 12345) / 256 - (x[i] * 1000 >> 3) % 7 + (at & 3) + (all << 4);
                y[i] /= -3;
                y[i] >>= 1;
                if (x[i] > 50) z[i] = 1;
                else if (x[i] < least) z[i] = all;
                else z[i] = at;
            }
        }""",
    "pixels": """
        #include <stdint.h>
        #include <stdlib.h>
        void pixels(int n, const uint8_t a[20 * n], const uint8_t b[20 * n], const int16_t x[20 * n],
                    const float f[20 * n], double d[n], double t[2], int s[4], uint8_t o[20 * n], int L[n][n],
                    double y[20 * n], const int k[20 * n]) {
            for (int i = 0; i < 20 * n; i++) s[0] += a[i];
            for (int i = 0; i < 20 * n; i++) { s[1] += x[i] * x[i] * 9999; s[2] -= abs(a[i] - b[i]); }
            for (int i = 0; i < 20 * n; i++) if (x[i] > s[3]) s[3] = x[i];
            for (int i = 0; i < 20 * n; i++) t[0] += (double)f[i] * f[i];
            for (int i = 0; i < 20 * n; i++) t[1] += y[i] * d[k[i] + 4];
            for (int i = 1; i < 20 * n - 1; i++) {
                int g = 2 * a[i] - a[i - 1] - a[i + 1], h = b[i + 1] - b[i - 1];
                int size = abs(g) + abs(h);
                o[i] = size > 255 ? 255 : size;
            }
            for (int i = 0; i < 5 * n; i++) {
                o[4 * i + 1] = x[i] - a[i];
                o[4 * i] = a[i];
                o[4 * i + 2] = a[i];
                o[4 * i + 3] = 200;
            }
            for (int i = 0; i < 20 * n; i++) o[i] += (a[i] * b[i] > 9 * b[i] ? a[i] * b[i] : 9 * b[i]) >> 8;
            for (int i = 0; i < 20 * n; i++) o[i] = (a[i] * b[i] + o[i] * (255 - b[i]) + 127) / 255;
            for (int i = 1; i < 20 * n - 1; i++) {
                int around = a[i - 1] + a[i + 1], old = x[i] < 0;
                o[i] += around == 3 || (around > 2 && b[i]) || old;
            }
            for (int i = 1; i < n; i++)
                for (int j = 1; j < n; j++)
                    if (a[i] == b[j]) L[i][j] = L[i - 1][j - 1] + 1;
                    else L[i][j] = L[i - 1][j] > L[i][j - 1] ? L[i - 1][j] : L[i][j - 1];
            for (int i = 0; i < 10 * n; i++) {
                double v = y[i];
                y[i] = y[20 * n - 1 - i];
                y[20 * n - 1 - i] = v;
            }
            for (int i = 0; i < 20 * n; i++) {
                float best = 1e30f;
                for (int j = 0; j < 3; j++) {
                    float apart = f[i] - j;
                    if (apart * apart < best) { best = apart * apart; o[i] = (uint8_t)(9 * best); }
                }
            }
        }""",
    "flat": """
        #include <math.h>
        #include <stddef.h>
        typedef double real;
        static void flat(size_t n, size_t m, const real *__restrict__ A, real *__restrict x, real (*restrict B)[m]) {
            for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < m; ++j) {
                    x[i] += A[i * m + j] * sqrt(fabs(B[i][j])) - A[(n - i) * m - 1 - j] / 9 + A[i * m + m - 1];
                    B[i][j] = pow(A[j + i * m], 2.0) + floor(x[i]);
                }
        }""",
}


@pytest.mark.parametrize("name", SOURCES)
def test_the_loops_compute_what_the_compiler_makes_of_them(name: str, tmp_path: Path) -> None:
    """Bitwise by the interpreter, and up to rounding by the kernel."""
    nest = poly.from_c(SOURCES[name])
    sizes = {"n": 9, "m": 6}
    rng = np.random.default_rng(4)
    arrays = []
    for array in nest.arguments:
        shape = tuple(extent.evaluate(sizes) for extent in array.shape)
        values = rng.normal(size=shape or None) if array.dtype.is_float else rng.integers(-4, 5, shape)
        arrays.append(np.asarray(values).astype(array.dtype.numpy_name))
    path = tmp_path / "text.c"
    path.write_text("#include <math.h>\n" + SOURCES[name].replace("static ", ""))
    subprocess.run(
        ["cc", "-O0", "-ffp-contract=off", "-w", "-shared", "-fPIC", path, "-o", tmp_path / "c.so", "-lm"], check=True
    )
    by_c, by_loops, by_kernel = ([array.copy() for array in arrays] for _ in range(3))
    given = [ctypes.c_int64(sizes[s]) for s in ("n", "m") if s in nest.sizes]
    getattr(ctypes.CDLL(str(tmp_path / "c.so")), name)(*given, *(a.ctypes.data_as(ctypes.c_void_p) for a in by_c))
    nest.reference(*by_loops)
    nest(*by_kernel)
    for got, known, fast in zip(by_loops, by_c, by_kernel, strict=True):
        np.testing.assert_array_equal(got, known)
        np.testing.assert_allclose(fast, known, rtol=1e-5, atol=1e-6)
    assert math.isfinite(sum(map(np.sum, by_c)))
