"""exp of whole vectors, where an instruction set has instructions for its parts that compilers do not choose.

AVX-512 multiplies by 2^n (`scalef`) for any n, with the right results for infinities, and where they overflow or are
subnormal; and looks numbers up in two registers (`permutex2var`) by the last bits of integers.

`exp(x) = 2^n * e^r` with n the multiple of 1/32 (f32) or 1/16 (f64) that is nearest to x/ln 2, whose fraction finds its
power in a table (Tang, "Table-driven implementation of the exponential function in IEEE floating-point arithmetic",
ACM TOMS 15(2), 1989). e^r is 1 + r + r^2 q(r), with q as in `codegen.exponentials`, but for |r| up to ln(2)/64 or
ln(2)/32, with errors of 2.9e-10 and 2.9e-17. ln 2 is split so that n times its first part is exact. r is bounded, which
makes a number of what is none for an infinite x; n remembers, NaN too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from codegen.constants import CONSTANTS, Constants
from codegen.exponentials import LOG2_E
from microkernels.ctext import INLINE
from microkernels.dtypes import DType, f32, f64
from microkernels.isa import AVX512, ISA

INCLUDE = "#include <immintrin.h>"
NAMES: Mapping[str, frozenset[str]] = {AVX512.name: frozenset({"exp"})}
"""The functions of vectors by instruction set."""
TYPES = (f32, f64)
OF_VECTOR = "each"
"""The word in their names: `exp_each_f32x16`."""


@dataclass(frozen=True)
class PowerTable:
    """What exp takes in a type: 2^bits powers, ln 2 in two parts, q's coefficients, and the intrinsics' ending."""

    bits: int
    ln2: tuple[float, float]
    exp: tuple[float, ...]
    ending: str


TABLES = {
    f32: PowerTable(5, (0.69287109375, 0.00027608680994530943), (0.5000024437151753, 0.16666715540942872), "ps"),
    f64: PowerTable(
        4,
        (0.6931471805582987, 1.6465949582897082e-12),
        (0.5, 0.1666666666530169, 0.04166666666496233, 0.008333449701253456, 0.0013889034316466326),
        "pd",
    ),
}


def has(isa: ISA, function: str, dtype: DType) -> bool:
    """Whether there is the function of a full vector of a type."""
    return function in NAMES.get(isa.name, ()) and dtype in TYPES


def name(function: str, dtype: DType, lanes: int) -> str:
    """`exp_each_f32x16`."""
    return f"{function}_{OF_VECTOR}_{dtype.name}x{lanes}"


@cache
def text(function: str, dtype: DType, lanes: int) -> str:
    """The C function."""
    assert function == "exp", "there is no other one"
    return _exp(next(k for k in CONSTANTS if k.dtype == dtype), TABLES[dtype], f"{dtype.name}x{lanes}", lanes)


def _exp(k: Constants, table: PowerTable, vector: str, lanes: int) -> str:
    shift = 1.5 * 2 ** (k.mantissa - table.bits)
    powers = [k.number(float(Decimal(2) ** (Decimal(i) / 2**table.bits))) for i in range(2**table.bits)]
    low, high = (", ".join(powers[first : first + lanes]) for first in (0, lanes))
    bound = 0.51 * table.ln2[0] / 2**table.bits
    return f"""{INLINE} {vector} exp_{OF_VECTOR}_{vector}({vector} x)
{{
    const {vector} low = {{{low}}};
    const {vector} high = {{{high}}};
    const {vector} sum = x * {k.number(LOG2_E)} + {k.number(shift)}, n = sum - {k.number(shift)};
    const {vector} rest = (x - n * {k.number(table.ln2[0])}) - n * {k.number(table.ln2[1])};
    const {vector} r = _mm512_range_{table.ending}(rest, _mm512_set1_{table.ending}({k.number(bound)}), 2), r2 = r * r;
    const {vector} power = _mm512_permutex2var_{table.ending}(low, (__m512i)sum, high);
    const {vector} e = r2 * ({_quotient(k, table)}) + r;
    return _mm512_scalef_{table.ending}(e * power + power, n);
}}"""


def _quotient(k: Constants, table: PowerTable) -> str:
    """q from pairs of its coefficients, which shortens the chain of sums that depend on one another."""
    numbers = list(map(k.number, table.exp))
    pairs = [numbers[first : first + 2] for first in range(0, len(numbers), 2)]
    texts = [f"r * {pair[1]} + {pair[0]}" if len(pair) > 1 else pair[0] for pair in pairs]
    result = texts[-1]
    for text in reversed(texts[:-1]):
        result = f"({result}) * r2 + ({text})" if " " in result else f"{result} * r2 + ({text})"
    return result
