"""The elementary functions of generated code: their errors, odd values, and that they are vectors."""

from __future__ import annotations

import math
import re
import subprocess
from decimal import Decimal
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from elementary_fit import (
    LN2,
    LN10,
    PI,
    atan_coefficients,
    atan_error,
    cosine_quotient,
    erf,
    erf_coefficients,
    erf_error,
    exp_coefficients,
    exp_error,
    exponent_coefficients,
    exponent_error,
    float_quarters,
    halves,
    ln2_parts,
    log1p_coefficients,
    log1p_error,
    log_coefficients,
    log_error,
    part_coefficients,
    part_error,
    periodic_coefficients,
    periodic_error,
    pow_coefficients,
    pow_error,
    power_coefficients,
    power_error,
    quarters,
    sine_quotient,
    sinh_coefficients,
    sinh_error,
    tail_coefficients,
    tail_error,
    tangent_quotient,
    tanh_error,
    tanh_fraction,
    two_thirds,
    wide_sine_coefficients,
    wide_sine_error,
)
from headers import AARCH64, CLANG, CLANGXX, GCC, GXX, STRICT, X86_32, Toolchain, need, once
from programs import N, band, built, i, scan, sequence

import poly
from codegen.c import source
from codegen.elementary import functions as elementary
from codegen.elementary import powers, trigonometry, vector_functions
from codegen.elementary.constants import CONSTANTS, Constants
from codegen.elementary.functions import NAMES
from codegen.elementary.trigonometry import FAR
from codegen.ir.expr import PERIODIC, FunctionCall, Load
from codegen.ir.loop_ir import LoopMark
from codegen.ir.program import Assign, Buffer, PrintedStatement, Program
from codegen.lanes.near import CHUNK
from codegen.macros import EACH_VECTOR
from codegen.toolchain.build import FLAGS
from microkernels.dtypes import DType, f32, f64
from microkernels.isa import AVX2, AVX512, ISA, PORTABLE, host_machine

POINTS = 50_000
BOUND, WIDER_BOUND = 1.2, 2.0
PERIODIC_BOUNDS = {f32: 1.5, f64: 2.0}
"""Units in the last place."""
RANGES = {
    ("exp", "f32"): (-104, 88.72),
    ("exp", "f64"): (-745.2, 709.7),
    ("exp2", "f32"): (-150, 127.9),
    ("exp2", "f64"): (-1075, 1023.9),
    ("expm1", "f32"): (-88, 88.7),
    ("expm1", "f64"): (-709, 709.7),
    **{(name, "f32"): (-89.4, 89.4) for name in ("sinh", "cosh")},
    **{(name, "f64"): (-710.4, 710.4) for name in ("sinh", "cosh")},
    ("tanh", "f32"): (-11, 11),
    **{(name, kind.name): (-0.999 * FAR[kind], 0.999 * FAR[kind]) for name in PERIODIC for kind in (f32, f64)},
}


OURS = tuple(name for name in NAMES if name not in ("floor", "ceil"))
"""The functions of one argument that are C functions of ours, at least for near numbers."""
CLOSE = ("exp", "tanh", "log")
"""Those whose errors are below BOUND."""


def mapped(function: str, dtype: DType, isa: ISA, vectorize: bool = True) -> Program:
    """`y[i] = function(x[i])`, or `y[i] = function(x[i], w[i])`."""
    ast = scan("[N] -> { S[i] : 0 <= i < N }", band("i", "[N] -> { S[i] -> [i] }"), LoopMark("i", vectorize=vectorize))
    inputs = ("x", "w") if function in elementary.OF_TWO else ("x",)
    body = Assign(Load("y", (i,)), "=", FunctionCall(function, tuple(Load(name, (i,)) for name in inputs)))
    buffers = (*(Buffer(name, dtype, (N,), "in") for name in inputs), Buffer("y", dtype, (N,), "out"))
    return Program("mapped", ("N",), buffers, ast, {"S": PrintedStatement(("i",), body)}, isa=isa)


