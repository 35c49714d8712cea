"""The constants of the elementary functions: polynomials, ends of ranges, and how numbers are stored.

tests/support/elementary_fit.py derives them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codegen.elementary.polynomials import horner
from codegen.typed_text import literal
from microkernels.dtypes import DType, f32, f64


@dataclass(frozen=True)
class Constants:
    """The constants of the functions in a scalar type.

    `exp` are q's coefficients, the lowest first, evaluated in groups of `group`; `ln2` is split in two. Below `lowest`,
    exp is 0, above `highest` infinity; above `flat`, tanh is 1. `tanh` are the two polynomials of its fraction, `above`
    and `below` in `x - x*z*above/below`. `mantissa` bits follow an exponent that is stored with `bias` added. `log` are
    p's (f32) or q's coefficients, and `root` the bits of sqrt(1/2). `ln_2`, the `inverses` of ln 2 and ln 10,
    and log10 2 are the nearest number and the rest, if that counts. `erf` are p's and `tail` t's coefficients, for
    numbers up to `parting` and beyond; erf is 1 above `whole`, and `centre` is for f64. `sinh` and `atan` are p's
    coefficients, `quarter` is pi/2 in two parts.
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
    ln_2: tuple[float, float]
    inverses: tuple[tuple[float, float], tuple[float, float]]
    log10_2: tuple[float, float]
    erf: tuple[float, ...]
    tail: tuple[float, ...]
    parting: float
    centre: float
    whole: float
    sinh: tuple[float, ...]
    atan: tuple[float, ...]
    quarter: tuple[float, float]

    @property
    def name(self) -> str:
        return self.dtype.name

    @property
    def c(self) -> str:
        return self.dtype.c_name

    @property
    def suffix(self) -> str:
        """The end of the name of a function of C's library."""
        return "f" * (self.dtype == f32)

    @property
    def largest(self) -> float:
        return (2 - 2.0**-self.mantissa) * 2.0**self.bias

    @property
    def tiny(self) -> float:
        """The least normal number."""
        return 2.0 ** (1 - self.bias)

    @property
    def bits(self) -> str:
        """The integer type of the same size."""
        return f"uint{8 * self.dtype.size}_t"

    @property
    def sign(self) -> str:
        """The integer with the bit of the sign."""
        return f"(({self.bits})1 << {8 * self.dtype.size - 1})"

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
        log=(
            -0.499999884203683,
            0.33333336951159065,
            -0.2500158012501572,
            0.2000125505348213,
            -0.16608568316300745,
            0.14195155409558438,
            -0.1326059211222666,
            0.12828393352774617,
            -0.07487415643058891,
        ),
        root=0x3F3504F3,
        ln_2=(0.6931471824645996, 0.0),
        inverses=((1.4426950216293335, 1.925963033500011e-08), (0.4342944920063019, -1.0103049952192578e-08)),
        log10_2=(0.3010300099849701, -1.432098883924482e-08),
        erf=(
            0.12837914420307503,
            -0.3761245597721763,
            0.11281407304266808,
            -0.02675150034963488,
            0.004970797456565185,
            -0.0005876505632131041,
        ),
        tail=(
            1.627987295644925,
            0.9175269979684741,
            0.1513758331150617,
            -0.03272415006934361,
            0.004549347495217746,
            -0.0002985625018711025,
        ),
        parting=0.95,
        centre=0.0,
        whole=4.0,
        sinh=(0.16666666646842135, 0.00833333967591706, 0.00019838101968683888, 2.8062802582276946e-06),
        atan=(
            -0.3333333173306352,
            0.1999973932983558,
            -0.14278568748210602,
            0.11033764115313455,
            -0.08656880430154522,
            0.06250169444749563,
            -0.03587153898204336,
            0.013507771427020534,
            -0.0023869973167241127,
        ),
        quarter=(1.5707963705062866, -4.371138828673793e-08),
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
        ln_2=(0.6931471805599453, 2.3190468138462996e-17),
        inverses=((1.4426950408889634, 2.0355273740931033e-17), (0.4342944819032518, 1.098319650216765e-17)),
        log10_2=(0.3010299956639812, -2.8037281277851704e-18),
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
        parting=1.0,
        centre=2.375,
        whole=6.0,
        sinh=(
            0.16666666666666666,
            0.008333333333333299,
            0.00019841269841324198,
            2.7557319191381816e-06,
            2.5052117695907823e-08,
            1.6057679623801638e-10,
            7.746178593018827e-13,
        ),
        atan=(
            -0.3333333333333333,
            0.19999999999999554,
            -0.14285714285648404,
            0.11111111107234799,
            -0.09090908969557403,
            0.07692305354678655,
            -0.06666636435777692,
            0.05882074956371294,
            -0.05261265735709454,
            0.04752086773576656,
            -0.04308119655330471,
            0.03872640214042632,
            -0.033750132001619734,
            0.027567942297344675,
            -0.020238706986393514,
            0.012756172907694296,
            -0.006575683344151698,
            0.0026229778919060888,
            -0.000751847252697382,
            0.00013687248531481217,
            -1.183250541755569e-05,
        ),
        quarter=(1.5707963267948966, 6.123233995736766e-17),
    ),
)
