"""exp, log, tanh, erf, pow, sqrt, floor and ceil as C functions that a compiler can vectorise, on any CPU.

sin and cos are those of C's library; `codegen.trigonometry` has those of near numbers. Errors, over all arguments, are
below 1.2 units in the last place for exp, log, tanh and erf; sqrt is correctly rounded.
NaN stays NaN, exp overflows to infinity and underflows through subnormal numbers to 0, exp(0) is 1, tanh is odd.
Scalar loops call the same functions, so the end of a row has the same results as its vectors.

`exp(x) = 2^n * e^r` with n the integer nearest to x/ln 2. e^r is 1 + r + r^2 q(r), where the polynomial q interpolates
(e^r - 1 - r)/r^2 at the Chebyshev points of |r| <= ln(2)/2, with an error of at most 1.0e-8 (f32) and 1.7e-17 (f64).
ln 2 is split in two, so that n times its first part is exact.

`tanh(x)` for |x| < 0.8 is Lambert's continued fraction x/(1 + z/(3 + z/(5 + …))), z = x^2, ended at 9 (f32) and 17
(f64), with relative errors of 7.9e-9 and 5.6e-19; beyond, it is 1 - 2/(e^2x + 1). The two forms share one division.

`log(x) = n ln 2 + log(1 + f)` with 1 + f from sqrt(1/2) to sqrt(2), and log(1 + f) = 2s + s*z*q(z), s = f/(2 + f),
z = s^2, added as Sun's fdlibm adds it: f is exact, and what is added to it is small. q interpolates, with errors of
2.8e-9 and 4.7e-18. log(0) is -infinity, and of negative numbers NaN. `codegen.powers` has pow.

`erf(x)` up to 1 is x + x*p(x^2), with errors of 1.4e-9 and 2.0e-17; beyond, it is 1 - e^-(x^2) t(v), where t is a
polynomial in v = (x - centre)/(x + 2), with absolute errors of 2.5e-9 and 7.2e-18, until it rounds to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from codegen import powers, trigonometry
from codegen.macros import ROOTS, WRAPS
from codegen.polynomials import horner
from codegen.scalar import literal
from microkernels.dtypes import DType, f32, f64
from microkernels.isa import ISA, PORTABLE


@dataclass(frozen=True)
class Constants:
    """The constants of the functions in a scalar type.

    `exp` are q's coefficients, the lowest first, evaluated in groups of `group`; `ln2` is split in two. Below `lowest`,
    exp is 0, above `highest` infinity; above `flat`, tanh is 1. `tanh` are the two polynomials of its fraction, `above`
    and `below` in `x - x*z*above/below`. `mantissa` bits follow an exponent that is stored with `bias` added. `log` are
    q's coefficients, `erf` p's and `tail` t's; erf is 1 above `whole`, and `centre` is for f64. `root` are the bits of
    sqrt(1/2).
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
    log: tuple[float, ...]
    root: int
    erf: tuple[float, ...]
    tail: tuple[float, ...]
    centre: float
    whole: float

    @property
    def name(self) -> str:
        return self.dtype.name

    @property
    def c(self) -> str:
        return self.dtype.c_name

    @property
    def largest(self) -> float:
        return (2 - 2.0**-self.mantissa) * 2.0**self.bias

    @property
    def bits(self) -> str:
        """The integer type of the same size."""
        return f"uint{8 * self.dtype.size}_t"

    def number(self, value: float) -> str:
        return literal(value, self.dtype).text

    def polynomial(self, coefficients: Sequence[float], z: str = "z") -> str:
        """A polynomial in z."""
        return horner(list(map(self.number, coefficients)), z)


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
        log=(0.6666668503957586, 0.3998878056602198, 0.2957994939197279),
        root=0x3F3504F3,
        erf=(
            0.12837916584835093,
            -0.37612626666720334,
            0.11283594715160218,
            -0.026854212010626412,
            0.005189087423433974,
            -0.000801686428716587,
            7.875875062685488e-05,
        ),
        tail=(
            1.1289572433855557,
            0.6339714475892645,
            0.10809191262559006,
            -0.02530860119477926,
            0.004373922624821658,
            -0.0005157455638198312,
            3.65930118204377e-05,
            -1.1660325004599574e-06,
        ),
        centre=0.0,
        whole=4.0,
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
        log=(
            0.666666666666667,
            0.39999999999899505,
            0.28571428625975487,
            0.2222221113479508,
            0.18182889125261723,
            0.15331721600556042,
            0.14616449685043406,
        ),
        root=0x3FE6A09E667F3BCD,
        erf=(
            0.1283791670955126,
            -0.3761263890318375,
            0.11283791670954879,
            -0.026866170645076792,
            0.0052239776248180145,
            -0.000854832698083379,
            0.0001205533111164271,
            -1.4925595266831182e-05,
            1.6461000484121368e-06,
            -1.6350312701054695e-07,
            1.4659775274047436e-08,
            -1.1372848856791674e-09,
            5.957176147748911e-11,
        ),
        tail=(
            0.22050569220490668,
            -0.3542749399096508,
            0.18520377745117433,
            -0.058999321275242905,
            0.0046237410127983524,
            0.004097066828908494,
            -0.0008282026394659463,
            -0.00048301467542364993,
            8.981005239881979e-05,
            8.257182726333209e-05,
            -1.951673951606389e-06,
            -1.500934232896183e-05,
            -3.278034613417748e-06,
            2.0903751327533125e-06,
            1.325325007561017e-06,
            -7.414673933556027e-08,
            -2.7064822829045976e-07,
        ),
        centre=2.375,
        whole=6.0,
    ),
)