def together(dtype: DType, isa: ISA) -> Program:
    """A loop for each of OURS, with arrays of its own: one text for all tests of a type, built once."""
    domain = "; ".join(f"{name}[i] : 0 <= i < N" for name in OURS)
    parts = [(f"[N] -> {{ {name}[i] }}", band(name, f"[N] -> {{ {name}[i] -> [i] }}")) for name in OURS]
    ast = scan(f"[N] -> {{ {domain} }}", sequence(*parts), *(LoopMark(name, vectorize=True) for name in OURS))
    statements = {
        name: PrintedStatement(
            ("i",), Assign(Load(f"y_{name}", (i,)), "=", FunctionCall(name, (Load(f"x_{name}", (i,)),)))
        )
        for name in OURS
    }
    inputs = [Buffer(f"x_{name}", dtype, (N,), "in") for name in OURS]
    outputs = [Buffer(f"y_{name}", dtype, (N,), "out") for name in OURS]
    return Program("together", ("N",), (*inputs, *outputs), ast, statements, isa=isa)


def results(
    x: np.ndarray, dtype: DType, isa: ISA, compiler: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> dict[str, np.ndarray]:
    """Every function of the same arguments."""
    return each_of(dict.fromkeys(OURS, x), dtype, isa, compiler, monkeypatch)


def each_of(
    x: dict[str, np.ndarray], dtype: DType, isa: ISA, compiler: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> dict[str, np.ndarray]:
    """Every function of arguments of its own, as many for each."""
    found = {name: np.full_like(x[name], np.nan) for name in OURS}
    built(together(dtype, isa), compiler, monkeypatch)(*(x[name] for name in OURS), *found.values())
    return found


def points(function: str, dtype: DType) -> np.ndarray:
    """Arguments over the whole range, next to 0 or 1, and of any size below 10; positive ones if others make NaN."""
    rng = np.random.default_rng(7)
    low, high = RANGES.get((function, dtype.name), (-21, 21))
    signs = rng.choice([-1.0, 1.0], POINTS)
    parts = [rng.uniform(low, high, POINTS), rng.uniform(-1, 1, POINTS), signs * np.exp(rng.uniform(-40, 2.3, POINTS))]
    if function in PERIODIC:
        multiples = np.arange(POINTS) * (np.longdouble(np.pi) + np.longdouble(1.2246467991473532e-16)) / 2
        parts.append(multiples.astype(np.float64))
    if function == "atan":
        parts += [signs * np.exp(rng.uniform(-1.2, 1.2, POINTS)), signs * np.exp(rng.uniform(0, 80, POINTS))]
    found = np.concatenate(parts).astype(dtype.numpy_name)
    if function == "erf" and dtype == f64:  # the exact value is a series
        return found[::500].copy()
    if function not in ("log", "log2", "log10", "log1p"):
        return found
    info = np.finfo(dtype.numpy_name)
    sizes = np.exp(rng.uniform(np.log(info.smallest_subnormal), np.log(info.max), POINTS)).astype(dtype.numpy_name)
    found = np.concatenate([np.abs(found), sizes, rng.uniform(0.5, 2, POINTS).astype(dtype.numpy_name)])
    return np.concatenate([found, -found[found < 1]]) if function == "log1p" else found


def exact(function: str, x: np.ndarray) -> np.ndarray:
    """The function's values, with more digits."""
    if function == "erf" and x.dtype == np.float32:
        return np.array([math.erf(value) for value in x.tolist()], np.longdouble)
    if function != "erf":
        with np.errstate(under="ignore", divide="ignore"):
            return np.asarray(numpy_function(function)(x.astype(np.longdouble)))
    return np.array([decimal_as_long(erf(Decimal(float(value)))) for value in x])


def numpy_function(name: str) -> np.ufunc:
    found: np.ufunc = getattr(np, {"atan": "arctan"}.get(name, name))
    return found


def decimal_as_long(value: Decimal) -> np.longdouble:
    high = float(value)
    return np.longdouble(high) + np.longdouble(float(value - Decimal(high)))


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
@TYPES
@CASES
def test_errors(dtype: DType, isa: ISA, compiler: Toolchain, monkeypatch: pytest.MonkeyPatch) -> None:
    every = {name: points(name, dtype) for name in OURS}
    most = max(map(len, every.values()))
    found = each_of({name: np.resize(x, most) for name, x in every.items()}, dtype, isa, compiler, monkeypatch)
    for name in (name for name in OURS if name != "sqrt"):  # which is exact
        assert ulps(found[name][: len(every[name])], known(name, dtype)) < bound_of(name, dtype), name


def bound_of(function: str, dtype: DType) -> float:
    """In units in the last place."""
    return BOUND if function in CLOSE else PERIODIC_BOUNDS[dtype] if function in ("sin", "cos") else WIDER_BOUND


@cache
def known(function: str, dtype: DType) -> np.ndarray:
    """The exact values at the points."""
    return exact(function, points(function, dtype))


@TYPES
@CASES
def test_odd_values(dtype: DType, isa: ISA, compiler: Toolchain, monkeypatch: pytest.MonkeyPatch) -> None:
    """NaN, infinities, both zeros, the ends of the range, and numbers far out of it, in lanes and in a row's end."""
    info = np.finfo(dtype.numpy_name)
    top, tiny = np.log(info.max), np.log(info.smallest_subnormal)
    values = [np.nan, np.inf, -np.inf, 0.0, -0.0, info.smallest_subnormal, -info.tiny, info.max, -info.max, 1e30, -1e30]
    ends = [info.maxexp, -info.maxexp, -info.maxexp - info.nmant - 1, top + 0.6, -top - 0.6, top + 0.8, -1]
    x = np.array([*values, top * 1.0001, tiny * 1.01, tiny * 0.99, *values, *ends], dtype.numpy_name)
    found = results(x, dtype, isa, compiler, monkeypatch)
    y = found["exp"]
    ends = [np.nan, np.inf, 0, 1, 1, 1, 1, np.inf, 0, np.inf, 0]
    np.testing.assert_array_equal(y[:25], np.array([*ends, np.inf, 0, y[13], *ends], dtype.numpy_name))
    assert 0 < y[13] < info.tiny
    small = [0.0, -0.0, info.smallest_subnormal, -info.tiny]
    ends = [np.nan, 1, -1, *small, 1, -1, 1, -1]
    np.testing.assert_array_equal(found["tanh"][:25], np.array([*ends, 1, -1, -1, *ends], dtype.numpy_name))
    np.testing.assert_array_equal(np.signbit(found["tanh"]), np.signbit(x))
    numbers = ~np.isnan(x)
    np.testing.assert_array_equal(np.signbit(found["erf"][numbers]), np.signbit(x[numbers]))
    large = np.abs(x) > 10
    np.testing.assert_array_equal(found["erf"][large], np.sign(x[large]))
    assert np.isnan(found["erf"][0])
    np.testing.assert_array_equal(found["erf"][[3, 4]], x[[3, 4]])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found["sqrt"], np.sqrt(x))
        for name in (name for name in OURS if name != "erf"):
            wide = numpy_function(name)(x.astype(np.longdouble)).astype(x.dtype)
            np.testing.assert_allclose(found[name], wide, rtol=2 * info.eps, atol=info.smallest_subnormal, err_msg=name)
            zero = wide == 0
            np.testing.assert_array_equal(np.signbit(found[name][zero]), np.signbit(wide[zero]), name)
    ones = results(np.ones(20, dtype.numpy_name), dtype, isa, compiler, monkeypatch)
    assert not ones["log"].any()


@TYPES
@CASES
def test_far_numbers(dtype: DType, isa: ISA, compiler: Toolchain, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks with and without far numbers, up to the largest, infinity and NaN; each by itself is as in its chunk."""
    rng = np.random.default_rng(5)
    top = np.log(np.finfo(dtype.numpy_name).max)
    x = rng.uniform(-100, 100, 5 * CHUNK + 7)
    x[CHUNK : 2 * CHUNK] = rng.choice([-1, 1], CHUNK) * np.exp(rng.uniform(5, top, CHUNK))
    x[[2 * CHUNK + 1, 4 * CHUNK - 1, -1]] = np.nan, np.inf, FAR[dtype]
    x = x.astype(dtype.numpy_name)
    found = results(x, dtype, isa, compiler, monkeypatch)
    for name in PERIODIC:
        with np.errstate(invalid="ignore"):
            exact = getattr(np, name)(x.astype(np.longdouble))
        number = np.isfinite(x)
        assert np.isnan(found[name][~number]).all()
        assert ulps(found[name][number], exact[number]) < bound_of(name, dtype)


POW_BOUNDS = {f32: 0.51, f64: 1.3}
LIBRARY_POW_BOUND = 1.0
"""Units in the last place."""


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="long double is no longer than double here")
@TYPES
@CASES
def test_powers(dtype: DType, isa: ISA, compiler: Toolchain, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all pairs of odd values, which are those of C, and of any others."""
    x, w = bases_and_exponents(dtype)
    y = np.full_like(x, np.nan)
    built(mapped("pow", dtype, isa), compiler, monkeypatch)(x, w, y)
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.longdouble), w.astype(np.longdouble))
        rounded = expected.astype(dtype.numpy_name)
    info = np.finfo(dtype.numpy_name)
    finite = np.isfinite(rounded)
    extreme = ~finite | ((np.abs(rounded) > info.max * (1 - 4 * info.eps)) & np.isinf(y))
    np.testing.assert_array_equal(y[~finite], rounded[~finite])
    np.testing.assert_array_equal(np.signbit(y[finite]), np.signbit(rounded[finite]))
    bound = LIBRARY_POW_BOUND if isa == PORTABLE else POW_BOUNDS[dtype]
    assert ulps(y[~extreme], expected[~extreme]) < bound


