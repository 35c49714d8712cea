"""Files by `poly optimize` compile without warnings, and two of them link together."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from headers import CLANG, GCC, Toolchain, need_tool

from poly.rewriting import rewrite

FILE = """#define FOR(i, n) for (int i = 0; i < (n); i++)
#define status 7
static double sum, table[9];
double %(name)s(int n, int m, double A[n][m], double *x, const double *y);
double %(name)s(int n, int m, double A[n][m], double *x, const double *y)
{
\tsum = 0;
\t#pragma scop
\tFOR(i, n) FOR(j, m) x[i] += A[i][j] * y[j];
\t#pragma endscop
#pragma scop
    for (int j = 0; j < 9; j++)
        for (int i = j; i < n; i++)
            table[j] += x[i] * status;
    for (int i = 0; i < 9; i++) sum += table[i];
#pragma endscop
    return sum;
}
"""
MAIN = """
#include <stdio.h>
double first(int n, int m, double A[n][m], double *x, const double *y);
double second(int n, int m, double A[n][m], double *x, const double *y);
int main(void) {
    double A[20][30], x[20], y[30];
    for (int j = 0; j < 30; j++) { y[j] = j % 4; for (int i = 0; i < 20; i++) { A[i][j] = i - j; x[i] = i; } }
    printf("%g %g", first(20, 30, A, x, y), second(20, 30, A, x, y + 0));
    return 0;
}
"""
FLAGS = ("-O2", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-Wno-unknown-pragmas")


def output(command: list[str], binary: Path) -> str:
    subprocess.run([*command, "-o", str(binary)], check=True)
    return subprocess.run([str(binary)], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(("toolchain", "end"), [(GCC, "\r\n"), (CLANG, "\n")], ids=str)
def test_two_files_link_without_warnings(tmp_path: Path, toolchain: Toolchain, end: str) -> None:
    (compiler,) = toolchain.command
    need_tool(compiler)
    old, new = [], []
    main = tmp_path / "main.c"
    main.write_text(MAIN)
    for name in ("first", "second"):
        path, made = tmp_path / f"{name}.c", tmp_path / f"{name}_new.c"
        path.write_bytes((FILE % {"name": name}).replace("\n", end).encode())
        rewritten = rewrite(path, isas=["avx2", "portable"])
        assert not rewritten.problems
        made.write_bytes(rewritten.text.encode())
        assert rewritten.text.count("\r") == (rewritten.text.count("\n") if end == "\r\n" else 0)
        old.append(str(path))
        new.append(str(made))
    wanted = output([compiler, "-w", *old, str(main)], tmp_path / "old")
    for standard in ("-std=c99", "-std=c11"):
        assert output([compiler, standard, *FLAGS, *new, str(main)], tmp_path / "new") == wanted


LONG_LONG = """#include <stdio.h>
typedef long long number;
static number total;
static number f(int n, number *x, const number y[9], number by, const number *at)
{
    number kept = x[1];
    x[1] = 5;
    total = 3;
#pragma scop
    for (int i = 0; i < n; i++) {
        x[i] += by * y[at[i]];
        total += x[i];
    }
#pragma endscop
    number made = x[1] + total;
    x[1] = kept;
    return made;
}
int main(void)
{
    number x[9], y[9], at[9];
    for (int i = 0; i < 9; i++) { x[i] = i - 1; y[i] = 1000000000ll * i; at[i] = 8 - i; }
    for (int i = 0; i < 3; i++) printf("%lld ", f(9, x, y, i + 1000, at));
    for (int i = 0; i < 9; i++) printf("%lld ", x[i]);
    return 0;
}
"""


def test_long_long_is_not_the_type_of_a_kernel_but_changes_as_it_does(tmp_path: Path) -> None:
    """The compiler's optimiser sees no kernel that only has `long`; where long has 32 bits, there is no kernel."""
    path, new, alone = (tmp_path / name for name in ("old.c", "new.c", "alone.c"))
    path.write_text(LONG_LONG)
    made = rewrite(path, isas=["portable"])
    assert not made.problems and made.text.count('"+r"') == 4
    new.write_text(made.text)
    loops, _ = LONG_LONG.partition("#pragma scop\n")[2].split("#pragma endscop")
    assert loops in made.text
    alone.write_text(made.text.replace(loops, "__builtin_abort();\n"))
    wanted = output(["gcc", "-O0", "-w", str(path)], tmp_path / "old")
    for command in (["gcc", "-O2"], ["gcc", "-O3"], [*CLANG.command, "-O2"]):
        need_tool(command[0])
        assert output([*command, "-std=c99", *FLAGS[1:], str(alone)], tmp_path / "new") == wanted
    assert output(["gcc", "-m32", "-O2", "-w", str(new)], tmp_path / "new") == wanted
