"""Elementary functions of whole vectors, by instructions for their parts that compilers do not choose.

AVX-512 multiplies by 2^n (`scalef`) for any n, rounded down, with the right results for infinities, and where they
overflow or are subnormal; looks numbers up in two registers (`permutex2var`) by the last bits of integers; and takes
the exponent (`getexp`) and the mantissa (`getmant`) of any number. Tables follow Tang ("Table-driven implementation of
the exponential function in IEEE floating-point arithmetic", ACM TOMS 15(2), 1989; "… of the logarithm function …",
16(4), 1990).

`exp(x) = 2^n * e^r` with n the multiple of 1/32 (f32) or 1/16 (f64) that is nearest to x/ln 2, whose fraction finds its
power in a table. e^r is 1 + r + r^2 q(r), with q as in `exponentials`, but for |r| up to ln(2)/64 or ln(2)/32,
with errors of 2.9e-10 and 4.1e-20. ln 2 is split so that n times its first part is exact. r is bounded, which makes a
number of what is none for an infinite x; n remembers, NaN too. For exp2, n is the multiple nearest to x.

`log(x) = e ln 2 - log c + log(1 + r)` with x = m 2^e, m from 3/4 to 3/2, c the inverse of the middle of one of 32 or 16
parts of this range, and r = mc - 1, which is exact; c is 1 next to 1, so that log x is log(1 + r) there. That is
r + r^2 p(r), for r from -1/64 to 1/32 or -1/32 to 1/16, with errors of 2.0e-8 and 2.2e-17. ln 2 and log c are in two
parts; sums of the first ones are exact. log2 and log10 have such parts of their own.

AVX2 looks up the eight powers of 2^(1/8) for exp in f32. Their exponents lack what shifting n, with its fraction, into
place adds to them: one sum of integers makes 2^n. |x| is up to 87, so that this is a normal number; the lanes beyond
take the function of one number, outside of the loop, in which it would cost registers and a product more. q has an
error of 1.7e-9 there.

tanh (f32) and erf have polynomials in 32 or 16 pieces (`pieces`), whose coefficients are looked up, with errors
of 3.7e-9 (tanh), 4.9e-11 and 1.2e-19 (erf).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cache

import numpy as np

from codegen.elementary.constants import CONSTANTS, Constants
from codegen.elementary.exponentials import LN2, LOG2_E
from codegen.elementary.pieces import Pieces, erf, tanh
from codegen.macros import EACH_LANE
from microkernels.ctext import INLINE, NOINLINE
from microkernels.dtypes import DType, f32, f64
from microkernels.isa import AVX2, AVX512, ISA

INCLUDE = "#include <immintrin.h>"
TYPES = (f32, f64)
OF_VECTOR = "each"
"""The word in their names: `exp_each_f32x16`."""


@dataclass(frozen=True)
class PowerTable:
    """What the functions take in a type: tables of 2^bits numbers, ln 2 in two parts, the coefficients of q and p, the
    bits behind the point in first parts of logarithms, the intrinsics' ending, and the type of C's vectors."""

    bits: int
    ln2: tuple[float, float]
    exp: tuple[float, ...]
    log: tuple[float, ...]
    places: int
    ending: str
    vector: str


TABLES = {
    f32: PowerTable(
        5,
        (0.69287109375, 0.00027608680994530943),
        (0.5000024437151753, 0.16666715540942872),
        (-0.5000005379503623, 0.333378688543291, -0.2454392930075603),
        16,
        "ps",
        "f32x16",
    ),
    f64: PowerTable(
        4,
        (0.6931471805582987, 1.6465949582897082e-12),
        (
            0.5000000000000001,
            0.16666666666666669,
            0.041666666663595475,
            0.00833333333299209,
            0.0013889063440655327,
            0.0001984146378747018,
        ),
        (
            -0.49999999999999994,
            0.33333333333340287,
            -0.2500000000009317,
            0.1999999995328674,
            -0.16666665870721806,
            0.1428579138027727,
            -0.12501839998216407,
            0.11081912861679763,
            -0.088437987998088,
        ),
        42,
        "pd",
        "f64x8",
    ),
}
INSTRUCTION = re.compile(r"\b_mm(?:256|512)_(?!set1_)")
"""An intrinsic that is an instruction in a loop; constants are made before it."""
EIGHTHS = 8
LN2_OF_EIGHTHS = (0.693115234375, 3.1946183093218304e-05)
EXP_OF_EIGHTHS = (0.5, 0.1666783968696943, 0.04166862168412483)
"""For exp in AVX2: the parts of which n is a multiple, ln 2 in two parts, and the coefficients of q."""


def has(isa: ISA, function: str, dtype: DType) -> bool:
    """Whether there is the function of a full vector of a type."""
    if isa.name == AVX2.name:
        return (function, dtype) == ("exp", f32)
    known = function in MAKERS or (function, dtype) in PIECES
    return isa.name == AVX512.name and known and dtype in TYPES


def name(function: str, dtype: DType, lanes: int) -> str:
    """`exp_each_f32x16`."""
    return f"{function}_{OF_VECTOR}_{dtype.name}x{lanes}"


@cache
def text(function: str, dtype: DType, lanes: int) -> str:
    """The C function."""
    k, table = next(k for k in CONSTANTS if k.dtype == dtype), TABLES[dtype]
    if lanes * dtype.size == AVX2.vector_bytes:
        return _exp_of_eight(k, name(function, dtype, lanes))
    pieces = PIECES.get((function, dtype))
    lines = _in_pieces(k, table, pieces) if pieces else MAKERS[function](k, table)
    body = "\n".join(f"    {line}" for line in lines)
    return f"{INLINE} {table.vector} {name(function, dtype, lanes)}({table.vector} x)\n{{\n{body}\n}}"


@cache
def operations(isa: ISA, function: str, dtype: DType) -> int:
    """The vector operations of a function: its instructions, and products and sums, which are one where they pair.

    All do but a product, the square of the reduced argument, and a sum, which makes a whole number of a shifted one.
    """
    made = text(function, dtype, isa.lanes(dtype))
    products, sums = made.count(" * "), made.count(" + ") + made.count(" - ")
    return len(INSTRUCTION.findall(made)) + max(products, sums) + 1


def _exp_of_eight(k: Constants, name: str) -> str:
    """exp in AVX2."""
    bits = EIGHTHS.bit_length() - 1
    kind, shift, place = f"f32x{EIGHTHS}", k.number(1.5 * 2.0 ** (k.mantissa - bits)), k.mantissa - bits
    powers = [np.float32(2 ** (i / EIGHTHS)).view(np.int32) - (i << place) for i in range(EIGHTHS)]
    numbers = ", ".join(k.number(float(np.int32(power).view(np.float32))) for power in powers)
    first, second = map(k.number, LN2_OF_EIGHTHS)
    q0, q1, q2 = map(k.number, EXP_OF_EIGHTHS)
    return f"""{NOINLINE} {kind} {name}_far({kind} x, {kind} result, __m256 far)
{{
    {kind}_lanes each = {{x}};
    {EACH_LANE}
    for (int lane = 0; lane < {EIGHTHS}; lane += 1)
        each.lane[lane] = exp_f32(each.lane[lane]);
    return _mm256_blendv_ps(result, each.all, far);
}}
{INLINE} {kind} {name}({kind} x)
{{
    const {kind} powers = {{{numbers}}};
    const {kind} sum = x * {k.number(LOG2_E)} + {shift}, n = sum - {shift};
    const {kind} r = (x - n * {first}) - n * {second}, r2 = r * r;
    const {kind} e = r2 * (r2 * {q2} + (r * {q1} + {q0})) + r;
    const __m256i power = _mm256_permutevar8x32_epi32((__m256i)powers, (__m256i)sum);
    const {kind} scale = ({kind})_mm256_add_epi32(power, _mm256_slli_epi32((__m256i)sum, {place}));
    const __m256 size = _mm256_andnot_ps(_mm256_set1_ps({k.number(-0.0)}), x);
    const __m256 far = _mm256_cmp_ps(size, _mm256_set1_ps({k.number(87.0)}), _CMP_NLE_UQ);
    const {kind} result = e * scale + scale;
    return _mm256_movemask_ps(far) ? {name}_far(x, result, far) : result;
}}"""


def _exp(k: Constants, table: PowerTable) -> list[str]:
    first, second = map(k.number, table.ln2)
    return [
        *_multiple(k, table, "x", LOG2_E),
        f"const {table.vector} rest = (x - n * {first}) - n * {second};",
        *_power(k, table),
    ]


def _exp2(k: Constants, table: PowerTable) -> list[str]:
    sum_ = f"const {table.vector} sum = x + {k.number(_shift(k, table))}, n = sum - {k.number(_shift(k, table))};"
    return [sum_, f"const {table.vector} rest = (x - n) * {k.number(LN2)};", *_power(k, table)]


def _power(k: Constants, table: PowerTable) -> list[str]:
    """Lines that return 2^n e^rest."""
    bound = f"_mm512_set1_{table.ending}({k.number(0.51 * LN2 / 2**table.bits)})"
    return [
        f"const {table.vector} r = _mm512_range_{table.ending}(rest, {bound}, 2), r2 = r * r;",
        *_found(k, table, "power", _powers(table), "sum"),
        f"const {table.vector} e = r2 * ({_polynomial(list(map(k.number, table.exp)))}) + r;",
        f"return _mm512_scalef_{table.ending}(e * power + power, n);",
    ]


def _in_pieces(k: Constants, table: PowerTable, pieces: Pieces) -> list[str]:
    """The piece's number is in the last bits of a sum; NaN is no number that `min` bounds."""
    vector, end = table.vector, table.ending
    count, shift = 2**table.bits, k.number(1.5 * 2.0**k.mantissa)
    at, *rows = pieces.rows(count)
    names = [f"a{number}" for number in range(len(rows))]
    looked_up = [_found(k, table, name, row, "sum") for name, row in zip(("at", *names), (at, *rows), strict=True)]
    most = k.number(float(pieces.width * (count - 1)))
    return [
        f"const {vector} sign = _mm512_and_{end}(x, _mm512_set1_{end}({k.number(-0.0)}));",
        f"const {vector} size = _mm512_min_{end}(_mm512_set1_{end}({most}), _mm512_xor_{end}(x, sign));",
        f"const {vector} sum = size * {k.number(float(1 / pieces.width))} + {shift}, n = sum - {shift};",
        f"const {vector} r = size - n * {k.number(float(pieces.width))}, r2 = r * r;",
        *(line for lines in looked_up for line in lines),
        f"return _mm512_or_{end}(_mm512_fmadd_{end}(r, {_polynomial(names)}, r) + at, sign);",
    ]


