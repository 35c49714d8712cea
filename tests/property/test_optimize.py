"""`poly optimize`: programs compute the same with their scops rewritten, whatever the code around these does."""

from __future__ import annotations

import subprocess
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner, Result
from headers import need_tool

from poly.commands import poly
from poly.rewriting import rewrite, rewritten

SEEDS = (1, 2)
FUNCTIONS = 10

BEFORE = ["s += x[0];", "t = y[n - 1];", "for (i = 0; i < n; i++) s += i;", "int k = 3;", ""]
SCOP = [
    "for (i = 0; i < n; i++) x[i] = y[i] + s;",
    "for (i = 0; i < n; i++) s += x[i];",
    "for (i = 0; i < n; i++) { t = y[i]; y[i] = t + s; }",
    "t = x[0]; for (i = 0; i < n; i++) y[i] += t;",
    "for (i = 1; i < n; i++) x[i] = x[i - 1] + y[i];",
    "for (i = 0; i < n; i++) for (int j = 0; j < m; j++) z[i*m + j] = x[i] + y[j];",
    "for (i = 0; i < n; i++) if (i > 2) t = y[i];",
    "for (i = 0; i < n; i++) x[i] = own(y[i], i) - local[0];",
    "for (i = 0; i < 4; i++) local[i] = x[0] + i; for (i = 0; i < n; i++) y[i] += local[3];",
    "for (i = 0; i < n; i++) y[i] += G[at[i + 1] - 1];",
    "for (unsigned u = n; u-- > 0;) x[u] += y[u];",
    "for (unsigned char u = 1; u != n; u++) y[u - 1] = x[u] - s;",
    "for (unsigned u = 2; u < (unsigned)m - 1; u++) z[u*m + 2] += z[(u - 2)*m];",
    "for (i = n - 1; i > 0; i--) G[i] = x[i] + K * G[i - 1]; total = G[n - 1];",
    "for (w = 0; w < (unsigned)n; w++) y[w] -= x[w]; last = 2*n - 1;",
    "last = 3; for (i = 0; i < n; i++) { y[i] += 2; last = n + 1; }",
    "for (i = n; i < m; i++) y[i] += s; for (w = 0; w < 4; w++) x[w] += y[w];",
    "for (i = 0; i < 9; i++) y[i] *= 2; x[i + 1] += y[i];",
    "for (i = 0; i < st->n; i++) st->x[i] += st->gain * y[i] + S.own.w;",
    "for (i = 0; i < n; i++) { st->sum += x[i]; S.in[i] = st->to->in[3] + i; }",
    "for (i = 0; i < n; i++) { y[i] = st->gain - S.x[i]; st->to->w = y[i]; }",
    "for (i = 0; i < n; i++) { x[i] += st->to->w; (*st).own.in[i] += S.in[i]; }",
    "added(n, &S, st->to, x); put(&st->gain, st->own.w);",
]
AFTER = [
    "y[0] = s;",
    "t = 4; y[1] = t;",
    "y[2] = t;",
    "for (i = 0; i < 2; i++) y[i] += s;",
    "if (n > 5) s = 0; y[0] += s;",
    "x[1] = local[2] + total;",
    "y[i % 16] += i;",
    "x[w % 16] += last;",
    "if (x[0] > 9) { t = 1; } else { t = 2; } x[0] += t;",
    "do { s = t; } while (s < t); x[2] = s;",
    "",
]
HEAD = """#include <stdio.h>
#define M (m)
enum { K = 2 };
static double G[16], total;
static int at[16] = {9, 3, 16, 1, 1, 7, 12, 13, 2, 4};
struct part { double w, in[16]; };
static struct all { char tag; int n; double gain, sum, in[16], *x; struct part own, *to; } S, *st;
static void added(int n, const struct all *from, struct part *to, double *x) {
    for (int i = 0; i < n; i++) { to->in[i] += from->gain * x[i]; x[i] = from->own.w; }
}
static void put(double *to, double v) { *to = v; }
static double own(double v, int most) { if (v > most) return most; return v + K; }
"""
MAIN = """
typedef void function(int n, int m, double *x, double *y, double *z);
int main(void) {
    static function *const all[] = {%s};
    double x[99], y[99], z[99];
    for (int f = 0; f < %d; f++)
        for (int way = 0; way < 8; way++) {
            for (int i = 0; i < 16; i++) { x[i] = i %% 5; y[i] = (3 * i) %% 7; G[i] = i; }
            for (int i = 0; i < 99; i++) z[i] = i;
            struct part other = {3, {1, 2, 3}};
            S = (struct all){1, 7, 2, 0, {4, 5, 6}, way %% 3 ? x : S.in, {1, {2}}, way %% 2 ? &other : &S.own};
            st = &S;
            double *second = way < 4 ? y : way == 4 ? x : way == 5 ? &S.gain : x + 1;
            all[f](way == 7 ? 3 : 9, way == 1 ? 3 : 8, x, second, way == 6 ? x : z);
            for (int i = 0; i < 99; i++) printf("%%g ", (i < 16 ? x[i] + 100 * y[i] + G[i] : total) + z[i]);
            for (int i = 0; i < 16; i++) printf("%%g ", S.in[i] + 9 * S.own.in[i] + 81 * other.in[i]);
            printf("%%g %%g %%g %%g", S.gain, S.sum, S.own.w, other.w);
        }
    return 0;
}
"""


