"""sin, cos and tan as C functions: C's library has those of all numbers, and compilers vectorise those of near ones.

`near_sin`, `near_cos` and `near_tan` take numbers below FAR; errors are below 1.5 (f32) and 2 (f64) units in the last
place, those of near_tan below 1.5.
They subtract from x the nearest multiple of pi/2 (Cody and Waite, Software Manual for the Elementary Functions, 1980),
whose first parts have so few bits that their products with the multiple's number are exact. What is left, r, needs two
numbers in f64, where x may be almost a multiple. f32 is computed in f64 until then, or where instructions add a product
without rounding it, in f32: the first part then has all 24 bits, and what it leaves is a multiple of 2^-23. tan, a
quotient with the errors of both, takes two numbers there, and a polynomial of its own. sin r is
r + r z s(z) and cos r is 1 - z/2 + z^2 c(z), with z = r^2 and polynomials s and c that interpolate, with errors of
1.3e-8 and 7.7e-10 (f32), and 1.9e-17 and 8.9e-19 (f64). The last bits of the multiple's number say which of them it is,
and its sign. sin and cos in f64 subtract multiples of pi, from x and from x + pi/2: what is left goes up to pi/2, but
one longer polynomial, with an error of 2.8e-18, is less work than two and a choice.

Larger numbers need some hundred digits of pi, which no vector should wait for: see `codegen.lanes.near`.
"""

from __future__ import annotations

import struct

from codegen.elementary.polynomials import horner
from codegen.macros import IN_LANES, WRAPS
from microkernels.dtypes import DType, f32, f64
from microkernels.isa import ISA

FAR = {f32: 262144.0, f64: 1e6}
"""Numbers from here on, infinities and NaN are far."""
QUARTERS = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)
"""pi/2 in three parts, of which the first two have 33 bits."""
FLOAT_QUARTERS = (1.5707963705062866, -4.371138828673793e-08, -1.7151244994428829e-15)
"""pi/2 in three parts, of which the first two are floats."""
SINE = {
    f32: (-0.1666666466231438, 0.008332748270629749, -0.00019587890880412386),
    f64: (
        -0.16666666666666666,
        0.008333333333330948,
        -0.00019841269836758574,
        2.755731610255244e-06,
        -2.5051131845003624e-08,
        1.5918129294866608e-10,
    ),
}
"""The coefficients of s, the lowest first."""
COSINE = {
    f32: (0.04166666465950221, -0.0013888303035894866, 2.4547942085071572e-05),
    f64: (
        0.041666666666666664,
        -0.0013888888888887398,
        2.480158729876569e-05,
        -2.7557317271729793e-07,
        2.08761462684032e-09,
        -1.1382632425521717e-11,
    ),
}
"""Those of c."""
TANGENT = (
    0.33333333979455765,
    0.13333230944682223,
    0.053994464722099254,
    0.021621127411513202,
    0.00996214699884352,
    0.001185321652067763,
    0.003843139779255223,
)
"""The coefficients of t in f32, in tan r = r + r z t(z), with an error of 5.4e-9."""
WIDE_SINE = (
    -0.16666666666666666,
    0.008333333333333226,
    -0.00019841269841223722,
    2.7557319214019563e-06,
    -2.505210716338703e-08,
    1.6058955311249853e-10,
    -7.643417082334363e-13,
    2.725809934115782e-15,
)
"""Those of s in f64 for r up to pi/2: -1/6, and others that make up for its rounding."""


def functions(isa: ISA) -> dict[str, str]:
    """The C functions by name."""
    has_fma = isa.name == "neon" or "-mfma" in isa.flags
    makers = {"f32": _near_by_fma if has_fma else _near_f32, "f64": _near_f64}
    near = {f"near_{name}_{kind}": make(name) for kind, make in makers.items() for name in ("sin", "cos")}
    near["near_tan_f32"] = _near_tan_by_fma() if has_fma else _near_tan_f32()
    near["near_tan_f64"] = _near_tan_f64()
    return near | {f"far_{k.name}": _far(k) for k in (f32, f64)}


def _polynomials(dtype: DType, end: str) -> list[str]:
    return [horner([repr(a) + end for a in found[dtype]]) for found in (SINE, COSINE)]