def _log(base: int | None) -> Callable[[Constants, PowerTable], list[str]]:
    """The maker of the logarithm to a base, the natural one by default."""

    def make(k: Constants, table: PowerTable) -> list[str]:
        vector, end = table.vector, table.ending
        inverses = _inverses(table)
        with localcontext(prec=60):
            unit = Decimal(1) if base is None else Decimal(base).ln()
            (whole, rest), *parts = (_parts(value.ln() / unit, table.places) for value in (Decimal(2), *inverses))
            scale = "" if base is None else f" * {k.number(float(1 / unit))}"
        numbers = f"e * {k.number(whole)}" if whole != 1 else "e"
        low = f"e * {k.number(rest)} - low" if rest else "-low"
        bits = f"(__m512i)m, {k.mantissa - table.bits}"
        return [
            f"const {vector} m = _mm512_getmant_{end}(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan);",
            f"const {vector} e = _mm512_getexp_{end}(x) - _mm512_getexp_{end}(m);",
            f"const __m512i part = _mm512_srli_epi{8 * k.dtype.size}({bits});",
            *_found(k, table, "inverse", list(map(Decimal, inverses)), "part"),
            *_found(k, table, "high", [Decimal(high) for high, _ in parts], "part"),
            *_found(k, table, "low", [Decimal(low) for _, low in parts], "part"),
            f"const {vector} r = _mm512_fmsub_{end}(m, inverse, _mm512_set1_{end}({k.number(1)})), r2 = r * r;",
            f"const {vector} log = r2 * ({_polynomial(list(map(k.number, table.log)))}) + r;",
            f"return ({numbers} - high) + (({low}) + log{scale});",
        ]

    return make