def drawn(rng: Random, number: int) -> str:
    """A function with one or two scops, and code around them that may use what they leave."""
    regions = []
    for _ in range(rng.randint(1, 2)):
        body = "\n".join(rng.sample(SCOP, rng.randint(1, 2)))
        regions.append(f"#pragma scop\n{body}\n#pragma endscop\n{rng.choice(AFTER)}")
    inner = "\n".join(regions)
    if rng.random() < 0.4:
        inner = f"for (int r = 0; r < 2; r++) {{\n{inner}\n}}"
    head = f"static void f{number}(int n, int m, double *x, double *y, double *z) {{"
    locals_ = "int i = 1, last = 5; unsigned w = 2; double s = 1, t = 2, local[4] = {1, 2, 3, 4}; (void)z; (void)m;"
    locals_ += "(void)local; (void)last; (void)w;"
    return "\n".join([head, locals_, rng.choice(BEFORE), inner, rng.choice(AFTER), rng.choice(AFTER), "}"])


def output(path: Path) -> str:
    binary = path.with_suffix("")
    subprocess.run(["gcc", "-O1", "-w", str(path), "-o", str(binary), "-lm"], check=True)
    return subprocess.run([str(binary)], capture_output=True, text=True, check=True).stdout


def optimize(*arguments: object) -> Result:
    return CliRunner().invoke(poly, ["optimize", *map(str, arguments)])


def written(folder: Path, text: str) -> Path:
    path = folder / "program.c"
    path.write_text(text)
    return path


@pytest.mark.parametrize("seed", SEEDS)
def test_programs_compute_the_same(tmp_path: Path, seed: int) -> None:
    """Pointers overlap in some calls, and rows are shorter than they should be."""
    need_tool("gcc")
    rng = Random(seed)
    names = ", ".join(f"f{number}" for number in range(FUNCTIONS))
    functions = "\n\n".join(drawn(rng, number) for number in range(FUNCTIONS))
    path = written(tmp_path, f"{HEAD}{functions}\n{MAIN % (names, FUNCTIONS)}")
    made = rewrite(path, isas=["portable"])
    assert all("is not used after it" in str(problem) for problem in made.problems)
    assert len(made.kernels.header.routines) > FUNCTIONS
    new = tmp_path / "new.c"
    new.write_text(made.text)
    assert output(path) == output(new)


GEMM = """#include <stdlib.h>
#define SIZE 24
#define ROWS(x) x
typedef double number;
static
void gemm(int n, number C[SIZE][SIZE], number A[SIZE][SIZE], number B[SIZE][SIZE])
{
    int i, j, k;
#pragma scop
    for (i = 0; i < ROWS(n); i++)
        for (j = 0; j < n; j++)
            for (k = 0; k < n; k++)
                C[i][j] += 2.5 * A[i][k] * B[k][j];
#pragma endscop
}
/* caf\udce9 */
"""


