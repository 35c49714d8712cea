"""pow as C functions that a compiler can vectorise, with errors below 0.51 (f32) and 1.3 (f64) units in the last place.

`pow(x, y)` is e^(y log |x|), in f32 computed in f64. In f64 the logarithm is the sum of two numbers, with a relative
error of 2^-62: y log |x| is at most 745, so that this is 2^-53 of the result. A product of two numbers is exact if both
have 26 bits: `head` keeps so many of a number, what is left has the others, and no instruction that fuses a product
with a sum changes the result (as it would with Dekker's splitting).

`log(x) = n ln 2 + 2s + s*(2/3 z + z^2 q(z))` with s = (m - 1)/(m + 1), z = s^2, and m from sqrt(1/2) to sqrt(2): s, the
part in 2/3, and the sum of all parts are pairs of numbers; q interpolates, with an error of 1.1e-20 of the logarithm.

Each part of a number needs instructions of its own: with vectors of two numbers, the C library's pow takes less time.
"""

from __future__ import annotations

from codegen.elementary.polynomials import horner
from codegen.macros import IN_LANES
from microkernels.dtypes import f64
from microkernels.isa import ISA

LEAST_LANES = 4
"""The lanes, in f64, from which pow is faster in vectors than the C library's."""
THIRDS = (0.6666666567325592, 9.934107462565104e-09)
"""2/3 in two parts, of which the first has 26 bits."""
QUOTIENT = (
    0.4,
    0.28571428571429364,
    0.22222222221656232,
    0.18181818335314404,
    0.15384594970895457,
    0.13334804238225345,
    0.11706248540922386,
    0.11723051028097753,
)
"""q's coefficients, the lowest first."""
LOGARITHM = (
    0.6666666666737509,
    0.3999999879733759,
    0.2857175453591449,
    0.22191400830308503,
    0.19362653714202008,
)
EXPONENTIAL = (
    0.5,
    0.16666666718997508,
    0.04166666671898108,
    0.008333298483754886,
    0.0013888854049575593,
    0.0001989927395864936,
    2.4859578241286264e-05,
)
"""Those of the polynomials of `codegen.elementary.functions` for pow in f32, with errors of 1.1e-13 and 4.3e-12."""


def functions(isa: ISA) -> dict[str, str]:
    """The C functions by name, each after those that it calls."""
    return {"pow_f32": POW_F32, "head_f64": HEAD, "pow_f64": POW_F64} if isa.lanes(f64) >= LEAST_LANES else OF_LIBRARY


POW_F32 = f"""{IN_LANES} float pow_f32(float x, float y)
{{
    const uint32_t sign = bits_of_f32(x) & 0x80000000u;
    const float size = of_bits_f32(bits_of_f32(x) ^ sign), times = of_bits_f32(bits_of_f32(y) & 0x7fffffffu);
    const double base = size, exponent = y;
    const uint64_t bits = bits_of_f64(base) + 0x95f619980c433u;
    const double k = of_bits_f64((bits >> 52) + 0x4330000000000000u) - 4503599627371519.0;
    const double f = of_bits_f64((bits & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
    const double s = f / (f + 2.0), z = s * s;
    const double log = k * 0.6931471805599453 + (2.0 * s + s * z * ({horner(list(map(repr, LOGARITHM)))}));
    const double known = size == 0.0f ? -(double)INFINITY : size <= 3.4028235e38f ? log : base;
    const double whole = exponent * known, most = whole > 90.0 ? 90.0 : whole, power = most < -110.0 ? -110.0 : most;
    const uint64_t sum = bits_of_f64(power * 1.4426950408889634 + 6755399441055744.0) + 1023;
    const double r = power - (of_bits_f64(sum) - 6755399441056767.0) * 0.6931471805599453;
    const double e = r * r * ({horner(list(map(repr, EXPONENTIAL)), "r")}) + r + 1.0;
    const double value = e * of_bits_f64(sum << 52);
    const double near = of_bits_f64(bits_of_f64(exponent * 0.5 + 6755399441055744.0)) - 6755399441055744.0;
    const double over = exponent - 2.0 * near; /* what y has beyond an even integer, if it is small */
    const int even = (times >= 16777216.0f) | (over == 0.0), odd = (!even) & ((over == 1.0) | (over == -1.0));
    const int one = (y == 0.0f) | (x == 1.0f) | ((x == -1.0f) & (times > 3.4028235e38f));
    const int none = (x < 0.0f) & (size <= 3.4028235e38f) & (!even) & (!odd);
    const float rounded = value > 3.5e38 ? (float)INFINITY : (float)value;
    const float result = of_bits_f32(bits_of_f32(rounded) | (odd ? sign : 0u));
    return one ? 1.0f : none ? (float)NAN : result;
}}"""
"""x^y is a number or infinity for y an integer or x not below 0; -1 to any infinite power is 1, and so is NaN^0.

A float is never subnormal in f64. Beyond the range of a power in f32, that in f64 is a number that rounds to 0 or is
above all floats."""