def bases_and_exponents(dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of odd values; numbers of any size; and such that the power is near the ends of a type's range."""
    info = np.finfo(dtype.numpy_name)
    whole = 2.0 ** (info.nmant + 1)
    values = [0.0, 1, 2, 3, 0.5, 2.5, 1e30, whole - 1, whole, whole / 2 - 1, whole / 2 + 1, whole / 4 + 0.5]
    values += [float(info.max), float(info.tiny) / 100, float(info.smallest_subnormal), 1.5, 0.999, np.inf, np.nan]
    odd = np.array([*values, *(-value for value in values)])
    rng = np.random.default_rng(3)
    subnormal = float(info.smallest_subnormal) * rng.integers(1, 2**info.nmant, POINTS)
    near = 1 + rng.uniform(-1, 1, POINTS) * 2.0 ** -rng.integers(1, info.nmant - 3, POINTS)
    ends = np.log(float(info.tiny)) * 1.06, np.log(float(info.max)) * 0.999
    parts = [
        (np.repeat(odd, len(odd)), np.tile(odd, len(odd))),
        (np.exp(rng.uniform(-20, 20, POINTS)), rng.uniform(-5, 5, POINTS)),
        (subnormal, rng.uniform(-0.9, 0.9, POINTS)),
    ]
    with np.errstate(divide="ignore"):
        parts += [(x, rng.uniform(*ends, POINTS) / np.log(x)) for x in (near, rng.uniform(0.5, 2, POINTS))]
    x, w = (np.concatenate(sides).astype(dtype.numpy_name) for sides in zip(*parts, strict=True))
    return x, w


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="long double is no longer than double here")
@TYPES
@CASES
def test_angles(dtype: DType, isa: ISA, compiler: Toolchain, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all pairs of odd values, of numbers of any size, and of points near the axes and the diagonals."""
    x, w = (np.concatenate(sides) for sides in zip(bases_and_exponents(dtype), coordinates(dtype), strict=True))
    y = np.full_like(x, np.nan)
    built(mapped("atan2", dtype, isa), compiler, monkeypatch)(x, w, y)
    expected = np.arctan2(x.astype(np.longdouble), w.astype(np.longdouble))
    number = ~np.isnan(expected)
    assert np.isnan(y[~number]).all()
    np.testing.assert_array_equal(np.signbit(y[number]), np.signbit(x[number]))
    assert ulps(y[number], expected[number]) < WIDER_BOUND


def coordinates(dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    angles = rng.integers(-8, 9, 8 * POINTS) * np.pi / 4 + rng.uniform(-1, 1, 8 * POINTS) ** 9
    sizes = np.exp(rng.uniform(-20, 20, 8 * POINTS))
    x, w = (np.asarray(sizes * f(angles)).astype(dtype.numpy_name) for f in (np.sin, np.cos))
    return x, w


@TYPES
def test_tanh_is_odd(dtype: DType, monkeypatch: pytest.MonkeyPatch) -> None:
    call = built(mapped("tanh", dtype, PORTABLE), GCC, monkeypatch)
    x = points("tanh", dtype)
    y, mirrored = np.empty_like(x), np.empty_like(x)
    call(x, y)
    call(-x, mirrored)
    np.testing.assert_array_equal(y, -mirrored)


@TYPES
@CASES
def test_a_scalar_has_a_lanes_result(
    dtype: DType, isa: ISA, compiler: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One by one, and all in vectors; square roots are those of NumPy, which rounds them correctly."""
    call = built(together(dtype, isa), compiler, monkeypatch)
    x = np.abs(points("exp", dtype)[::100])
    lanes = results(x, dtype, isa, compiler, monkeypatch)
    alone = {name: np.full_like(x, np.nan) for name in OURS}
    for place in range(len(x)):
        call(*[x[place : place + 1]] * len(OURS), *(y[place : place + 1] for y in alone.values()))
    for name in OURS:
        np.testing.assert_array_equal(lanes[name], alone[name], name)
    np.testing.assert_array_equal(lanes["sqrt"], np.sqrt(x))


@TYPES
@CASES
def test_loops_are_in_vectors(dtype: DType, isa: ISA, compiler: Toolchain, tmp_path: Path) -> None:
    """As the compiler reports, also where errno is its business, as in a program of the user's."""
    need(compiler)
    text = source(together(dtype, isa))
    remarks, _ = every_function(dtype, isa) if compiler is GCC else compiled(text, isa, compiler, tmp_path)
    found = re.findall(r"mapped\.c:(\d+):.*?(?:using|width:) (\d+)", remarks)
    width = isa.vector_bytes // (dtype.size if compiler.is_clang else 1)
    for name in OURS:
        if vector_functions.has(isa, name, dtype):
            assert vector_functions.name(name, dtype, isa.lanes(dtype)) in text
            continue
        pattern = rf"y_{name}\[\w+\] = (?:near_)?{name}_{dtype.name}\("
        lines = [number for number, line in enumerate(text.splitlines(), 1) if re.search(pattern, line)]
        assert any((str(number - back), str(width)) in found for number in lines for back in range(3)), name


@TYPES
@CASES
def test_powers_are_in_vectors(dtype: DType, isa: ISA, compiler: Toolchain, tmp_path: Path) -> None:
    need(compiler)
    text = source(mapped("pow", dtype, isa))
    if isa == PORTABLE:  # the C library's is faster than vectors of two
        assert EACH_VECTOR not in text
        return
    _, made = compiled(text, isa, compiler, tmp_path)
    widths = set(re.findall(r"divpd\s.*%([xyz])mm", made))
    assert {64: "z", 32: "y"}[isa.vector_bytes] in widths


@pytest.mark.parametrize("isa", [AVX2, AVX512], ids=lambda isa: isa.name)
@TYPES
def test_operations_are_the_instructions(dtype: DType, isa: ISA) -> None:
    """What the model takes for a function of a vector is what gcc makes of it, without what far lanes take."""
    need(GCC)
    _, text = every_function(dtype, isa)
    register = {64: "zmm", 32: "ymm"}[isa.vector_bytes]
    for name in in_vectors(dtype, isa):
        _, _, behind = text.partition(f"\nalone_{name}:")
        lines = re.split(r"\n\t(?:j\w+|ret)\b", behind, maxsplit=1)[0].splitlines()
        made = [line for line in lines if f"%{register}" in line and not re.match(r"\tv(mov[adu]|p?broadcast)", line)]
        assert len(made) > 8, name
        assert vector_functions.operations(isa, name, dtype) == pytest.approx(len(made), abs=1), name


def in_vectors(dtype: DType, isa: ISA) -> list[str]:
    """Those with functions of ours for vectors."""
    return [name for name in OURS if vector_functions.has(isa, name, dtype)]


def every_function(dtype: DType, isa: ISA) -> tuple[str, str]:
    """`compiled` by gcc, each loop and each function of a vector alone: once in a run of the tests."""
    kind, lanes = f"{dtype.name}x{isa.lanes(dtype)}", isa.lanes(dtype)
    calls = {name: f"{vector_functions.name(name, dtype, lanes)}(x)" for name in in_vectors(dtype, isa)}
    alone = (f"{kind} alone_{name}({kind} x) {{ return {call}; }}" for name, call in calls.items())
    text = "\n".join([source(together(dtype, isa)), *alone])

    def make(folder: Path) -> None:
        folder.mkdir()
        remarks, _ = compiled(text, isa, GCC, folder)
        (folder / "remarks").write_text(remarks)

    made = once("compiled", (text, isa.name), make)
    return (made / "remarks").read_text(), (made / "s").read_text()


def compiled(text: str, isa: ISA, compiler: Toolchain, folder: Path) -> tuple[str, str]:
    """What the compiler says of loops, and its assembly, which is also the file `s`."""
    if host_machine() != "x86_64":
        pytest.skip("a CPU of another family")
    file = folder / "mapped.c"
    file.write_text(text)
    flags = [flag for flag in FLAGS if flag not in ("-fno-math-errno", "-shared", "-Wl,-Bsymbolic")]
    remarks = "-Rpass=loop-vectorize" if compiler.is_clang else "-fopt-info-vec-optimized"
    command = [*compiler.command, *flags, remarks, *isa.flags, "-S", str(file), "-o", str(folder / "s")]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    return told, (folder / "s").read_text()


@pytest.mark.parametrize("compiler", [GCC, GXX, CLANG, CLANGXX, *X86_32], ids=str)
def test_the_text_is_clean(compiler: Toolchain, tmp_path: Path) -> None:
    """gcc sees more where it optimises; the others' warnings are of the text."""
    need(compiler)
    way = ("-O2", "-c", "-o", str(tmp_path / "o")) if compiler is GCC else ("-fsyntax-only",)
    for dtype in (f32, f64):
        for program in (together(dtype, PORTABLE), mapped("pow", dtype, PORTABLE), mapped("atan2", dtype, PORTABLE)):
            text = source(program)
            file = tmp_path / "mapped.c"
            file.write_text(re.sub(r"\brestrict\b", "__restrict", text))
            standard = "-std=c++11" if compiler.language == "c++" else "-std=c99"
            command = [*compiler.command, "-x", compiler.language, standard, *STRICT, *way, str(file)]
            done = subprocess.run(command, capture_output=True, text=True)
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


@pytest.mark.parametrize("function", ["exp", "tanh", "erf", "sin"])
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
    if constants.dtype == f32:
        assert constants.log == log1p_coefficients(len(constants.log))
        assert log1p_error(constants.log) < 4.7e-9
    else:
        assert constants.log == log_coefficients(len(constants.log))
        assert log_error(constants.log) < 4.7e-18
    kind = constants.dtype.numpy_name
    ln2 = halves(LN2, kind)
    assert constants.ln_2 == (ln2[0], 0 if abs(ln2[1] / ln2[0]) < np.finfo(kind).eps / 16 else ln2[1])
    assert constants.inverses == (halves(1 / LN2, kind), halves(1 / LN10, kind))
    assert constants.log10_2 == halves(LN2 / LN10, kind)
    assert constants.sinh == sinh_coefficients(len(constants.sinh))
    assert sinh_error(constants.sinh) < {f32: 1.7e-10, f64: 9.2e-18}[constants.dtype]
    assert constants.atan == atan_coefficients(len(constants.atan))
    assert atan_error(constants.atan) < {f32: 1.1e-8, f64: 3.6e-17}[constants.dtype]
    assert constants.quarter == halves(PI / 2, constants.dtype.numpy_name)
    assert constants.erf == erf_coefficients(len(constants.erf), constants.parting)
    edges = constants.centre, constants.whole
    if constants.dtype == f32:
        assert constants.tail == exponent_coefficients(len(constants.tail), constants.parting, 2.5)
        assert exponent_error(constants.tail, constants.parting, constants.whole) < 1.4e-8
        assert power_coefficients(len(elementary.POWER_OF_2)) == elementary.POWER_OF_2
        assert power_error(elementary.POWER_OF_2) < 2.1e-07
    else:
        assert constants.tail == tail_coefficients(len(constants.tail), *edges)
        assert tail_error(constants.tail, *edges) < 7.2e-18
    assert erf_error(constants.erf, constants.parting) < {f32: 2.4e-8, f64: 2e-17}[constants.dtype]
    assert constants.exp == exp_coefficients(len(constants.exp))
    assert constants.ln2 == ln2_parts(constants.mantissa, {f32: 9, f64: 11}[constants.dtype])
    assert quarters() == trigonometry.QUARTERS
    assert float_quarters() == trigonometry.FLOAT_QUARTERS
    sine, cosine = trigonometry.SINE[constants.dtype], trigonometry.COSINE[constants.dtype]
    assert periodic_coefficients(sine_quotient, len(sine)) == sine
    assert periodic_coefficients(cosine_quotient, len(cosine)) == cosine
    sine_bound, cosine_bound = {f32: (1.3e-8, 7.7e-10), f64: (1.9e-17, 8.9e-19)}[constants.dtype]
    assert periodic_error(sine, sine_quotient, 1) < sine_bound
    assert periodic_error(cosine, cosine_quotient, 2) < cosine_bound
    assert periodic_coefficients(tangent_quotient, len(trigonometry.TANGENT)) == trigonometry.TANGENT
    assert periodic_error(trigonometry.TANGENT, tangent_quotient, 1) < 5.4e-9
    assert wide_sine_coefficients(len(trigonometry.WIDE_SINE)) == trigonometry.WIDE_SINE
    assert wide_sine_error(trigonometry.WIDE_SINE) < 2.8e-18
    assert two_thirds() == powers.THIRDS
    assert pow_coefficients(len(powers.QUOTIENT)) == powers.QUOTIENT
    assert log_coefficients(len(powers.LOGARITHM)) == powers.LOGARITHM
    assert log_error(powers.LOGARITHM) < 1.1e-13
    assert exp_coefficients(len(powers.EXPONENTIAL)) == powers.EXPONENTIAL
    assert exp_error(powers.EXPONENTIAL) < 4.3e-12
    assert pow_error(powers.QUOTIENT) < 1.1e-20
    depth, exp_bound, tanh_bound = {f32: (9, 1.02e-8, 7.9e-9), f64: (17, 1.7e-17, 5.6e-19)}[constants.dtype]
    assert constants.tanh == tanh_fraction(depth)
    assert tanh_error(*constants.tanh) < tanh_bound
    assert exp_error(constants.exp) < exp_bound
    table = vector_functions.TABLES[constants.dtype]
    assert table.exp == exp_coefficients(len(table.exp), 2**table.bits)
    assert exp_error(table.exp, 2**table.bits) < {f32: 2.9e-10, f64: 4.1e-20}[constants.dtype]
    assert table.log == part_coefficients(len(table.log), table.bits)
    assert part_error(table.log, table.bits) < {f32: 2.0e-8, f64: 2.2e-17}[constants.dtype]
    assert table.ln2 == ln2_parts(constants.mantissa, {f32: 12, f64: 14}[constants.dtype])


KEPT = """
def kept(x: f32[M, N], y: f32[M, N], z: f64[N], s: f32[M]):
    for i in range(M):
        for j in range(N):
            u = 2 * x[i, j]
            e = exp(u) + exp(-exp(u))
            y[i, j] = u * e
        for j in range(N):
            z[j] = exp(z[j]) + f64(exp(x[i, j])) if x[i, j] > 0 else z[j]
        t: f32 = 0.0
        for j in range(N):
            v = exp(x[i, j] * y[i, j] - 100)
            s[i] += v
            t = max(t, v * x[i, j])
        s[i] = s[i] + t
"""


@pytest.mark.parametrize("n", [1, 15, 16, 17, 95])
def test_lanes_keep_what_is_used_behind_a_call(n: int) -> None:
    """Locals, and calls in arguments of calls, in loops of any length, and where a choice keeps calls in lanes."""
    nest = poly.parse(KEPT, dict(zip("MN", poly.sizes("M N"), strict=True)))
    rng = np.random.default_rng(n)
    x, y, z, s = (rng.standard_normal(shape) for shape in ((3, n), (3, n), n, 3))
    found = [x.astype(np.float32), y.astype(np.float32), z, s.astype(np.float32)]
    expected = [array.copy() for array in found]
    poly.compile(nest, threads=1, records=False)(*found)
    nest.reference(*expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_rows_that_are_written_out_call_for_whole_vectors() -> None:
    text = """
def rows(x: f32[3, N], y: f32[3, N]):
    for i in range(3):
        for j in range(N):
            u = 2 * x[i, j]
            y[i, j] = u * exp(u)
"""
    made = poly.schedule(poly.parse(text, {"N": poly.sizes("N")})).order("j i").unroll(i=3).vectorize("j")
    kernel = poly.compile(made.nest, schedule=made, threads=1, records=False)
    for n in (1, 15, 16, 17, 95):
        x = np.random.default_rng(n).standard_normal((3, n)).astype(np.float32)
        y = np.zeros_like(x)
        kernel(x, y)
        np.testing.assert_allclose(y, 2 * x * np.exp(2 * x), rtol=1e-5)
