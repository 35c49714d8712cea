"""log, log2, log10 and log1p as C functions.

`log(x) = n ln 2 + log(1 + f)` with 1 + f from sqrt(1/2) to sqrt(2); f is exact. In f32, log(1 + f) = f + f^2 p(f), and
p interpolates, with an error of 4.7e-9: a polynomial takes less time than a quotient. In f64, where it would need 20
terms, log(1 + f) = f - f^2/2 + s (f^2/2 + z q(z)), s = f/(2 + f), z = s^2, as in Sun's fdlibm, with an error of
4.7e-18. log(0) is -infinity, and of negative numbers NaN.

`log2` and `log10` multiply log(1 + f) with 1/ln 2 and 1/ln 10. The second parts of these, and of ln 2 and log10 2, are
added to what is small. `log1p(x)` is the logarithm of u = 1 + x, rounded, with f = x/2^n + (1/2^n - 1), which has what
u has lost.
"""

from __future__ import annotations

from collections.abc import Callable

from codegen.elementary.constants import Constants
from codegen.macros import WRAPS
from microkernels.dtypes import f32

NAMES = ("log", "log2", "log10")
"""Those with a form for normal numbers alone, which takes half the time: see `codegen.lanes.near`."""
TINY = 1e-20
"""Below, log1p has the argument's value."""


def _normal(name: str) -> Callable[[Constants], str]:
    """The maker of the logarithm of a normal number; `less` is subtracted from its exponent."""

    def make(k: Constants) -> str:
        return f"""{WRAPS} static inline {k.c} normal_{name}_{k.name}({k.c} x, {k.c} less)
{{
{_exponent(k, "x")} - less;
    const {k.c} f = of_bits_{k.name}((bits & {hex((1 << k.mantissa) - 1)}u) + {hex(k.root)}u) - {k.number(1)};
{_value(k, name)}
}}"""

    return make


def _near(name: str) -> Callable[[Constants], str]:
    """The maker of the logarithm of numbers that are near by `abnormal`."""

    def make(k: Constants) -> str:
        call = f"normal_{name}_{k.name}(x, {k.number(0)})"
        return f"static inline {k.c} near_{name}_{k.name}({k.c} x) {{ return {call}; }}"

    return make


def _log(name: str) -> Callable[[Constants], str]:
    """The maker of the logarithm of any number: subnormal ones are multiplied by a power of 2."""

    def make(k: Constants) -> str:
        shift = k.mantissa + 1
        return f"""static inline {k.c} {name}_{k.name}({k.c} x)
{{
    const int tiny = x < {k.number(k.tiny)};
    const {k.c} large = tiny ? x * {k.number(2.0**shift)} : x, less = tiny ? {k.number(shift)} : {k.number(0)};
{_returned(k, f"normal_{name}_{k.name}(large, less)", "0")}
}}"""

    return make


def abnormal(k: Constants) -> str:
    """Whether a number is no positive normal one: whether one of two differences is negative, as its highest bit."""
    least, most = 1 << k.mantissa, (2 * k.bias + 1 << k.mantissa) - 1
    return f"""{WRAPS} static inline {k.bits} abnormal_{k.name}({k.c} x)
{{
    const {k.bits} bits = bits_of_{k.name}(x);
    return (bits - {hex(least)}u) | ({hex(most)}u - bits);
}}"""


def rounded_log1p(k: Constants) -> str:
    """Of numbers that are not tiny: a quarter of x and four times 1/2^n are normal numbers."""
    top, whole = 2 * k.bias + 2 << k.mantissa, (1 << 8 * k.dtype.size) - (1 << k.mantissa)
    return f"""{WRAPS} static inline {k.c} rounded_log1p_{k.name}({k.c} x)
{{
    const {k.c} u = {k.number(1)} + x;
{_exponent(k, "u")};
    const {k.c} over = of_bits_{k.name}({hex(top)}u - (bits & {hex(whole)}u));
    const {k.c} f = {k.number(0.25)} * x * over + ({k.number(0.25)} * over - {k.number(1)});
{_value(k, "log")}
}}"""


def log1p(k: Constants) -> str:
    known = f"fabs{k.suffix}(x) < {k.number(TINY)} ? x : rounded"
    return f"""static inline {k.c} log1p_{k.name}({k.c} x)
{{
    const {k.c} rounded = rounded_log1p_{k.name}(x);
{_returned(k, known, "-1")}
}}"""


def _exponent(k: Constants, x: str) -> str:
    """Lines that compute n; the last bits of `bits` are 1 + f less sqrt(1/2).

    Adding `one - root` carries into the exponent from sqrt(2) up.
    """
    one, shift = k.bias << k.mantissa, 2.0**k.mantissa
    return f"""    const {k.bits} bits = bits_of_{k.name}({x}) + {hex(one - k.root)}u;
    const {k.c} biased = of_bits_{k.name}((bits >> {k.mantissa}) + {hex(k.bias + k.mantissa << k.mantissa)}u);
    const {k.c} n = biased - {k.number(shift + k.bias)}"""


def _value(k: Constants, name: str) -> str:
    """Lines that return the logarithm of 2^n (1 + f): `step` for 2 and `scale` for e. `rest` is log(1 + f) - f."""
    scale = {"log": (1.0, 0.0), "log2": k.inverses[0], "log10": k.inverses[1]}[name]
    step = {"log": k.ln_2, "log2": (1.0, 0.0), "log10": k.log10_2}[name]
    if k.dtype == f32:
        lines = f"    const float rest = f * f * ({k.polynomial(k.log, 'f')});"
    else:
        lines = f"""    const double s = f / (f + 2.0), z = s * s, minus = 0.5 * f * f;
    const double rest = s * (minus + z * ({k.polynomial(k.log)})) - minus;"""
    most = min(scale[0], 1.0)  # f is exact, and f/ln 2 would be rounded to the size of more than the result
    whole, first, small = _times("n", step[0], k), _times("f", most, k), _times("rest", scale[0], k)
    for name, part in (("f", scale[0] - most + scale[1]), ("n", step[1])):
        small += f" + {_times(name, part, k)}" * bool(part)
    return f"{lines}\n    return {whole} + ({first} + ({small}));"


def _times(name: str, factor: float, k: Constants) -> str:
    return name if factor == 1 else f"{name} * {k.number(factor)}"


def _returned(k: Constants, value: str, pole: str) -> str:
    """Lines that return a logarithm's value, which is -infinity at `pole`, and NaN below."""
    return f"""    const {k.c} value = {value}, below = x == {pole} ? -({k.c})INFINITY : ({k.c})NAN;
    const {k.c} known = x > {pole} ? value : below;
    return x > {k.number(k.largest)} ? x : known;"""


MAKERS = {
    "abnormal": abnormal,
    **{
        f"{kind}{name}": make(name)
        for name in NAMES
        for kind, make in (("normal_", _normal), ("near_", _near), ("", _log))
    },
    "rounded_log1p": rounded_log1p,
    "log1p": log1p,
}
"""The makers of the functions by name, each after those that it calls."""
