"""exp, exp2, expm1, tanh, sinh and cosh as C functions.

`exp(x) = 2^n * e^r` with n the integer nearest to x/ln 2. e^r is 1 + r + r^2 q(r), where the polynomial q interpolates
(e^r - 1 - r)/r^2 at the Chebyshev points of |r| <= ln(2)/2, with an error of at most 1.0e-8 (f32) and 1.7e-17 (f64).
ln 2 is split in two, so that n times its first part is exact. For exp2, n is the integer nearest to x.

`expm1(x) = 2^n p + (2^n - 1)` with p = r + r^2 q(r). `sinh(x)` for |x| < 1 is x + x z p(z), z = x^2, where p
interpolates with errors of 1.7e-10 and 9.2e-18; beyond, it is h + h/(2h + 1) with h = expm1(|x|)/2. `cosh(x)` is
c + 1/(4c) with c = exp(|x|)/2. h and c overflow where the results do.

`tanh(x)` for |x| < 0.8 is Lambert's continued fraction x/(1 + z/(3 + z/(5 + …))), z = x^2, ended at 9 (f32) and 17
(f64), with relative errors of 7.9e-9 and 5.6e-19; beyond, it is 1 - 2/(e^2x + 1). The two forms share one division.
"""

from __future__ import annotations

from collections.abc import Sequence

from codegen.elementary.constants import Constants
from codegen.macros import WRAPS

LN2 = 0.6931471805599453
LOG2_E = 1.4426950408889634
SPLIT = 0.8
"""The argument at which tanh changes from the continued fraction to the exponential function."""
TINY = 1e-20
"""Below, expm1 has the argument's value."""


def power(k: Constants) -> str:
    """One operation adds 1 and scales, where products and sums are fused."""
    return f"""static inline {k.c} power_{k.name}({k.c} r, {k.c} scale) /* e^r times a power of 2, for small r */
{{
{_quotient(k)}
    return (q * r2 + r) * scale + scale;
}}"""


def exp(k: Constants) -> str:
    """The lowest bits of `sum` hold `n + 2*bias`, as its last bit has the value 1. Half of it and the rest are the
    stored exponents of two normal numbers whose product is 2^n."""
    return f"""{WRAPS} static inline {k.c} exp_{k.name}({k.c} x)
{{
{reduced(k, "x", 2)}
{_factors(k)}
{_bounded(k, k.lowest, 0, k.highest, f"power_{k.name}(r, high) * low")}
}}"""


def exp2(k: Constants) -> str:
    """x - n is exact, and from -1/2 to 1/2."""
    shift, added = 1.5 * 2**k.mantissa, 2 * k.bias
    result = f"power_{k.name}((x - n) * {k.number(LN2)}, high) * low"
    return f"""{WRAPS} static inline {k.c} exp2_{k.name}({k.c} x)
{{
    const {k.bits} sum = bits_of_{k.name}(x + {k.number(shift)}) + {added};
    const {k.c} n = of_bits_{k.name}(sum) - {k.number(shift + added)};
{_factors(k)}
{_bounded(k, -(k.bias + k.mantissa + 1), 0, k.bias + 1, result)}
}}"""


def half_expm1(k: Constants) -> str:
    """`over` is 1/low: `(p*high + (high - over))*low` is 2^n p + (2^n - 1), also if 2^n is infinite.

    `lost` is what the sum r has lost: where n is 1, p is almost as large as the result.
    """
    return f"""{WRAPS} static inline {k.c} half_expm1_{k.name}({k.c} x) /* (e^x - 1)/2 */
{{
{reduced(k, "x", 2)}
{_factors(k)}
{_quotient(k)}
    const {k.c} lost = ((x - n * {k.number(k.ln2[0])}) - r) - n * {k.number(k.ln2[1])}, p = (q * r2 + lost) + r;
    const {k.c} over = of_bits_{k.name}(({2 * k.bias} - (sum - halved)) << {k.mantissa});
{_bounded(k, -50, -0.5, k.highest + 1, f"(p * high + (high - over)) * ({k.number(0.5)} * low)")}
}}"""


def expm1(k: Constants) -> str:
    tiny = f"fabs{k.suffix}(x) < {k.number(TINY)}"
    return f"""static inline {k.c} expm1_{k.name}({k.c} x)
{{
    const {k.c} result = {k.number(2)} * half_expm1_{k.name}(x);
    return {tiny} ? x : result;
}}"""