def test_all_but_the_scops_stays_byte_for_byte(tmp_path: Path) -> None:
    path, new = tmp_path / "gemm.c", tmp_path / "new.c"
    path.write_bytes(GEMM.encode(errors="surrogateescape"))
    done = optimize(path, "-o", new, "--check", "--report")
    assert done.exit_code == 0, done.output
    assert "equal up to rounding: at " in done.stdout and "microkernel" in done.stdout
    text = new.read_bytes().decode(errors="surrogateescape")
    head, _, rest = GEMM.partition("static\nvoid gemm")
    assert text.startswith(head)
    loops = rest.partition("#pragma scop\n")[2].partition("#pragma endscop")[0]
    tail = f"{{ /* the loops as written */\n{loops}}}\n}}\n/* caf\udce9 */\n"
    assert text.endswith(tail)
    assert f"static\nvoid gemm{rest.partition('#pragma')[0]}#if defined" in text


def test_a_kernel_that_is_wrong_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_tool("gcc")
    path, new = written(tmp_path, GEMM.replace("\udce9", "")), tmp_path / "new.c"
    assert optimize(path, "-o", new, "--check", "--isa", "portable").exit_code == 0
    right = rewritten.prelude
    monkeypatch.setattr(rewritten, "prelude", lambda *parts: right(*parts).replace("2.5", "2.25"))
    new.unlink()
    done = optimize(path, "-o", new, "--check", "--isa", "portable")
    assert done.exit_code == 1 and "WRONG" in done.stdout and "Nothing was written." in done.stderr
    assert not new.exists()


PROGRAM = """
#include <stdio.h>
int main(void) {
    static number A[SIZE][SIZE], B[SIZE][SIZE], C[SIZE][SIZE];
    for (int i = 0; i < SIZE; i++) for (int j = 0; j < SIZE; j++) { A[i][j] = i; B[i][j] = j; }
    gemm(SIZE - 2, C, A, B);
    for (int i = 0; i < SIZE; i++) for (int j = 0; j < SIZE; j++) printf("%g ", (double)C[i][j]);
    return 0;
}
"""


@pytest.mark.parametrize(("old", "new"), [("24", "20"), ("double number", "float number"), ("ROWS(x) x", "ROWS(x) 3")])
def test_other_macros_and_types_run_the_loops_as_written(tmp_path: Path, old: str, new: str) -> None:
    """What poly took for known is tested where the new file is compiled."""
    need_tool("gcc")
    text = GEMM.replace("\udce9", "") + PROGRAM
    path = written(tmp_path, text)
    made = rewrite(path, isas=["portable"]).text
    path.write_text(made.replace(old, new, 1))
    other = tmp_path / "other.c"
    other.write_text(text.replace(old, new, 1))
    assert output(path) == output(other)


WORDS = """#include <stdint.h>
static double lambda = 2;
static void fence(void) { __asm__ volatile("" ::: "memory"); }
int printf(const char *text, ...);
void words(int n, int64_t with[n], short in[n], uint8_t (*is)[n])
{
    int None = n - 1;
    float third = 0.3;
    double yield = 3, max[4] = {1, 2};
    fence();
#pragma scop /* it begins */ // here
    for (int or = 0; or <= None; or++) {
        in[or] = in[or] * 3 + is[1][or];
        is[0][or] = is[1][or] + 200;
        with[or] += in[or];
        yield += in[or] * max[1] * lambda + third * or;
    }
#pragma endscop // it ends
    asm("" : : "r"(with) : "memory");
    printf("%g asm(", yield);
}
"""


def test_names_that_are_words_of_python(tmp_path: Path) -> None:
    """They are renamed for the kernel alone; so are other languages' words and small integers no reason to refuse."""
    path = written(tmp_path, WORDS)
    made = rewrite(path, isas=["portable"], check=True)
    assert not made.problems and all(found.passed and found.trials > 3 for found in made.checks.values())
    main = "int main(void) {\n    int64_t w[9] = {0}; short s[9] = {30000, 7, -9};\n    uint8_t u[18] = {1};\n"
    main += "    for (int i = 9; i < 18; i++) u[i] = 31 * i;\n    words(9, w, s, (void *)u);\n"
    main += '    for (int i = 0; i < 9; i++) printf("%d %d %d ", (int)w[i], s[i], u[i]);\n    return 0;\n}\n'
    new = tmp_path / "new.c"
    new.write_text(made.text + main)
    path.write_text(WORDS + main)
    assert output(path) == output(new)