def _inverses(table: PowerTable) -> list[Decimal]:
    """The inverses of the middles of parts of [1, 3/2), then of [3/4, 1); 1 for those next to 1."""
    count = 2**table.bits
    middles = [(1 + (Decimal(i) + Decimal("0.5")) / count) / (1 if 2 * i < count else 2) for i in range(count)]
    inverses = [Decimal(round(1024 / middle)) / 1024 for middle in middles]
    return [Decimal(1), *inverses[1:-1], Decimal(1)]


def _parts(value: Decimal, places: int) -> tuple[float, float]:
    """A number in two parts, of which the first has so many bits behind the point; both have its sign."""
    high = Decimal(int(value * 2**places)) / 2**places
    return float(high), float(value - high)


@cache
def _powers(table: PowerTable) -> tuple[Decimal, ...]:
    return tuple(Decimal(2) ** (Decimal(i) / 2**table.bits) for i in range(2**table.bits))


def _shift(k: Constants, table: PowerTable) -> float:
    """What is added to a number to round it to a multiple of 2^-bits."""
    return 1.5 * 2.0 ** (k.mantissa - table.bits)


def _multiple(k: Constants, table: PowerTable, x: str, factor: float) -> list[str]:
    shift = k.number(_shift(k, table))
    return [f"const {table.vector} sum = {x} * {k.number(factor)} + {shift}, n = sum - {shift};"]


