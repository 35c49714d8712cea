"""exp, tanh and sqrt of generated code: how exact they are, what they make of odd values, and that they are vectors."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from elementary_fit import exp_coefficients, exp_error, ln2_parts, tanh_error, tanh_fraction
from headers import AARCH64, CLANG, CLANGXX, GCC, GXX, STRICT, X86_32, Toolchain, need
from programs import N, band, built, i, scan

from codegen.build import FLAGS
from codegen.c import source
from codegen.elementary import CONSTANTS, Constants
from codegen.expr import FunctionCall, Load
from codegen.loop_ir import LoopMark
from codegen.program import Assign, Buffer, PrintedStatement, Program
from microkernels.dtypes import DType, f32, f64
from microkernels.isa import AVX2, AVX512, ISA, PORTABLE, host_machine

POINTS = 50_000
BOUND = 1.2
"""Units in the last place."""
RANGES = {("exp", "f32"): (-104, 88.72), ("exp", "f64"): (-745.2, 709.7), ("tanh", "f32"): (-11, 11)}


def mapped(function: str, dtype: DType, isa: ISA, vectorize: bool = True) -> Program:
    """`y[i] = function(x[i])`."""
    ast = scan("[N] -> { S[i] : 0 <= i < N }", band("i", "[N] -> { S[i] -> [i] }"), LoopMark("i", vectorize=vectorize))
    body = Assign(Load("y", (i,)), "=", FunctionCall(function, (Load("x", (i,)),)))
    buffers = (Buffer("x", dtype, (N,), "in"), Buffer("y", dtype, (N,), "out"))
    return Program("mapped", ("N",), buffers, ast, {"S": PrintedStatement(("i",), body)}, isa=isa)


def points(function: str, dtype: DType) -> np.ndarray:
    """Arguments over the whole range, next to 0, and of any size below 10."""
    rng = np.random.default_rng(7)
    low, high = RANGES.get((function, dtype.name), (-21, 21))
    signs = rng.choice([-1.0, 1.0], POINTS)
    parts = [rng.uniform(low, high, POINTS), rng.uniform(-1, 1, POINTS), signs * np.exp(rng.uniform(-40, 2.3, POINTS))]
    return np.concatenate(parts).astype(dtype.numpy_name)


def ulps(found: np.ndarray, exact: np.ndarray) -> float:
    """The largest error, in units in the last place of the exact value, or of the smallest normal number below it."""
    info = np.finfo(found.dtype)
    _, exponents = np.frexp(np.maximum(np.abs(exact), np.longdouble(info.tiny)))
    unit = np.ldexp(np.longdouble(1), exponents - 1 - info.nmant)
    return float(np.max(np.abs(found.astype(np.longdouble) - exact) / unit))


CASES = pytest.mark.parametrize(
    ("compiler", "isa"),
    [(compiler, isa) for compiler in (GCC, CLANG) for isa in (AVX512, AVX2, PORTABLE)],
    ids=lambda value: str(getattr(value, "name", value)),
)
TYPES = pytest.mark.parametrize("dtype", [f32, f64], ids=str)


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="long double is no longer than double here")
@pytest.mark.parametrize("function", ["exp", "tanh"])
@TYPES
@CASES
def test_errors(function: str, dtype: DType, isa: ISA, compiler: Toolchain, monkeypatch: pytest.MonkeyPatch) -> None:
    x = points(function, dtype)
    y = np.empty_like(x)
    built(mapped(function, dtype, isa), compiler, monkeypatch)(x, y)
    with np.errstate(under="ignore"):
        assert ulps(y, getattr(np, function)(x.astype(np.longdouble))) < BOUND


@TYPES
@CASES
def test_odd_values(dtype: DType, isa: ISA, compiler: Toolchain, monkeypatch: pytest.MonkeyPatch) -> None:
    """NaN, infinities, both zeros, the ends of the range, and numbers far out of it, in lanes and in a row's end."""
    info = np.finfo(dtype.numpy_name)
    top, tiny = np.log(info.max), np.log(info.smallest_subnormal)
    values = [np.nan, np.inf, -np.inf, 0.0, -0.0, info.smallest_subnormal, -info.tiny, info.max, -info.max, 1e30, -1e30]
    x = np.array([*values, top * 1.0001, tiny * 1.01, tiny * 0.99, *values], dtype.numpy_name)
    y = np.empty_like(x)
    built(mapped("exp", dtype, isa), compiler, monkeypatch)(x, y)
    ends = [np.nan, np.inf, 0, 1, 1, 1, 1, np.inf, 0, np.inf, 0]
    np.testing.assert_array_equal(y, np.array([*ends, np.inf, 0, y[13], *ends], dtype.numpy_name))
    assert 0 < y[13] < info.tiny
    built(mapped("tanh", dtype, isa), compiler, monkeypatch)(x, y)
    small = [0.0, -0.0, info.smallest_subnormal, -info.tiny]
    ends = [np.nan, 1, -1, *small, 1, -1, 1, -1]
    np.testing.assert_array_equal(y, np.array([*ends, 1, -1, -1, *ends], dtype.numpy_name))
    np.testing.assert_array_equal(np.signbit(y), np.signbit(x))
    built(mapped("sqrt", dtype, isa), compiler, monkeypatch)(x, y)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(y, np.sqrt(x))


