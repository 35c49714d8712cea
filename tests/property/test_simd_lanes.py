"""Reductions in vector lanes, on every instruction set, by gcc and by clang: each lane's share adds up to the whole."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from headers import AARCH64, CLANG, GCC, STRICT, Toolchain, need
from programs import M, N, band, built, i, j, k, scan, sequence

from codegen.c import source
from codegen.calls.call import Caller
from codegen.ir.expr import Binary, Const, Index, Load
from codegen.ir.integer import Affine
from codegen.ir.loop_ir import LoopMark
from codegen.ir.program import Assign, Buffer, PrintedStatement, Program
from microkernels.dtypes import DTYPES, DType, f32, f64
from microkernels.isa import AVX2, AVX512, ISA, NEON, PORTABLE

ROWS = 3
KNOWN = "[M, N] -> "
CASES = [
    *((f32, op) for op in ("+", "*", "min", "max")),
    *((f64, op) for op in ("+", "max")),
    *(
        (DTYPES[name], op)
        for name, op in (
            ("i8", "+"),
            ("i8", "max"),
            ("u8", "min"),
            ("i16", "+"),
            ("u16", "max"),
            ("i32", "+"),
            ("i64", "min"),
        )
    ),
]
LANES = LoopMark("j", vectorize=True)
UFUNCS = {"+": np.add, "*": np.multiply, "min": np.fmin, "max": np.fmax}


def runs_reduced(dtype: DType, op: str, isa: ISA) -> Program:
    """`y[i] op= x[i, k, j]`, with `j` in lanes that go on for all `k < 3`."""
    domain = f"{KNOWN}{{ S[i, k, j] : 0 <= i < M and 0 <= k < 3 and 0 <= j < N }}"
    tree = band("j", f"{KNOWN}{{ S[i, k, j] -> [j] }}")
    for name in "ki":
        tree = band(name, f"{KNOWN}{{ S[i, k, j] -> [{name}] }}", tree)
    return Program(
        "runs",
        ("M", "N"),
        (Buffer("x", dtype, (M, Affine.of(3), N), "in"), Buffer("y", dtype, (M,), "inout")),
        scan(domain, tree, LANES),
        {"S": PrintedStatement(("i", "k", "j"), Assign(Load("y", (i,)), op, Load("x", (i, k, j))))},
        isa=isa,
    )


def rows_reduced(dtype: DType, op: str, isa: ISA, columns: int | None = None) -> Program:
    """`y[i] op= x[i, j]`, with `j` in lanes; the number of columns is symbolic unless given."""
    width = N if columns is None else Affine.of(columns)
    domain = f"{KNOWN}{{ S[i, j] : 0 <= i < M and 0 <= j < {width} }}"
    tree = band("i", f"{KNOWN}{{ S[i, j] -> [i] }}", band("j", f"{KNOWN}{{ S[i, j] -> [j] }}"))
    return Program(
        "rows",
        ("M", "N"),
        (Buffer("x", dtype, (M, width), "in"), Buffer("y", dtype, (M,), "inout")),
        scan(domain, tree, LANES),
        {"S": PrintedStatement(("i", "j"), Assign(Load("y", (i,)), op, Load("x", (i, j))))},
        isa=isa,
    )


def block(dtype: DType, isa: ISA) -> int:
    """Elements in four vectors."""
    return 4 * isa.lanes(dtype)


def numbers(dtype: DType, columns: int) -> np.ndarray:
    """Rows of small numbers, in most of which products stay small."""
    rng = np.random.default_rng(columns)
    values = rng.uniform(0.9, 1.1, (ROWS, columns)) if dtype.is_float else rng.integers(-9, 9, (ROWS, columns))
    return values.astype(dtype.numpy_name)


@pytest.mark.parametrize("compiler", [GCC, CLANG], ids=str)
@pytest.mark.parametrize("isa", [AVX512, AVX2, PORTABLE], ids=lambda isa: isa.name)
@pytest.mark.parametrize(("dtype", "op"), CASES, ids=str)
def test_every_width(dtype: DType, op: str, isa: ISA, compiler: Toolchain, monkeypatch: pytest.MonkeyPatch) -> None:
    """From no column to two blocks of vectors and one column; integers wrap around as they would one by one."""
    call = built(rows_reduced(dtype, op, isa), compiler, monkeypatch)
    for columns in range(2 * block(dtype, isa) + 2):
        x = numbers(dtype, columns)
        check_reduced(call, dtype, op, x, x)


@pytest.mark.parametrize("isa", [AVX512, AVX2, PORTABLE], ids=lambda isa: isa.name)
@pytest.mark.parametrize(("dtype", "op"), [(f32, "+"), (f64, "max"), (DTYPES["i8"], "+")], ids=str)
def test_lanes_that_go_on(dtype: DType, op: str, isa: ISA, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lanes of a row's three runs are combined once, behind all of them."""
    program = runs_reduced(dtype, op, isa)
    text = source(program)
    assert text.index("(&y_all, y_") < text.index("(&y_all)")
    call = built(program, GCC, monkeypatch)
    for columns in range(2 * block(dtype, isa) + 2):
        x = numbers(dtype, 3 * columns)
        check_reduced(call, dtype, op, x.reshape(ROWS, 3, columns), x)