def _far(dtype: DType) -> str:
    """A word whose highest bit is set for far numbers: without their signs, numbers compare as their bits do."""
    real, word, bits = ("f", "I", "uint32_t") if dtype == f32 else ("d", "Q", "uint64_t")
    (least,) = struct.unpack(f"<{word}", struct.pack(f"<{real}", FAR[dtype]))
    sign = f"(({bits})1 << {8 * dtype.size - 1})"
    return f"""{WRAPS} static inline {bits} far_{dtype.name}({dtype.c_name} x)
{{
    return {hex(least - 1)}u - (bits_of_{dtype.name}(x) & ~{sign});
}}"""


def _near_by_fma(name: str) -> str:
    """In f32, as `_near_f32`, which says what is added to the sum."""
    is_odd = name == "sin"
    sign = "    const uint32_t sign = bits_of_f32(x) & 0x80000000u;\n" * is_odd
    size, added = ("of_bits_f32(bits_of_f32(x) ^ sign)", 4) if is_odd else ("x", 1)
    r = "size"
    for part in FLOAT_QUARTERS:
        r = f"__builtin_fmaf(n, {-part!r}f, {r})"
    s, c = _polynomials(f32, "f")
    return f"""{IN_LANES} float near_{name}_f32(float x)
{{
{sign}    const float size = {size};
    const uint32_t sum = bits_of_f32(size * 0.6366197723675814f + 12582912.0f) + {added};
    const float n = of_bits_f32(sum) - {12582912.0 + added}f, r = {r}, z = r * r;
    const float sine = r + r * z * ({s}), cosine = 1.0f + z * (z * ({c}) - 0.5f);
    const uint32_t chosen = bits_of_f32(sum & 1 ? cosine : sine);
    return of_bits_f32(chosen{" ^ sign" * is_odd} ^ ((sum & 2) << 30));
}}"""


def _near_f32(name: str) -> str:
    """For sin, x is replaced by its size, and its sign is put back: a function that is odd to the last bit.

    The quadrant is chosen by its bits: not every instruction set compares integers of 64 bits. What is added to the sum
    makes a cosine of the next quadrant's sine, or is a whole period; `exponentials` says why it is never 0.
    """
    is_odd = name == "sin"
    sign = "    const uint32_t sign = bits_of_f32(x) & 0x80000000u;\n" * is_odd
    size, added = ("of_bits_f32(bits_of_f32(x) ^ sign)", 4) if is_odd else ("x", 1)
    s, c = _polynomials(f32, "f")
    return f"""{IN_LANES} float near_{name}_f32(float x)
{{
{sign}    const double size = {size};
    const uint64_t sum = bits_of_f64(size * 0.6366197723675814 + 6755399441055744.0) + {added};
    const double n = of_bits_f64(sum) - {6755399441055744.0 + added};
    const float r = (float)((size - n * {QUARTERS[0]!r}) - n * {QUARTERS[1] + QUARTERS[2]!r}), z = r * r;
    const float sine = r + r * z * ({s}), cosine = 1.0f + z * (z * ({c}) - 0.5f);
    const uint32_t number = (uint32_t)sum, swap = 0 - (number & 1);
    const uint32_t chosen = (bits_of_f32(sine) & ~swap) | (bits_of_f32(cosine) & swap);
    return of_bits_f32(chosen{" ^ sign" * is_odd} ^ ((number & 2) << 30));
}}"""


def _near_f64(name: str) -> str:
    """What is left is b + low, where low is so small that three digits of cos b are enough for its part.

    cos x is minus the sine of what is left of x - pi/2, for even multiples of pi. What is added to the sum is as above.
    """
    is_odd = name == "sin"
    sign, added = (" ^ sign", 2) if is_odd else ("", 1)
    half, whole = ("", "") if is_odd else (" - 0.5", " + 0.5")
    first, second, third = (2 * part for part in QUARTERS)
    s = horner([repr(one) for one in WIDE_SINE])
    return f"""{IN_LANES} double near_{name}_f64(double x)
{{
    const uint64_t sign = bits_of_f64(x) & ((uint64_t)1 << 63);
    const double size = of_bits_f64(bits_of_f64(x) ^ sign);
    const uint64_t sum = bits_of_f64(size * 0.3183098861837907{half} + 6755399441055744.0) + {added};
    const double n = of_bits_f64(sum) - {6755399441055744.0 + added}{whole};
    const double a = size - n * {first!r}, b = a - n * {second!r};
    const double low = ((a - b) - n * {second!r}) - n * {third!r}, z = b * b;
    const double sine = b + (b * z * ({s}) + low * (1.0 + z * (0.03705 * z - 0.4967)));
    return of_bits_f64(bits_of_f64(sine){sign} ^ (sum << 63));
}}"""


