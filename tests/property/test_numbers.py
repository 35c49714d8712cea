"""Numbers mean what they mean in Python and NumPy: integers wrap around, and a literal has a type, of any length.

Nests of drawn integer expressions are run by C, by the header, by OpenCL C and by the reference, and an oracle of a few
lines says what each operation gives. Sanitizers know what C leaves undefined; the numbers are those at its edges.
"""

from __future__ import annotations

import math
import operator
import random
import re
from collections.abc import Callable
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from headers import CLANG, GCC, Toolchain, at_any_level, header, implementation, library, need, run, succeed
from headers import build as build_program
from opencl_device import device

import poly
from microkernels.dtypes import DType, f32, f64, i8, i16, i32, i64, u8, u16
from poly.frontends.python import parse_text
from poly.frontends.source import Source
from poly.ir.nest import Nest
from poly.ir.reference import reference as interpreted

INTEGERS = (u8, u16, i8, i16, i32, i64)
ROWS, COUNT = 24, 19
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def limits(dtype: DType) -> tuple[int, int]:
    found = np.iinfo(dtype.numpy_name)
    return int(found.min), int(found.max)


def edges(dtype: DType) -> list[int]:
    """Numbers at which something overflows, and some others."""
    low, high = limits(dtype)
    found = [low, low + 1, high, high - 1, low // 2, high // 2 + 1, -1, 0, 1, 2, 3, -7, 100, low, high, -1, 0, 5, 64]
    return [stored(value, dtype) for value in found]


def nest_of(text: str, dtype: DType, **known: Any) -> Nest:
    """The nest with a body in terms of x, y: dtype[N] and z: dtype[ROWS, N]."""
    N = poly.sizes("N")
    arguments = f"x: {dtype}[N], y: {dtype}[N], z: {dtype}[{ROWS}, N]"
    body = "\n".join(f"        {line}" for line in text.splitlines())
    source = f"def numbers({arguments}):\n    for i in range(N):\n{body}\n"
    return parse_text(Source(source, "numbers.py", 1), {"N": N, "i32": i32, str(dtype): dtype, "range": range, **known})


def reference(nest: Nest, *arrays: np.ndarray) -> None:
    """The loops as written."""
    interpreted(nest, arrays)


def expression(rng: random.Random, dtype: DType, depth: int) -> str:
    """A drawn expression; what is made of numbers alone stays small, as everything of Python's own is exact."""
    if depth == 0 or rng.random() < 0.1:
        leaves = ("x[i]", "y[i]", "x[i]", "y[i]", "i", "N", f"(x[i] {rng.choice('+-*')} ({rng.choice(edges(dtype))}))")
        return rng.choice(leaves)
    a, b = expression(rng, dtype, depth - 1), expression(rng, dtype, depth - 1)
    way = rng.randrange(10)
    if way == 9:
        return f"{dtype}({wide(rng, depth)})"
    if way < 4:
        return f"({a} {rng.choice('+-*')} {b})"
    return (f"(-{a})", f"abs({a})", f"min({a}, {b})", f"max({a}, {b})", f"(x[i] {rng.choice('+-*')} {a})")[way - 4]


def wide(rng: random.Random, depth: int) -> str:
    """The same of values that are made i32 first, whose results often stay in the type."""
    if depth == 0:
        return rng.choice(("i32(x[i])", "i32(y[i])", "i32(min(x[i], 9))"))
    a, b = wide(rng, depth - 1), wide(rng, depth - 1)
    return rng.choice((f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"abs({a} - 3)", f"max(-{a}, 2 * {b})"))


def statement(rng: random.Random, dtype: DType, row: int) -> str:
    target, value = f"z[{row}, i]", f"(x[i] - {expression(rng, dtype, rng.randint(1, 4))})"
    minus = f"({stored(-1, dtype)})"
    match rng.randrange(8):
        case 0:
            return f"{target} {rng.choice('+-*')}= {value}"
        case 1:
            return f"{target} = {rng.choice(('min', 'max'))}({target}, {value})"
        case 2:
            return f"{target} = {value} / {rng.choice(('y[i]', 'x[i]', minus, '(x[i] - x[i])', '7.0'))}"
        case 3:
            return f"{target} = {value} * {rng.choice(('0.5', '1e30', '(-1e9)'))}"
        case 4:
            return f"{target} /= {rng.choice(('y[i]', minus, '2'))}"
    return f"{target} = {value}"


def drawn(dtype: DType) -> str:
    rng = random.Random(f"{dtype}, 1")
    return "\n".join(statement(rng, dtype, row) for row in range(ROWS))


class Exact:
    """An array's integer, or an f64 that was made of one: each operation as NumPy documents it, in Python's numbers."""

    def __init__(self, value: float | int, dtype: DType) -> None:
        self.dtype = dtype
        self.value = stored(value, dtype) if isinstance(value, int) else float(value)

    def combined(self, other: Any, function: Callable[[Any, Any], Any], swap: bool = False) -> Exact:
        b = other.value if isinstance(other, Exact) else other
        if isinstance(b, int) and not isinstance(self.value, float):
            b = stored(b, self.dtype)
        if isinstance(b, float) or isinstance(self.value, float):
            b, a = float(b), float(self.value)
        else:
            a = self.value
        return Exact(function(b, a) if swap else function(a, b), self.dtype)

    def __add__(self, other: Any) -> Exact:
        return self.combined(other, operator.add)

    def __radd__(self, other: Any) -> Exact:
        return self.combined(other, operator.add, swap=True)

    def __sub__(self, other: Any) -> Exact:
        return self.combined(other, operator.sub)

    def __rsub__(self, other: Any) -> Exact:
        return self.combined(other, operator.sub, swap=True)

    def __mul__(self, other: Any) -> Exact:
        return self.combined(other, operator.mul)

    def __rmul__(self, other: Any) -> Exact:
        return self.combined(other, operator.mul, swap=True)

    def __truediv__(self, other: Any) -> Exact:
        return self.combined(other, lambda a, b: quotient(float(a), float(b)))

    def __neg__(self) -> Exact:
        return Exact(-self.value, self.dtype)

    def __abs__(self) -> Exact:
        return Exact(abs(self.value), self.dtype)


def cast(dtype: DType, value: Exact) -> Exact:
    return Exact(value.value, dtype)


def quotient(a: float, b: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(a) / np.float64(b))


def stored(value: float | int, dtype: DType) -> int:
    low, high = limits(dtype)
    if isinstance(value, int):
        return (value - low) % (high - low + 1) + low
    return int(value) if math.isfinite(value) and low <= int(value) <= high else low


def chosen(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def apply(a: Any, b: Any) -> Any:
        if isinstance(a, Exact):
            return a.combined(b, function)
        return b.combined(a, function, swap=True) if isinstance(b, Exact) else function(a, b)

    return apply


def wanted(text: str, dtype: DType, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """What the statements make of z."""
    result = z.copy()
    for at in range(COUNT):
        cells = {(row, at): Exact(int(z[row, at]), dtype) for row in range(ROWS)}
        names = {
            "x": {at: Exact(int(x[at]), dtype)}, "y": {at: Exact(int(y[at]), dtype)}, "z": cells, "i": at, "N": COUNT,
            "min": chosen(min), "max": chosen(max), "i32": partial(cast, i32), str(dtype): partial(cast, dtype),
        }  # fmt: skip
        exec(text, names)
        for (row, _), cell in cells.items():
            result[row, at] = stored(cell.value, dtype)
    return result


def data(dtype: DType) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = random.Random(7)
    rows = [rng.sample(edges(dtype), COUNT) for _ in range(ROWS + 2)]
    x, y, *z = np.array(rows, dtype.numpy_name)
    return x, y, np.array(z)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_c_and_the_reference_wrap_around(dtype: DType) -> None:
    text = drawn(dtype)
    nest, (x, y, z) = nest_of(text, dtype), data(dtype)
    right = wanted(text, dtype, x, y, z)
    for call in (partial(reference, nest), poly.compile(nest), poly.compile(nest, N=COUNT)):
        got = z.copy()
        call(x, y, got)
        np.testing.assert_array_equal(got, right)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_opencl_wraps_around(dtype: DType) -> None:
    target = device().label
    text = drawn(dtype)
    nest, (x, y, z) = nest_of(text, dtype), data(dtype)
    got = z.copy()
    poly.compile(nest, target=target)(x, y, got)
    np.testing.assert_array_equal(got, wanted(text, dtype, x, y, z))


CALLER = """
#include <stdio.h>
{arrays}
int main(void)
{{
  int n;
  for (n = 1; n <= 4; n++) {{
    if (numbers_force_isa((numbers_isa)n) != NUMBERS_OK) continue;
    {copy}
    if (numbers({count}, x, y, z, 0) != NUMBERS_OK) return 1;
    for (int at = 0; at < {rows}*{count}; at++) printf("%lld\\n", (long long)z[at]);
  }}
  return 0;
}}
"""
STRICTEST = {
    GCC: ("-fsanitize=undefined,float-cast-overflow", "-fno-sanitize-recover=all"),
    CLANG: ("-fsanitize=undefined,integer,float-cast-overflow", "-fno-sanitize-recover=all"),
}


@pytest.mark.parametrize(
    ("dtype", "toolchain", "level"),
    [
        *((u8, GCC, "-O0"), (i8, CLANG, "-O0"), (i32, GCC, "-O0"), (i32, CLANG, "-O0"), (i64, CLANG, "-O0")),
        *((u8, CLANG, "-O3"), (u16, CLANG, "-O0"), (i8, GCC, "-O3"), (i64, GCC, "-O3")),
    ],
    ids=str,
)
def test_headers_wrap_around_under_sanitizers(dtype: DType, toolchain: Toolchain, level: str, tmp_path: Path) -> None:
    """By every instruction set of this CPU; no flag tells the compiler of it. What is optimised is not sanitized."""
    text = drawn(dtype)
    nest, (x, y, z) = nest_of(text, dtype), data(dtype)
    at_any_level(header(tmp_path, nest, threads="none"))
    body = CALLER.format(
        arrays="\n".join(_array(name, values, dtype) for name, values in {"x": x, "y": y, "start": z}.items())
        + f"\nstatic {dtype.c_name} z[{z.size}];",
        copy=f"for (int at = 0; at < {z.size}; at++) z[at] = start[at];",
        count=COUNT,
        rows=ROWS,
    )
    flags = STRICTEST[toolchain] if level != "-O3" else ()
    binary = build_program(toolchain, implementation("numbers") + body, tmp_path, level, *flags)
    found = np.array(run(toolchain, binary).split(), np.int64).reshape(-1, ROWS, COUNT)
    right = wanted(text, dtype, x, y, z)
    assert len(found) > 0
    for got in found:
        np.testing.assert_array_equal(got, right)


def _array(name: str, values: np.ndarray, dtype: DType) -> str:
    """A C array with these values; the least one has no literal."""
    low = limits(dtype)[0]
    texts = (f"INT{8 * dtype.size}_MIN" if value == low < 0 else str(value) for value in values.ravel().tolist())
    return f"static const {dtype.c_name} {name}[] = {{{', '.join(texts)}}};"


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_reductions_wrap_around(dtype: DType) -> None:
    """In vector lanes, several vectors at a time, and what is left over; in C and on a device."""
    updates = [f"z[{row}, 0] {op}= x[i] - y[i]" for row, op in enumerate("+*")]
    updates += [f"z[{row}, 0] = {op}(z[{row}, 0], x[i] - y[i])" for row, op in enumerate(("max", "min"), 2)]
    nest = nest_of("\n".join(updates), dtype)
    rng = np.random.default_rng(3)
    low, high = limits(dtype)
    x, y = (rng.integers(low, high, 531, dtype=dtype.numpy_name, endpoint=True) for _ in range(2))
    right = np.ones((ROWS, 531), dtype.numpy_name)
    with np.errstate(all="ignore"):
        terms = (x - y).tolist()
    for row, combined in enumerate((operator.add, operator.mul, max, min)):
        right[row, 0] = reduce(lambda total, term, by=combined: stored(by(total, term), dtype), terms, 1)
    for call in (partial(reference, nest), poly.compile(nest), poly.compile(nest, target=device().label)):
        got = np.ones((ROWS, 531), dtype.numpy_name)
        call(x, y, got)
        np.testing.assert_array_equal(got, right)


@pytest.mark.parametrize("compiler", ["gcc", CLANG.command[0]])
def test_loops_of_integers_become_vectors(compiler: str, tmp_path: Path) -> None:
    """A product and a sum in their own types, as the plain operators would."""
    need(Toolchain((compiler,)))
    M, N = poly.sizes("M N")

    @poly.nest
    def scaled(x: i32[N], y: i32[N], z: i32[N]):
        for i in range(N):
            z[i] = x[i] * y[i] - 3 * z[i]

    @poly.nest
    def powers(A: i32[M, N], C: i32[M, N]):
        for i in range(M):
            for k in range(N):
                C[i, k] += A[i, k] * A[i, k] * A[i, k]

    for nest in (scaled, powers):
        text = tmp_path / "nest.c"
        text.write_text(poly.compile(nest, target="c:portable", threads=1).source)
        made = succeed([compiler, "-O3", "-mavx2", "-fno-trapping-math", "-S", "-o", "-", text])
        assert re.search(r"vpmulld\s.*ymm", made), nest.name
        assert re.search(r"vp(add|sub)d\s.*ymm", made), nest.name


LONG = {
    "60*60*24*365*100": 3153600000.0,
    "1024*1024*1024*4": 4294967296.0,
    "(-2147483647 - 2)": -2147483649.0,
    "1000000007*1000000009*1000000021": float(1000000007 * 1000000009 * 1000000021),
    "BIG": float(2**200 + 1),
    "(BIG - 3*BIG)/BIG": -2.0,
    "max(BIG, 7)/BIG": 1.0,
    "1e39": 1e39,
    "7/2": 3.5,
    "9007199254740993": 9007199254740993.0,
    "1.0 + 5.9604644775390625e-08": 1.0 + 2.0**-24,
    "i*1000000007*1000000009": float(2 * 1000000007 * 1000000009),
    "(N - 17)*(N - 17)": 4.0,
}
"""Numbers, and their values where i is 2 and N is 19."""


@pytest.mark.parametrize("dtype", [f32, f64], ids=str)
@pytest.mark.parametrize("form", ["= x[i] *", "=", "+="])
def test_a_literal_may_be_of_any_length(form: str, dtype: DType) -> None:
    """It is rounded once, to what NumPy makes of Python's number."""
    nest = nest_of("\n".join(f"z[{at}, i] {form} ({number})" for at, number in enumerate(LONG)), dtype, BIG=2**200 + 1)
    kind = np.dtype(dtype.numpy_name).type
    with np.errstate(all="ignore"):
        right = np.array([*LONG.values()]).astype(kind)
    compiled = (poly.compile(nest), poly.compile(nest, N=COUNT), poly.compile(nest, target=device().label))
    for call in (partial(reference, nest), *compiled):
        x, z = np.ones(COUNT, kind), np.zeros((ROWS, COUNT), kind)
        call(x, x.copy(), z)
        np.testing.assert_array_equal(z[: len(right), 2], right)


@pytest.mark.parametrize("dtype", [f32, f64], ids=str)
def test_headers_have_literals_of_any_length(dtype: DType, tmp_path: Path) -> None:
    rows = list(LONG)
    nest = nest_of("\n".join(f"z[{at}, i] = {number}" for at, number in enumerate(rows)), dtype, BIG=2**200 + 1)
    path = header(tmp_path, nest, threads="none", isas=["portable"])
    build_program(GCC, implementation("numbers"), tmp_path, "-c", "-O1")
    build_program(CLANG, implementation("numbers"), tmp_path, "-c", "-O1")
    ffi, lib = library(path)
    kind = np.dtype(dtype.numpy_name).type
    x, z = np.ones(COUNT, kind), np.zeros((ROWS, COUNT), kind)
    pointers = [ffi.cast(f"{dtype.c_name} *", array.ctypes.data) for array in (x, x.copy(), z)]
    assert lib.numbers(COUNT, *pointers, 0) == 0
    with np.errstate(all="ignore"):
        right = np.array([LONG[number] for number in rows]).astype(kind)
    np.testing.assert_array_equal(z[: len(rows), 2], right)


def test_products_of_indices_go_beyond_64_bits() -> None:
    """Python's are exact there; the nest's are rounded, operation by operation, as f64 are."""
    nest = nest_of("z[0, i] = (i + 16777213)*(i + 1000000007)*N*1000003", f64)
    right = [float((at + 16777213) * (at + 1000000007) * COUNT * 1000003) for at in range(COUNT)]
    for call in (partial(reference, nest), poly.compile(nest), poly.compile(nest, target=device().label)):
        x, z = np.ones(COUNT), np.zeros((ROWS, COUNT))
        call(x, x.copy(), z)
        np.testing.assert_allclose(z[0], right, rtol=1e-15)


def test_integers_of_64_bits_are_exact() -> None:
    text = "\n".join(
        f"z[{row}, i] = {value}"
        for row, value in enumerate(
            ("60*60*24*365*100", "-9223372036854775808", "1024*1024*1024*4*i", "9223372036854775807")
        )
    )
    nest = nest_of(text, i64)
    for call in (partial(reference, nest), poly.compile(nest), poly.compile(nest, target=device().label)):
        x, z = np.ones(COUNT, np.int64), np.zeros((ROWS, COUNT), np.int64)
        call(x, x.copy(), z)
        assert z[:4, 2].tolist() == [3153600000, -(2**63), 2**33, 2**63 - 1]


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        (i8, "z[0, i] = x[i] + 128"),
        (i8, "z[0, i] += 200"),
        (i32, "z[0, i] = x[i] * (60*60*24*365*100)"),
        (i32, "z[0, i] = max(x[i], 3000000000)"),
        (i32, "z[0, i] = -2147483649"),
        (i64, "z[0, i] = x[i] - 9223372036854775808"),
        (i64, "z[0, i] = BIG"),
    ],
)
def test_an_integer_that_the_type_has_not_is_refused_as_by_numpy(dtype: DType, text: str) -> None:
    with pytest.raises(poly.SpecError, match=f"meets the type {dtype}, which has no such number"):
        nest_of(text, dtype, BIG=2**200)
    with pytest.raises(OverflowError):
        array = np.ones(3, dtype.numpy_name)
        exec(text, {"x": array, "z": array[None, :].copy(), "i": 0, "BIG": 2**200})


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("z[0, i] = 1/0", "has no value in Python"),
        ("z[0, i] = HUGE*x[i]", "meets the type f64"),
        ("z[0, i] = HUGE/3", "has no value in Python"),
        ("if i < 2*281474976710657:\n    z[0, i] = 1", "has the integer 281474976710657"),
        ("for j in range(HUGE):\n    z[0, i] = 1", "of about 398 digits"),
    ],
)
def test_other_numbers_that_are_none_are_refused(text: str, match: str) -> None:
    with pytest.raises(poly.SpecError, match=re.escape(match)):
        nest_of(text, f64, HUGE=10**400)


def test_what_divides_by_nothing_at_some_sizes() -> None:
    """A size that turns out to be 0 divides as a float does, also where it is known beforehand."""
    nest = nest_of("z[0, i] = 1 / (N - 19)\nz[1, i] = (N - 19) / (N - 19)", f64)
    for call in (partial(reference, nest), poly.compile(nest), poly.compile(nest, N=COUNT)):
        x, z = np.ones(COUNT), np.zeros((ROWS, COUNT))
        call(x, x.copy(), z)
        np.testing.assert_array_equal(z[:2, 0], [np.inf, np.nan])