def check_reduced(call: Caller, dtype: DType, op: str, x: np.ndarray, rows: np.ndarray) -> None:
    """What is reduced from `x`, next to `rows`, the same numbers by row."""
    y = numbers(dtype, ROWS)[0]
    expected = UFUNCS[op].reduce(np.column_stack([y, rows]).astype(float if dtype.is_float else int), axis=1)
    call(x, y)
    if dtype.is_float:
        np.testing.assert_allclose(y, expected, rtol=(rows.shape[1] + 1) * np.finfo(dtype.numpy_name).eps)
    else:
        np.testing.assert_array_equal(y, expected.astype(dtype.numpy_name))


@pytest.mark.parametrize("compiler", [GCC, CLANG], ids=str)
@pytest.mark.parametrize("isa", [AVX512, AVX2, PORTABLE], ids=lambda isa: isa.name)
def test_what_is_not_finite(isa: ISA, compiler: Toolchain, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum takes NaN and infinity from any lane; a maximum passes over NaN, unless it starts with one."""
    total = built(rows_reduced(f32, "+", isa), compiler, monkeypatch)
    largest = built(rows_reduced(f32, "max", isa), compiler, monkeypatch)
    columns = 2 * block(f32, isa) - 1
    for place in range(columns):
        for odd in (np.nan, np.inf, -np.inf):
            x = numbers(f32, columns)
            x[1, place] = odd
            sums, tops = np.zeros(ROWS, np.float32), np.array([0, 0, np.nan], np.float32)
            total(x, sums)
            largest(x, tops)
            assert sums[1] == odd or (np.isnan(odd) and np.isnan(sums[1]))
            assert np.isfinite(sums[[0, 2]]).all()
            assert tops[1] == np.nanmax(x[1])
            assert np.isnan(tops[2])


@pytest.mark.parametrize("columns", [1, 3, 16, 17, 24, 64, 65, 80, 128, 131])
def test_a_known_width(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is known to come out even has no rest, and a short row takes vectors of its own length."""
    program = rows_reduced(f32, "+", AVX512, columns)
    text = source(program)
    assert ("left" in text) == (columns not in (1, 16, 64, 128))
    assert ("f32x16" in text) == (columns >= 16)
    x, y = numbers(f32, columns), np.zeros(ROWS, np.float32)
    built(program, GCC, monkeypatch)(x, y, N=columns)
    np.testing.assert_allclose(y, x.astype(float).sum(axis=1), rtol=columns * 1e-7)


@pytest.mark.parametrize("isa", [AVX512, AVX2, PORTABLE], ids=lambda isa: isa.name)
def test_bodies_with_more_than_a_sum(isa: ISA, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two reductions of unlike types, an element that is the same in each iteration, the index, and a store."""
    names = ("S", "T", "U")
    domain = f"{KNOWN}{{ {'; '.join(f'{name}[i, j] : 0 <= i < M and 0 <= j < N' for name in names)} }}"
    inner = sequence(*((f"{KNOWN}{{ {name}[i, j] }}", "") for name in names))
    tree = band("j", f"{KNOWN}{{ {'; '.join(f'{name}[i, j] -> [j]' for name in names)} }}", inner)
    tree = band("i", f"{KNOWN}{{ {'; '.join(f'{name}[i, j] -> [i]' for name in names)} }}", tree)
    x, mean = Load("x", (i, j)), Load("mean", (i,))
    bodies = (
        Assign(Load("y", (i, j)), "=", Binary("-", x, mean)),
        Assign(Load("sums", (i,)), "+", Binary("*", Binary("-", x, mean), Index(j))),
        Assign(Load("tops", (i,)), "max", Binary("*", x, Const(2.0))),
    )
    buffers = (
        Buffer("x", f32, (M, N), "in"),
        Buffer("mean", f32, (M,), "in"),
        Buffer("y", f32, (M, N), "out"),
        Buffer("sums", f64, (M,), "inout"),
        Buffer("tops", f32, (M,), "inout"),
    )
    statements = {name: PrintedStatement(("i", "j"), body) for name, body in zip(names, bodies, strict=True)}
    program = Program("several", ("M", "N"), buffers, scan(domain, tree, LANES), statements, isa=isa)
    assert "const float mean_value = mean[i];" in source(program)
    call = built(program, GCC, monkeypatch)
    for columns in range(2 * block(f64, isa) + 2):
        values = numbers(f32, columns)
        means, y = np.array([1, 2, 3], np.float32), np.empty_like(values)
        sums, tops = np.zeros(ROWS), np.zeros(ROWS, np.float32)
        call(values, means, y, sums, tops)
        centred = values - means[:, None]
        np.testing.assert_array_equal(y, centred)
        np.testing.assert_allclose(sums, (centred * np.arange(columns, dtype=float)).sum(axis=1), rtol=1e-6)
        np.testing.assert_array_equal(tops, 2 * values.max(axis=1, initial=0))


def test_elements_behind_a_condition_are_not_loaded_before_it() -> None:
    """`s[0]` of an empty array must not be read where no iteration reads it."""
    domain = "[M, N] -> { S[j] : 0 <= j < N; T[j] : 0 <= j < N and M > 5 }"
    order = sequence(("[M, N] -> { S[j] }", ""), ("[M, N] -> { T[j] }", ""))
    ast = scan(domain, band("j", "[M, N] -> { S[j] -> [j]; T[j] -> [j] }", order), LANES)
    first = Affine.of(0)
    statements = {
        "S": PrintedStatement(("j",), Assign(Load("s", (first,)), "+", Load("x", (j,)))),
        "T": PrintedStatement(("j",), Assign(Load("y", (j,)), "=", Load("x", (first,)))),
    }
    buffers = (Buffer("x", f32, (N,), "in"), Buffer("s", f32, (first + 1,), "inout"), Buffer("y", f32, (N,), "out"))
    program = Program("f", ("M", "N"), buffers, ast, statements)
    assert "x_value" not in source(program)


@pytest.mark.parametrize("isa", [AVX512, AVX2, PORTABLE], ids=lambda isa: isa.name)
@pytest.mark.parametrize("compiler", [GCC, CLANG], ids=str)
def test_the_text_is_clean(compiler: Toolchain, isa: ISA, tmp_path: Path) -> None:
    """Strict C99, and no flag of OpenMP."""
    need(compiler)
    for dtype, op in CASES:
        file = tmp_path / "rows.c"
        file.write_text(source(rows_reduced(dtype, op, isa)))
        command = [
            *compiler.command,
            "-std=c99",
            "-O2",
            *STRICT,
            *isa.flags,
            "-c",
            str(file),
            "-o",
            str(tmp_path / "o"),
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        assert not done.returncode, done.stderr


MAIN = """
#include <stdio.h>
int main(void)
{
  static float x[40];
  for (int64_t n = 0; n < 40; n += 1) {
    float y = 0.5f;
    double expected = y;
    for (int64_t j = 0; j < n; j += 1) {
      x[j] = (float)(j % 7) + 0.25f;
      expected += x[j];
    }
    if (rows(1, n, x, &y, 1, 0) || y != expected) return printf("%d columns: %g, expected %g\\n", (int)n, y, expected);
  }
  return 0;
}
"""


def test_neon(tmp_path: Path) -> None:
    need(AARCH64)
    file, program = tmp_path / "rows.c", tmp_path / "rows"
    file.write_text(source(replace(rows_reduced(f32, "+", PORTABLE), isa=NEON)) + MAIN)
    subprocess.run([*AARCH64.command, "-std=c99", "-O2", *STRICT, str(file), "-o", str(program), "-lm"], check=True)
    done = subprocess.run([*AARCH64.runner, str(program)], capture_output=True, text=True)
    assert not done.returncode, done.stdout
