"""log, log2, log10 and log1p as C functions.

`log(x) = n ln 2 + log(1 + f)` with 1 + f from sqrt(1/2) to sqrt(2), and log(1 + f) = 2s + s*z*q(z), s = f/(2 + f),
z = s^2, added as Sun's fdlibm adds it: f is exact, and what is added to it is small. q interpolates, with errors of
2.8e-9 and 4.7e-18. log(0) is -infinity, and of negative numbers NaN.

`log2` and `log10` multiply log(1 + f), as a sum of two numbers of which the first has few bits, with 1/ln 2 and 1/ln 10
in two parts, so that the largest product is exact. `log1p(x)` is the logarithm of u = 1 + x, rounded, plus c/u, where
c is what was lost by rounding.
"""

from __future__ import annotations

from codegen.constants import Constants
from codegen.macros import WRAPS

TINY = 1e-20
"""Below, log1p has the argument's value."""


def log(k: Constants) -> str:
    value = f"n * {k.number(k.ln2[0])} - ((minus - (rest + n * {k.number(k.ln2[1])})) - f)"
    return f"""{WRAPS} static inline {k.c} log_{k.name}({k.c} x)
{{
{_parts(k, "x", subnormal=True)}
{_returned(k, "x", value, "0")}
}}"""


def log1p(k: Constants) -> str:
    """Two sums find what is lost, whichever of 1 and x is larger."""
    value = f"n * {k.number(k.ln2[0])} - ((minus - (rest + (n * {k.number(k.ln2[1])} + lost / u))) - f)"
    return f"""{WRAPS} static inline {k.c} log1p_{k.name}({k.c} x)
{{
    const {k.c} u = {k.number(1)} + x, own = u - {k.number(1)}, lost = ({k.number(1)} - (u - own)) + (x - own);
{_parts(k, "u", subnormal=False)}
    const {k.c} known = fabs{k.suffix}(x) < {k.number(TINY)} ? x : {value};
{_returned(k, "x", "known", "-1")}
}}"""


def log2(k: Constants) -> str:
    return _scaled(k, "log2", k.inverses[0], (1.0, 0.0))


def log10(k: Constants) -> str:
    return _scaled(k, "log10", k.inverses[1], k.log10_2)


def _scaled(k: Constants, name: str, inverse: tuple[float, float], step: tuple[float, float]) -> str:
    """A logarithm that is `step` for 2 and `inverse` for e, each in two parts."""
    mask = (1 << 8 * k.dtype.size) - (1 << k.mantissa + 1 - k.head)
    low = f" + n * {k.number(step[1])}" * bool(step[1])
    rest = f"b * {k.number(inverse[0])} + (a + b) * {k.number(inverse[1])}{low}"
    return f"""{WRAPS} static inline {k.c} {name}_{k.name}({k.c} x)
{{
{_parts(k, "x", subnormal=True)}
    const {k.c} a = of_bits_{k.name}(bits_of_{k.name}(f - minus) & {hex(mask)}u), b = ((f - a) - minus) + rest;
    const {k.c} whole = n * {k.number(step[0])}, part = a * {k.number(inverse[0])}, sum = whole + part;
    const {k.c} known = (((whole - sum) + part) + ({rest})) + sum;
{_returned(k, "x", "known", "0")}
}}"""


def _parts(k: Constants, x: str, subnormal: bool) -> str:
    """Lines that compute n, f, `minus` = f^2/2, and `rest`, so that log(1 + f) = f - minus + rest.

    Adding `one - root` to the bits carries into the exponent from sqrt(2) up. `biased` has n as its last bits.
    """
    one, scale, shift = k.bias << k.mantissa, k.mantissa + 1, 2.0**k.mantissa
    normal, bias = x, k.number(shift + k.bias)
    lines = ""
    if subnormal:
        lines = f"    const int tiny = {x} < {k.number(2.0 ** (1 - k.bias))};\n"
        normal = f"tiny ? {x} * {k.number(2.0**scale)} : {x}"
        bias = f"(tiny ? {k.number(shift + k.bias + scale)} : {bias})"
    return f"""{lines}    const {k.bits} bits = bits_of_{k.name}({normal}) + {hex(one - k.root)}u;
    const {k.c} biased = of_bits_{k.name}((bits >> {k.mantissa}) + {hex(k.bias + k.mantissa << k.mantissa)}u);
    const {k.c} n = biased - {bias};
    const {k.c} f = of_bits_{k.name}((bits & {hex((1 << k.mantissa) - 1)}u) + {hex(k.root)}u) - {k.number(1)};
    const {k.c} s = f / (f + {k.number(2)}), z = s * s, minus = {k.number(0.5)} * f * f;
    const {k.c} rest = s * (minus + z * ({k.polynomial(k.log)}));"""


def _returned(k: Constants, x: str, value: str, pole: str) -> str:
    """Lines that return a logarithm's value, which is -infinity at `pole`, and NaN below."""
    below = f"{x} == {pole} ? -({k.c})INFINITY : ({k.c})NAN"
    return f"""    const {k.c} value = {value}, below = {below};
    return {x} > {k.number(k.largest)} ? {x} : {x} > {pole} ? value : below;"""


MAKERS = {"log": log, "log2": log2, "log10": log10, "log1p": log1p}
"""The makers of the functions by name."""
