"""exp, tanh, sqrt, floor and ceil as C functions that a compiler can vectorise, on any CPU; others from C's library.

Their errors, over all arguments, are below 1.2 units in the last place for exp and tanh, and sqrt is correctly rounded.
NaN stays NaN, exp overflows to infinity and underflows through subnormal numbers to 0, exp(0) is 1, tanh is odd.
Scalar loops call the same functions, so the end of a row has the same results as its vectors.

`exp(x) = 2^n * e^r` with n the integer nearest to x/ln 2. e^r is 1 + r + r^2 q(r), where the polynomial q interpolates
(e^r - 1 - r)/r^2 at the Chebyshev points of |r| <= ln(2)/2, with an error of at most 1.0e-8 (f32) and 1.7e-17 (f64).
ln 2 is split in two, so that n times its first part is exact.

`tanh(x)` for |x| < 0.8 is Lambert's continued fraction x/(1 + z/(3 + z/(5 + …))), z = x^2, ended at 9 (f32) and 17
(f64), with relative errors of 7.9e-9 and 5.6e-19; beyond, it is 1 - 2/(e^2x + 1). The two forms share one division.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from codegen.expr import FUNCTIONS
from codegen.macros import ROOTS, WRAPS
from codegen.scalar import literal
from microkernels.dtypes import DType, f32, f64


@dataclass(frozen=True)
class Constants:
    """The constants of the functions in a scalar type.

    `exp` are q's coefficients, the lowest first, evaluated in groups of `group`; `ln2` is split in two. Below `lowest`,
    exp is 0, above `highest` infinity; above `flat`, tanh is 1. `tanh` are the two polynomials of its fraction, `above`
    and `below` in `x - x*z*above/below`. `mantissa` bits follow an exponent that is stored with `bias` added.
    """

    dtype: DType
    mantissa: int
    bias: int
    lowest: float
    highest: float
    flat: float
    ln2: tuple[float, float]
    exp: tuple[float, ...]
    group: int
    tanh: tuple[tuple[int, ...], tuple[int, ...]]

    @property
    def name(self) -> str:
        return self.dtype.name

    @property
    def c(self) -> str:
        return self.dtype.c_name

    @property
    def bits(self) -> str:
        """The integer type of the same size."""
        return f"uint{8 * self.dtype.size}_t"

    def number(self, value: float) -> str:
        return literal(value, self.dtype).text


CONSTANTS = (
    Constants(
        f32,
        mantissa=23,
        bias=127,
        lowest=-104.0,
        highest=89.0,
        flat=10.0,
        ln2=(0.693115234375, 3.1946184945309415e-05),
        exp=(0.5, 0.1666657702559799, 0.04166655466205065, 0.008363173074513711, 0.0013926176119927734),
        group=2,
        tanh=((315, 14), (945, 420, 15)),
    ),
    Constants(
        f64,
        mantissa=52,
        bias=1023,
        lowest=-746.0,
        highest=710.0,
        flat=20.0,
        ln2=(0.693147180559663, 2.8235290563031577e-13),
        exp=(
            0.5000000000000001,
            0.16666666666666669,
            0.041666666666624164,
            0.008333333333330065,
            0.0013888888917196719,
            0.00019841269863040545,
            2.4801521322368692e-05,
            2.7557268480310024e-06,
            2.7620075879983367e-07,
            2.5100375832561234e-08,
        ),
        group=4,
        tanh=((11486475, 810810, 12870, 44), (34459425, 16216200, 945945, 13860, 45)),
    ),
)

OF_LIBRARY = ("log", "sin", "cos", "pow", "floor", "ceil")
"""The functions taken from the C library; compilers know floor and ceil as instructions."""
LOG2_E = 1.4426950408889634
SPLIT = 0.8
"""The argument at which tanh changes from the continued fraction to the exponential function."""


def functions() -> dict[str, str]:
    """The C functions by name, each after those that it calls."""
    return {f"{name}_{k.name}": make(k) for k in CONSTANTS for name, make in MAKERS.items()}


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


def _power(k: Constants) -> str:
    lines = "\n".join(f"    const {k.c} {line};" for line in _quotient(k))
    powers = "r2 = r * r" + ", r4 = r2 * r2" * (k.group > 2)
    return f"""static inline {k.c} power_{k.name}({k.c} r) /* e^r for small r */
{{
    const {k.c} {powers};
{lines}
    return (q * r2 + r) + {k.number(1)};
}}"""


def _exp(k: Constants) -> str:
    """The lowest bits of `sum` hold `n + 2*bias`, as its last bit has the value 1. Half of it and the rest are the
    stored exponents of two normal numbers whose product is 2^n."""
    return f"""{WRAPS} static inline {k.c} exp_{k.name}({k.c} x)
{{
{_reduced(k, "x", 2)}
    const {k.bits} halved = sum >> 1;
    const {k.c} high = of_bits_{k.name}(halved << {k.mantissa}), low = of_bits_{k.name}((sum - halved) << {k.mantissa});
    const {k.c} result = power_{k.name}(r) * high * low, bounded = x < {k.number(k.lowest)} ? {k.number(0)} : result;
    return x > {k.number(k.highest)} ? ({k.c})INFINITY : bounded;
}}"""


def _tanh(k: Constants) -> str:
    """2^n is a normal number here: `n + bias` is its stored exponent."""
    above, below = (_horner(k, coefficients) for coefficients in k.tanh)
    return f"""{WRAPS} static inline {k.c} tanh_{k.name}({k.c} x)
{{
    const {k.bits} sign = bits_of_{k.name}(x) & (({k.bits})1 << {8 * k.dtype.size - 1});
    const {k.c} size = of_bits_{k.name}(bits_of_{k.name}(x) ^ sign), twice = size + size, z = size * size;
{_reduced(k, "twice", 1)}
    const {k.c} e = power_{k.name}(r) * of_bits_{k.name}(sum << {k.mantissa}); /* of twice the size */
    const int small = size < {k.number(SPLIT)};
    const {k.c} above = small ? -(size * z) * ({above}) : {k.number(-2)};
    const {k.c} below = small ? {below} : e + {k.number(1)};
    const {k.c} value = (small ? size : {k.number(1)}) + above / below;
    return of_bits_{k.name}(bits_of_{k.name}(size > {k.number(k.flat)} ? {k.number(1)} : value) | sign);
}}"""


def _reduced(k: Constants, x: str, biases: int) -> str:
    """Lines that compute n and r; `sum` has n plus `biases` times the bias in its lowest bits.

    Adding 1.5*2^mantissa rounds to an integer. Where floating-point registers have excess precision, the sum's stored
    bits still have no fraction; the integer added to them keeps the compiler from using the register instead.
    """
    shift, added = 1.5 * 2**k.mantissa, biases * k.bias
    return f"""    const {k.bits} sum = bits_of_{k.name}({x} * {k.number(LOG2_E)} + {k.number(shift)}) + {added};
    const {k.c} n = of_bits_{k.name}(sum) - {k.number(shift + added)};
    const {k.c} r = ({x} - n * {k.number(k.ln2[0])}) - n * {k.number(k.ln2[1])};"""


def _sqrt(k: Constants) -> str:
    return f"static inline {k.c} sqrt_{k.name}({k.c} x) {{ return {ROOTS[k.name]}(x); }}"


def _of_library(name: str) -> Callable[[Constants], str]:
    """The maker of a function that the C library has under this name, for f32 with an `f` at its end."""

    def make(k: Constants) -> str:
        own = name + "f" * (k.dtype == f32)
        parameters, arguments = (f"{k.c} x, {k.c} y", "x, y") if FUNCTIONS[name] > 1 else (f"{k.c} x", "x")
        return f"static inline {k.c} {name}_{k.name}({parameters}) {{ return {own}({arguments}); }}"

    return make


def _quotient(k: Constants) -> list[str]:
    """Lines that define q, from independent groups of coefficients, which shortens the chain of dependent sums."""
    groups = {f"q{first}": k.exp[first : first + k.group] for first in range(0, len(k.exp), k.group)}
    *lower, text = groups
    for name in reversed(lower):
        text = f"({text} * r{k.group} + {name})" if name != lower[0] else f"{text} * r{k.group} + {name}"
    return [*(f"{name} = {_group(k, group)}" for name, group in groups.items()), f"q = {text}"]


def _group(k: Constants, coefficients: Sequence[float]) -> str:
    pairs = [
        f"{k.number(pair[1])} * r + {k.number(pair[0])}" if len(pair) > 1 else k.number(pair[0])
        for pair in (coefficients[first : first + 2] for first in range(0, len(coefficients), 2))
    ]
    return f"({pairs[1]}) * r2 + ({pairs[0]})" if len(pairs) > 1 else pairs[0]


def _horner(k: Constants, coefficients: Sequence[float]) -> str:
    """A polynomial in z."""
    *lower, text = map(k.number, coefficients)
    for coefficient in reversed(lower):
        text = f"({text}) * z + {coefficient}" if "z" in text else f"{text} * z + {coefficient}"
    return text


MAKERS = {
    "bits_of": _bits_of,
    "of_bits": _of_bits,
    "power": _power,
    "exp": _exp,
    "tanh": _tanh,
    "sqrt": _sqrt,
    **{name: _of_library(name) for name in OF_LIBRARY},
}
