"""Elementary functions as C functions that a compiler can vectorise, on any CPU.

`codegen.exponentials` has exp, exp2, expm1, tanh, sinh and cosh, `codegen.logarithms` log, log2, log10 and log1p,
`codegen.powers` pow, `codegen.arctangent` atan. sin, cos and tan are those of C's library; `codegen.trigonometry` has
those of near numbers. Errors, over all arguments, are below 1.2 units in the last place for exp, log, tanh and erf, and
below 2 for all functions; sqrt is correctly rounded. NaN stays NaN, functions overflow to infinity and underflow
through subnormal numbers to 0, odd functions are odd. Scalar loops call the same functions, so the end of a row has the
same results as its vectors.

`erf(x)` up to 1 is x + x*p(x^2), with errors of 1.4e-9 and 2.0e-17; beyond, it is 1 - e^-(x^2) t(v), where t is a
polynomial in v = (x - centre)/(x + 2), with absolute errors of 2.5e-9 and 7.2e-18, until it rounds to 1.
"""

from __future__ import annotations

from collections.abc import Callable

from codegen import arctangent, exponentials, logarithms, powers, trigonometry
from codegen.constants import CONSTANTS, Constants
from codegen.macros import ROOTS, WRAPS
from microkernels.dtypes import f32
from microkernels.isa import ISA, PORTABLE

OF_LIBRARY = ("sin", "cos", "tan", "floor", "ceil")
"""The functions taken from the C library in all types; compilers know floor and ceil as instructions."""


NAMES = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sinh", "cosh", "tanh", "erf", "atan", *OF_LIBRARY,
)  # fmt: skip
"""The functions of one argument."""


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
    whole = f"size > {k.number(k.whole)} ? {k.number(1)} : " * (k.dtype != f32)
    return f"""{WRAPS} static inline {k.c} erf_{k.name}({k.c} x)
{{
    const {k.bits} sign = bits_of_{k.name}(x) & {k.sign};
    const {k.c} size = of_bits_{k.name}(bits_of_{k.name}(x) ^ sign), z = size * size;
{lines}
    const {k.c} low = size * ({k.polynomial(k.erf)}) + size;
    const {k.c} value = size < {k.number(1)} ? low : {high};
    return of_bits_{k.name}(bits_of_{k.name}({whole}value) | sign);
}}"""


def _tail_f32(k: Constants) -> tuple[str, str]:
    """Lines for erf beyond 1, and its text. At `whole` it has rounded to 1, and the power is still a normal number."""
    lines = f"""    const {k.c} t = size > {k.number(k.whole)} ? {k.number(k.whole)} : size;
    const {k.c} g = -t * ({k.polynomial(k.tail, "t")});
{exponentials.reduced(k, "g", 1)}"""
    return lines, f"{k.number(1)} - power_{k.name}(r, of_bits_{k.name}(sum << {k.mantissa}))"


def _tail_f64(k: Constants) -> tuple[str, str]:
    lines = f"""    const {k.c} v = (size - {k.number(k.centre)}) / (size + {k.number(2)});
    const {k.c} tail = {k.polynomial(k.tail, "v")};"""
    return lines, f"{k.number(1)} - exp_{k.name}(-z) * tail"


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
    "erf": _erf,
    "sqrt": _sqrt,
    **{name: _of_library(name) for name in OF_LIBRARY},
}