def _near_tan(dtype: DType, lines: str, result: str) -> str:
    """The quotient of sine and cosine, or in every other quarter that of minus cosine and sine."""
    c, bits, top = dtype.c_name, f"uint{8 * dtype.size}_t", 8 * dtype.size - 1
    return f"""{IN_LANES} {c} near_tan_{dtype.name}({c} x)
{{
    const {bits} sign = bits_of_{dtype.name}(x) & (({bits})1 << {top});
    const double size = of_bits_{dtype.name}(bits_of_{dtype.name}(x) ^ sign);
    const uint64_t sum = bits_of_f64(size * 0.6366197723675814 + 6755399441055744.0) + 4;
    const double n = of_bits_f64(sum) - 6755399441055748.0;
    const uint64_t swap = 0 - (sum & 1);
{lines}
    return of_bits_{dtype.name}(bits_of_{dtype.name}({result}) ^ sign ^ ({"(uint32_t)" * (dtype == f32)}swap << {top}));
}}"""


def _chosen(name: str, plain: str, swapped: str) -> str:
    return f"{name} = of_bits_f64((bits_of_f64({plain}) & ~swap) | (bits_of_f64({swapped}) & swap))"


def _near_tan_f32() -> str:
    """In f64, as the quotient has the errors of both."""
    s, c = _polynomials(f32, "")
    return _near_tan(
        f32,
        f"""    const double r = (size - n * {QUARTERS[0]!r}) - n * {QUARTERS[1] + QUARTERS[2]!r}, z = r * r;
    const double sine = r + r * z * ({s}), cosine = 1.0 + z * (z * ({c}) - 0.5);
    const double {_chosen("above", "sine", "cosine")};
    const double {_chosen("below", "cosine", "sine")};""",
        "(float)(above / below)",
    )


def _near_tan_by_fma() -> str:
    """In f32: what is left is b + low, and tan(b + low) is t + rest, whose reciprocal is corrected by what it has lost.

    The factor of low is tan's slope, for which two digits are enough.
    """
    first, second, third = FLOAT_QUARTERS
    t = horner([f"{a!r}f" for a in TANGENT])
    return f"""{IN_LANES} float near_tan_f32(float x)
{{
    const uint32_t sign = bits_of_f32(x) & 0x80000000u;
    const float size = of_bits_f32(bits_of_f32(x) ^ sign);
    const uint32_t sum = bits_of_f32(size * 0.6366197723675814f + 12582912.0f) + 4;
    const float n = of_bits_f32(sum) - 12582916.0f, a = __builtin_fmaf(n, {-first!r}f, size);
    const float p = __builtin_fmaf(n, {second!r}f, 0.0f); /* rounded: no product that a compiler could fuse */
    const float b = a - p, lost = __builtin_fmaf(n, {-second!r}f, p), z = b * b;
    const float low = __builtin_fmaf(n, {-third!r}f, ((a - b) - p) + lost);
    const float tail = b * z * ({t}) + low * (1.0f + z * (1.0f + z));
    const float t = b + tail, rest = (b - t) + tail;
    const float y = -1.0f / t, error = __builtin_fmaf(y, t, 1.0f) + y * rest;
    const float value = sum & 1 ? y + y * error : t;
    return of_bits_f32(bits_of_f32(value) ^ sign);
}}"""


def _near_tan_f64() -> str:
    """Sine and cosine are sums of two numbers, so that the quotient is corrected by what these have lost."""
    first, second, third = QUARTERS
    s, c = _polynomials(f64, "")
    return _near_tan(
        f64,
        f"""    const double a = size - n * {first!r}, b = a - n * {second!r};
    const double low = ((a - b) - n * {second!r}) - n * {third!r}, r = b + low, tail = (b - r) + low;
    const double z = r * r, half = 0.5 * z, w = 1.0 - half;
    const double t = r * z * ({s}) + tail * w, u = ((1.0 - w) - half) + (z * z * ({c}) - r * tail);
    const double sine = r + t, cosine = w + u;
    const double {_chosen("above", "sine", "cosine")}, {_chosen("below", "cosine", "sine")};
    const double {_chosen("more_above", "(r - sine) + t", "(w - cosine) + u")};
    const double {_chosen("more_below", "(w - cosine) + u", "(r - sine) + t")};
    const double whole = above / below;""",
        "whole + (more_above - whole * more_below) / below",
    )