OF_LIBRARY = ("sin", "cos", "floor", "ceil")
"""The functions taken from the C library in all types; compilers know floor and ceil as instructions."""
LOG2_E = 1.4426950408889634
SPLIT = 0.8
"""The argument at which tanh changes from the continued fraction to the exponential function."""


def functions(isa: ISA = PORTABLE) -> dict[str, str]:
    """The C functions by name, each after those that it calls; on an instruction set, those that are fast there."""
    made = {f"{name}_{k.name}": make(k) for k in CONSTANTS for name, make in MAKERS.items()}
    return {**made, **powers.functions(isa), **trigonometry.functions()}


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
    above, below = (k.polynomial(coefficients) for coefficients in k.tanh)
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


def _log(k: Constants) -> str:
    """Adding `one - root` to the bits carries into the exponent from sqrt(2) up. `biased` has n as its last bits."""
    one, scale = k.bias << k.mantissa, k.mantissa + 1
    shift = 2.0**k.mantissa
    return f"""{WRAPS} static inline {k.c} log_{k.name}({k.c} x)
{{
    const int tiny = x < {k.number(2.0 ** (1 - k.bias))};
    const {k.bits} bits = bits_of_{k.name}(tiny ? x * {k.number(2.0**scale)} : x) + {hex(one - k.root)}u;
    const {k.c} biased = of_bits_{k.name}((bits >> {k.mantissa}) + {hex(k.bias + k.mantissa << k.mantissa)}u);
    const {k.c} n = biased - (tiny ? {k.number(shift + k.bias + scale)} : {k.number(shift + k.bias)});
    const {k.c} f = of_bits_{k.name}((bits & {hex((1 << k.mantissa) - 1)}u) + {hex(k.root)}u) - {k.number(1)};
    const {k.c} s = f / (f + {k.number(2)}), z = s * s, half = {k.number(0.5)} * f * f;
    const {k.c} small = s * (half + z * ({k.polynomial(k.log)})) + n * {k.number(k.ln2[1])};
    const {k.c} value = n * {k.number(k.ln2[0])} - ((half - small) - f), below = x == 0 ? -({k.c})INFINITY : ({k.c})NAN;
    return x > {k.number(k.largest)} ? x : x > 0 ? value : below;
}}"""


def _erf(k: Constants) -> str:
    lines, high = _tail_f32(k) if k.dtype == f32 else _tail_f64(k)
    whole = f"size > {k.number(k.whole)} ? {k.number(1)} : " * (k.dtype != f32)
    return f"""{WRAPS} static inline {k.c} erf_{k.name}({k.c} x)
{{
    const {k.bits} sign = bits_of_{k.name}(x) & (({k.bits})1 << {8 * k.dtype.size - 1});
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
{_reduced(k, "g", 1)}"""
    return lines, f"{k.number(1)} - power_{k.name}(r) * of_bits_{k.name}(sum << {k.mantissa})"


def _tail_f64(k: Constants) -> tuple[str, str]:
    lines = f"""    const {k.c} v = (size - {k.number(k.centre)}) / (size + {k.number(2)});
    const {k.c} tail = {k.polynomial(k.tail, "v")};"""
    return lines, f"{k.number(1)} - exp_{k.name}(-z) * tail"


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
        return f"static inline {k.c} {name}_{k.name}({k.c} x) {{ return {own}(x); }}"

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


MAKERS = {
    "bits_of": _bits_of,
    "of_bits": _of_bits,
    "power": _power,
    "exp": _exp,
    "tanh": _tanh,
    "log": _log,
    "erf": _erf,
    "sqrt": _sqrt,
    **{name: _of_library(name) for name in OF_LIBRARY},
}
