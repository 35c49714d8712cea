"""Elementary functions as C functions that a compiler can vectorise, on any CPU.

Of the modules beside this one, `exponentials` has exp, exp2, expm1, tanh, sinh and cosh, `logarithms` log, log2, log10
and log1p, `powers` pow, `arctangent` atan and atan2. sin, cos and tan are those of C's library; `trigonometry` has
those of near numbers. Errors, over all arguments, are below 1.2 units in the last place for
exp, log and tanh, and below 2 for all functions; sqrt is correctly rounded. NaN stays NaN, functions overflow to
infinity and underflow through subnormal numbers to 0, odd functions are odd. Scalar loops call the same functions, so
the end of a row has the same results as its vectors; where there are functions of whole vectors
(`vector_functions`), so does the last vector, in part.

`erf(x)` up to 1 is x + x*p(x^2), in f32 up to 0.95, with errors of 2.4e-8 and 2.0e-17. Beyond, it is 1 - e^-(x^2) t(v)
in f64, where t is a polynomial in v = (x - centre)/(x + 2), with an absolute error of 7.2e-18, until it rounds to 1. In
f32 it is 1 - 2^-(x t(x)) with a polynomial t, with an absolute error of 1.4e-8. As that power is small, fewer terms
than those of exp are enough for it.
"""

from __future__ import annotations

from collections.abc import Callable

from codegen.elementary import arctangent, exponentials, logarithms, powers, trigonometry
from codegen.elementary.constants import CONSTANTS, Constants
from codegen.macros import ROOTS, WRAPS
from microkernels.dtypes import f32
from microkernels.isa import ISA, PORTABLE

OF_LIBRARY = ("sin", "cos", "tan", "floor", "ceil")
"""The functions taken from the C library in all types; compilers know floor and ceil as instructions."""


POWER_OF_2 = (
    0.6931471805599453,
    0.2402234903802036,
    0.05550381013796469,
    0.009666368515385448,
    0.001338130253731703,
)
"""The coefficients of p in 2^f = 1 + f*p(f), for |f| up to 1/2, with an error of 2.0e-07, the lowest first."""

NAMES = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sinh", "cosh", "tanh", "erf", "atan", *OF_LIBRARY,
)  # fmt: skip
"""The functions of one argument."""
OF_TWO = ("pow", "atan2")
"""Those of two."""


def functions(isa: ISA = PORTABLE) -> dict[str, str]:
    """The C functions by name, each after those that it calls; on an instruction set, those that are fast there."""
    made = {f"{name}_{k.name}": make(k) for k in CONSTANTS for name, make in MAKERS.items()}
    return {**made, **powers.functions(isa), **trigonometry.functions(isa)}


def _bits_of(k: Constants) -> str:
    return f"""static inline {k.bits} bits_of_{k.name}({k.c} x)
{{
    {k.bits} bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}}"""


def _of_bits(k: Constants) -> str:
    return f"""static inline {k.c} of_bits_{k.name}({k.bits} bits)
{{
    {k.c} x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}}"""


def _erf(k: Constants) -> str:
    lines, high = _tail_f32(k) if k.dtype == f32 else _tail_f64(k)
    whole = "value" if k.dtype == f32 else f"size > {k.number(k.whole)} ? {k.number(1)} : value"
    return f"""{WRAPS} static inline {k.c} erf_{k.name}({k.c} x)
{{
    const {k.bits} sign = bits_of_{k.name}(x) & {k.sign};
    const {k.c} size = of_bits_{k.name}(bits_of_{k.name}(x) ^ sign), z = size * size;
{lines}
    const {k.c} low = size * ({k.polynomial(k.erf)}) + size;
    const {k.c} high = {high}, value = size < {k.number(k.parting)} ? low : high;
    return of_bits_{k.name}(bits_of_{k.name}({whole}) | sign);
}}"""


def _tail_f32(k: Constants) -> tuple[str, str]:
    """Lines for erf of larger numbers, and its text. At `whole` it has rounded to 1, and the power is a normal number.

    The lowest bits of `sum` hold the stored exponent of 2^n, with n the integer nearest to `power`.
    """
    shift = 1.5 * 2**k.mantissa
    lines = f"""    const {k.c} t = size > {k.number(k.whole)} ? {k.number(k.whole)} : size;
    const {k.c} power = t * ({k.polynomial([-coefficient for coefficient in k.tail], "t")});
    const {k.bits} sum = bits_of_{k.name}(power + {k.number(shift)}) + {k.bias};
    const {k.c} f = power - (of_bits_{k.name}(sum) - {k.number(shift + k.bias)});
    const {k.c} scale = of_bits_{k.name}(sum << {k.mantissa});"""
    return lines, f"{k.number(1)} - (f * ({k.polynomial(POWER_OF_2, 'f')}) * scale + scale)"


def _tail_f64(k: Constants) -> tuple[str, str]:
    lines = f"""    const {k.c} v = (size - {k.number(k.centre)}) / (size + {k.number(2)});
    const {k.c} tail = {k.polynomial(k.tail, "v")}, power = -z;
{exponentials.reduced(k, "power", 1)}
    const {k.c} scale = of_bits_{k.name}(sum << {k.mantissa});"""
    return lines, f"{k.number(1)} - power_{k.name}(r, scale) * tail"


def _sqrt(k: Constants) -> str:
    return f"static inline {k.c} sqrt_{k.name}({k.c} x) {{ return {ROOTS[k.name]}(x); }}"


def _of_library(name: str) -> Callable[[Constants], str]:
    """The maker of a function that the C library has under this name, for f32 with an `f` at its end."""

    def make(k: Constants) -> str:
        own = name + k.suffix
        return f"static inline {k.c} {name}_{k.name}({k.c} x) {{ return {own}(x); }}"

    return make


MAKERS = {
    "bits_of": _bits_of,
    "of_bits": _of_bits,
    **exponentials.MAKERS,
    **logarithms.MAKERS,
    "atan": arctangent.atan,
    "atan2": arctangent.atan2,
    "erf": _erf,
    "sqrt": _sqrt,
    **{name: _of_library(name) for name in OF_LIBRARY},
}