WRAPPED = """
#include <stdio.h>
static void count(unsigned n, double *x)
{
#pragma scop
    for (unsigned i = 0; i < n + 5; i++) x[0] += 1;
#pragma endscop
}
static void small(unsigned n, double *x)
{
#pragma scop
    for (unsigned char i = 0; i < n - 2; i++) x[i] += 1;
#pragma endscop
}
int main(void)
{
    double x[9] = {0};
    count(4294967295u, x);
    count(3, x);
    small(9, x);
    printf("%g %g", x[0], x[6]);
    return 0;
}
"""


def test_sizes_at_which_an_unsigned_integer_wraps_around_run_the_loops_as_written(tmp_path: Path) -> None:
    path, new = written(tmp_path, WRAPPED), tmp_path / "new.c"
    made = rewrite(path, isas=["portable"])
    found = [value for scop in made.kernels.routines if scop for value in map(str, scop.signature.conditions)]
    assert not made.problems and sorted(found) == ["257 - n", "4294967290 - n", "n - 2"]
    new.write_text(made.text)
    assert output(path) == output(new)


BEFORE_SCOP = """
struct given { int step; };
void shifted(double a[99], double *restrict b, struct given *p, void *q)
{
    int step = p->step, at, shift = *(int *)q;
    double w = *(double *)q, h = (double)-1;
    for (int r = 0; r < 3; r++) {
#pragma scop
        for (int i = 0; i < 40; i++) {
            at = step + i;
            a[at] += b[i + shift] * w + h;
        }
#pragma endscop
    }
}
"""


def test_where_values_come_from_before_a_scop_does_not_matter(tmp_path: Path) -> None:
    """Of a structure's field and through a cast pointer; what is added to a counter is a size."""
    made = rewrite(written(tmp_path, BEFORE_SCOP), isas=["portable"], check=True)
    assert not made.problems and set(made.kernels.scops[0].nest.sizes) == {"step", "shift"}
    assert all(found.passed and found.trials > 3 for found in made.checks.values())


COMPLEX = """
#include <complex.h>
#include <stdio.h>
typedef double complex number;
static number w[64];
static const float _Complex taps[3] = {1, 2 + I, 3};

static number dot(int n, const number x[n], const number y[n])
{
    number s = 0;
#pragma scop
    for (int i = 0; i < n; i++) s += conj(x[i]) * y[i];
#pragma endscop
    return s;
}

static void divided(int n, number a, number (*restrict x)[n])
{
    number t;
#pragma scop
    for (int i = 0; i < 64; i++) {
        t = i * 0.5 + I * (i - 3.0);
        w[i] = t * t;
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) x[i][j] = x[i][j] / a + 2.0 * w[j % 64];
#pragma endscop
}

static void filtered(int n, const float complex *restrict x, float complex *restrict y)
{
#pragma scop
    for (int i = 1; i < n - 1; i++) y[i] = taps[0] * x[i-1] + taps[1] * x[i] + taps[2] * x[i+1];
#pragma endscop
}

int main(void)
{
    number m[5][5], s = 0;
    float complex x[9], y[9] = {0};
    for (int i = 0; i < 25; i++) m[i / 5][i % 5] = i - 2 * I * (i % 7);
    for (int i = 0; i < 9; i++) x[i] = i - 2.5f * I * i;
    divided(5, 1.5 - 0.25 * I, m);
    filtered(9, x, y);
    s = dot(5, m[3], m[4]);
    for (int i = 0; i < 9; i++) printf("%.9g %.9g ", crealf(y[i]), cimagf(y[i]));
    printf("%.9g %.9g", creal(s), cimag(s));
    return 0;
}
"""


def test_complex_arrays_and_numbers(tmp_path: Path) -> None:
    """A kernel gets their parts; a number that the scop assigns comes back."""
    path, new = written(tmp_path, COMPLEX), tmp_path / "new.c"
    made = rewrite(path, isas=["portable"], check=True)
    assert not made.problems and len(made.checks) == 3
    assert all(found.passed and found.trials for found in made.checks.values())
    new.write_text(made.text)
    assert output(path) == output(new)