def sinh(k: Constants) -> str:
    return f"""{WRAPS} static inline {k.c} sinh_{k.name}({k.c} x)
{{
    const {k.bits} sign = bits_of_{k.name}(x) & {k.sign};
    const {k.c} size = of_bits_{k.name}(bits_of_{k.name}(x) ^ sign), h = half_expm1_{k.name}(size);
    const {k.c} large = h > {k.number(2.0**k.mantissa)} ? h : h + h / ({k.number(2)} * h + {k.number(1)});
    const {k.c} z = size * size;
    const {k.c} value = size < {k.number(1)} ? size * z * ({k.polynomial(k.sinh)}) + size : large;
    return of_bits_{k.name}(bits_of_{k.name}(value) | sign);
}}"""


def cosh(k: Constants) -> str:
    return f"""static inline {k.c} cosh_{k.name}({k.c} x)
{{
    const {k.c} c = half_expm1_{k.name}(fabs{k.suffix}(x)) + {k.number(0.5)};
    return c + {k.number(0.25)} / c;
}}"""


def tanh(k: Constants) -> str:
    """2^n is a normal number here: `n + bias` is its stored exponent."""
    above, below = (k.polynomial(coefficients) for coefficients in k.tanh)
    return f"""{WRAPS} static inline {k.c} tanh_{k.name}({k.c} x)
{{
    const {k.bits} sign = bits_of_{k.name}(x) & {k.sign};
    const {k.c} size = of_bits_{k.name}(bits_of_{k.name}(x) ^ sign), twice = size + size, z = size * size;
{reduced(k, "twice", 1)}
    const {k.c} e = power_{k.name}(r, of_bits_{k.name}(sum << {k.mantissa})); /* of twice the size */
    const int small = size < {k.number(SPLIT)};
    const {k.c} above = small ? -(size * z) * ({above}) : {k.number(-2)};
    const {k.c} below = small ? {below} : e + {k.number(1)};
    const {k.c} value = (small ? size : {k.number(1)}) + above / below;
    return of_bits_{k.name}(bits_of_{k.name}(size > {k.number(k.flat)} ? {k.number(1)} : value) | sign);
}}"""


def reduced(k: Constants, x: str, biases: int) -> str:
    """Lines that compute n and r; `sum` has n plus `biases` times the bias in its lowest bits.

    Adding 1.5*2^mantissa rounds to an integer. Where floating-point registers have excess precision, the sum's stored
    bits still have no fraction; the integer added to them keeps the compiler from using the register instead.
    """
    shift, added = 1.5 * 2**k.mantissa, biases * k.bias
    return f"""    const {k.bits} sum = bits_of_{k.name}({x} * {k.number(LOG2_E)} + {k.number(shift)}) + {added};
    const {k.c} n = of_bits_{k.name}(sum) - {k.number(shift + added)};
    const {k.c} r = ({x} - n * {k.number(k.ln2[0])}) - n * {k.number(k.ln2[1])};"""


def _factors(k: Constants) -> str:
    """Lines that compute two normal numbers whose product is 2^n, from a sum with two biases."""
    return f"""    const {k.bits} halved = sum >> 1;
    const {k.c} high = of_bits_{k.name}(halved << {k.mantissa});
    const {k.c} low = of_bits_{k.name}((sum - halved) << {k.mantissa});"""


def _bounded(k: Constants, lowest: float, least: float, highest: float, result: str) -> str:
    """Lines that return a result, `least` below `lowest` and infinity above `highest`."""
    return f"""    const {k.c} result = {result}, bounded = x < {k.number(lowest)} ? {k.number(least)} : result;
    return x > {k.number(highest)} ? ({k.c})INFINITY : bounded;"""


def _quotient(k: Constants) -> str:
    """Lines that define q, from independent groups of coefficients, which shortens the chain of dependent sums."""
    groups = {f"q{first}": k.exp[first : first + k.group] for first in range(0, len(k.exp), k.group)}
    *lower, text = groups
    for name in reversed(lower):
        text = f"({text} * r{k.group} + {name})" if name != lower[0] else f"{text} * r{k.group} + {name}"
    squares = "r2 = r * r" + ", r4 = r2 * r2" * (k.group > 2)
    lines = [squares, *(f"{name} = {_group(k, group)}" for name, group in groups.items()), f"q = {text}"]
    return "\n".join(f"    const {k.c} {line};" for line in lines)


def _group(k: Constants, coefficients: Sequence[float]) -> str:
    pairs = [
        f"{k.number(pair[1])} * r + {k.number(pair[0])}" if len(pair) > 1 else k.number(pair[0])
        for pair in (coefficients[first : first + 2] for first in range(0, len(coefficients), 2))
    ]
    return f"({pairs[1]}) * r2 + ({pairs[0]})" if len(pairs) > 1 else pairs[0]


MAKERS = {
    "power": power,
    "exp": exp,
    "exp2": exp2,
    "half_expm1": half_expm1,
    "expm1": expm1,
    "sinh": sinh,
    "cosh": cosh,
    "tanh": tanh,
}
"""The makers of the functions by name, each after those that it calls."""