OF_LIBRARY = {
    "pow_f32": "static inline float pow_f32(float x, float y) { return powf(x, y); }",
    "pow_f64": "static inline double pow_f64(double x, double y) { return pow(x, y); }",
}

HEAD = """static inline double head_f64(double x) { return of_bits_f64(bits_of_f64(x) & 0xfffffffff8000000u); }"""


POW_F64 = f"""{IN_LANES} double pow_f64(double x, double y)
{{
    const uint64_t sign = bits_of_f64(x) & 0x8000000000000000u;
    const double size = of_bits_f64(bits_of_f64(x) ^ sign), times = of_bits_f64(bits_of_f64(y) & 0x7fffffffffffffffu);
    const int tiny = size < 2.2250738585072014e-308;
    const uint64_t bits = bits_of_f64(tiny ? size * 18014398509481984.0 : size) + 0x95f619980c433u;
    const double biased = of_bits_f64((bits >> 52) + 0x4330000000000000u);
    const double k = biased - (tiny ? 4503599627371573.0 : 4503599627371519.0);
    const double m = of_bits_f64((bits & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu);
    const double f = m - 1.0, u = head_f64(m + 1.0), v = m - (u - 1.0), over = 1.0 / (m + 1.0);
    const double s = f * over, s0 = head_f64(s), s1 = ((f - s0 * u) - s0 * v) * over;
    const double z = s0 * s0 + s1 * (s + s0), z0 = head_f64(z), z1 = (s0 * s0 - z0) + s1 * (s + s0);
    const double q = {horner(list(map(repr, QUOTIENT)))};
    const double rest = (z0 * {THIRDS[1]!r} + z1 * 0.6666666666666666) + q * (z * z);
    const double w = z0 * {THIRDS[0]!r} + rest, w0 = head_f64(w), w1 = (z0 * {THIRDS[0]!r} - w0) + rest;
    const double a = k * 0.693147180559663 + 2.0 * s0, b = a + s0 * w0;
    const double lost = ((k * 0.693147180559663 - a) + 2.0 * s0) + ((a - b) + s0 * w0);
    const double c = lost + (2.0 * s1 + (s0 * w1 + s1 * w) + k * 2.8235290563031577e-13);
    const double log = b + c, l0 = head_f64(log), l1 = (b - l0) + c, y0 = head_f64(y);
    const double power = y0 * l0, low = y0 * l1 + (y - y0) * log, whole = y * log;
    const uint64_t sum = bits_of_f64(power * 1.4426950408889634 + 6755399441055744.0) + 2046, halved = sum >> 1;
    const double n = of_bits_f64(sum) - 6755399441057790.0;
    const double r = (power - n * 0.693147180559663) + (low - n * 2.8235290563031577e-13);
    const double value = power_f64(r, of_bits_f64(halved << 52)) * of_bits_f64((sum - halved) << 52);
    const double near = of_bits_f64(bits_of_f64(times * 0.5 + 4503599627370496.0)) - 4503599627370496.0;
    const double over_even = times - 2.0 * near; /* what |y| has beyond an even integer, if it is small */
    const int even = (times >= 9007199254740992.0) | (over_even == 0.0);
    const int odd = (!even) & ((over_even == 1.0) | (over_even == -1.0));
    const int one = (y == 0.0) | (x == 1.0) | ((x == -1.0) & (times > 1.7976931348623157e308));
    const int none = ((x < 0.0) & (size <= 1.7976931348623157e308) & (!even) & (!odd)) | (x != x) | (y != y);
    const int beyond = !(fabs(whole) < 746.0) | (size == 0.0) | (size > 1.7976931348623157e308);
    const double limit = (size < 1.0) == (y < 0.0) ? (double)INFINITY : 0.0;
    const double result = of_bits_f64(bits_of_f64(beyond ? limit : value) | (odd ? sign : 0u));
    return one ? 1.0 : none ? (double)NAN : result;
}}"""
"""Beyond a number's range, and of 0 and infinities, x^y is infinity or 0; the rest is as in f32."""