@TYPES
def test_tanh_is_odd(dtype: DType, monkeypatch: pytest.MonkeyPatch) -> None:
    call = built(mapped("tanh", dtype, PORTABLE), GCC, monkeypatch)
    x = points("tanh", dtype)
    y, mirrored = np.empty_like(x), np.empty_like(x)
    call(x, y)
    call(-x, mirrored)
    np.testing.assert_array_equal(y, -mirrored)


@pytest.mark.parametrize("function", ["exp", "tanh"])
@TYPES
@CASES
def test_a_scalar_has_a_lanes_result(
    function: str, dtype: DType, isa: ISA, compiler: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One by one, and all in vectors."""
    call = built(mapped(function, dtype, isa), compiler, monkeypatch)
    x = points(function, dtype)[::50].copy()
    y, alone = np.empty_like(x), np.empty_like(x)
    call(x, y)
    for place in range(len(x)):
        call(x[place : place + 1], alone[place : place + 1])
    np.testing.assert_array_equal(y, alone)


@TYPES
@CASES
def test_roots_are_rounded_correctly(
    dtype: DType, isa: ISA, compiler: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.abs(points("exp", dtype))
    y = np.empty_like(x)
    built(mapped("sqrt", dtype, isa), compiler, monkeypatch)(x, y)
    np.testing.assert_array_equal(y, np.sqrt(x))


@pytest.mark.parametrize(
    ("function", "pattern"),
    [("exp", r"mulp[sd]\s.*%([xyz])mm"), ("tanh", r"divp[sd]\s.*%([xyz])mm"), ("sqrt", r"sqrtp[sd]\s.*%([xyz])mm")],
)
@TYPES
@CASES
def test_the_loop_is_in_vectors(
    function: str, pattern: str, dtype: DType, isa: ISA, compiler: Toolchain, tmp_path: Path
) -> None:
    """Also where errno is the compiler's business, as in a program of the user's."""
    need(compiler)
    if host_machine() != "x86_64":
        pytest.skip("a CPU of another family")
    file = tmp_path / "mapped.c"
    file.write_text(source(mapped(function, dtype, isa)))
    flags = [flag for flag in FLAGS if flag not in ("-fno-math-errno", "-shared", "-Wl,-Bsymbolic")]
    command = [*compiler.command, *flags, *isa.flags, "-S", str(file), "-o", str(tmp_path / "s")]
    subprocess.run(command, check=True)
    widths = set(re.findall(pattern, (tmp_path / "s").read_text()))
    assert {64: "z", 32: "y", 16: "x"}[isa.vector_bytes] in widths


@pytest.mark.parametrize("compiler", [GCC, GXX, CLANG, CLANGXX, *X86_32], ids=str)
def test_the_text_is_clean(compiler: Toolchain, tmp_path: Path) -> None:
    need(compiler)
    for dtype in (f32, f64):
        for function in ("exp", "tanh", "sqrt"):
            text = source(mapped(function, dtype, PORTABLE))
            file = tmp_path / "mapped.c"
            file.write_text(re.sub(r"\brestrict\b", "__restrict", text))
            standard = "-std=c++11" if compiler.language == "c++" else "-std=c99"
            command = [*compiler.command, "-x", compiler.language, standard, "-O2", *STRICT, "-c", str(file)]
            command += ["-Wno-pass-failed"] * compiler.is_clang
            done = subprocess.run([*command, "-o", str(tmp_path / "o")], capture_output=True, text=True)
            assert not done.returncode, done.stderr


MAIN = r"""
#include <stdio.h>
int main(void)
{
  static T x[1000], y[1000];
  double worst = 0;
  for (int j = 0; j < 1000; j += 1) x[j] = (T)((j - 500) * 0.0371);
  mapped(1000, x, y, 1, 0);
  for (int j = 0; j < 1000; j += 1) {
    const double exact = FUNCTION((double)x[j]), error = fabs(y[j] / exact - 1);
    if (j != 500 && !(error < worst)) worst = error;
  }
  return worst < BOUND ? 0 : printf("%g\n", worst);
}
"""


@pytest.mark.parametrize("function", ["exp", "tanh"])
@TYPES
@pytest.mark.parametrize("machine", [AARCH64, X86_32[0]], ids=str)
def test_other_machines(function: str, dtype: DType, machine: Toolchain, tmp_path: Path) -> None:
    """On 32-bit x86, registers keep more digits than arrays."""
    need(machine)
    file, program = tmp_path / "mapped.c", tmp_path / "mapped"
    main = MAIN.replace("FUNCTION", function).replace("BOUND", f"1.5*{np.finfo(dtype.numpy_name).eps}")
    file.write_text(source(mapped(function, dtype, PORTABLE)) + re.sub(r"\bT\b", dtype.c_name, main))
    subprocess.run([*machine.command, "-O2", str(file), "-o", str(program), "-lm"], check=True)
    done = subprocess.run([*machine.runner, str(program)], capture_output=True, text=True)
    assert not done.returncode, done.stdout


@pytest.mark.parametrize("constants", CONSTANTS, ids=lambda constants: constants.name)
def test_constants_are_what_the_text_says(constants: Constants) -> None:
    assert constants.exp == exp_coefficients(len(constants.exp))
    assert constants.ln2 == ln2_parts(constants.mantissa, {f32: 9, f64: 11}[constants.dtype])
    depth, exp_bound, tanh_bound = {f32: (9, 1.02e-8, 7.9e-9), f64: (17, 1.7e-17, 5.6e-19)}[constants.dtype]
    assert constants.tanh == tanh_fraction(depth)
    assert tanh_error(*constants.tanh) < tanh_bound
    assert exp_error(constants.exp) < exp_bound