def _found(k: Constants, table: PowerTable, what: str, values: Sequence[Decimal], place: str) -> list[str]:
    """Lines that look numbers up by the last bits of integers."""
    numbers, half = [k.number(float(value)) for value in values], 2 ** (table.bits - 1)
    words = (f"{what}_first", f"{what}_last")
    lines = [
        f"const {table.vector} {word} = {{{', '.join(numbers[first : first + half])}}};"
        for word, first in zip(words, (0, half), strict=True)
    ]
    found = f"_mm512_permutex2var_{table.ending}({words[0]}, (__m512i){place}, {words[1]})"
    return [*lines, f"const {table.vector} {what} = {found};"]


def _polynomial(numbers: Sequence[str]) -> str:
    """A polynomial in r from pairs of its coefficients, which shortens the chain of sums that depend on one another."""
    pairs = [numbers[first : first + 2] for first in range(0, len(numbers), 2)]
    *lower, result = [f"r * {pair[1]} + {pair[0]}" if len(pair) > 1 else pair[0] for pair in pairs]
    for pair in reversed(lower):
        result = f"{f'({result})' if ' ' in result else result} * r2 + ({pair})"
    return result


MAKERS: Mapping[str, Callable[[Constants, PowerTable], list[str]]] = {
    "exp": _exp,
    "exp2": _exp2,
    "log": _log(None),
    "log2": _log(2),
    "log10": _log(10),
}
"""The makers of the functions' lines, by name."""
PIECES: Mapping[tuple[str, DType], Pieces] = {
    ("tanh", f32): Pieces(tanh, Decimal(19) / 64, 6),
    ("erf", f32): Pieces(erf, Decimal(33) / 256, 6),
    ("erf", f64): Pieces(erf, Decimal(51) / 128, 14),
}
"""The functions in pieces; the last piece's centre is where they have rounded to 1."""
