"""atan and atan2 as C functions.

atan(t) = t + t z p(z), z = t^2, for t up to 1, where p interpolates with errors of 1.1e-8 (f32) and 3.6e-17 (f64).
Beyond, it is pi/2 - atan(1/x), with pi/2 in two parts; both share one division. A form between them would have fewer
terms, but more choices, which take more time.

atan2(y, x) is that of the smaller of |y| and |x| over the larger, then turned and mirrored into its quadrant: it is a
multiple of pi/2 plus or minus atan(t). Equal sizes, also two zeros or infinities, have no quotient to compute.
"""

from __future__ import annotations

from codegen.elementary.constants import Constants
from codegen.macros import WRAPS


def atan(k: Constants) -> str:
    one, (high, low) = k.number(1), k.quarter
    return f"""{WRAPS} static inline {k.c} atan_{k.name}({k.c} x)
{{
    const {k.bits} sign = bits_of_{k.name}(x) & {k.sign};
    const {k.c} size = of_bits_{k.name}(bits_of_{k.name}(x) ^ sign);
    const int large = size > {one};
    const {k.c} above = large ? -{one} : size, below = large ? size : {one}, t = above / below, z = t * t;
    const {k.c} high = large ? {k.number(high)} : {k.number(0)}, low = large ? {k.number(low)} : {k.number(0)};
    const {k.c} value = high + (t + (t * z * ({k.polynomial(k.atan)}) + low));
    return of_bits_{k.name}(bits_of_{k.name}(value) | sign);
}}"""


def atan2(k: Constants) -> str:
    one, zero, (high, low) = k.number(1), k.number(0), k.quarter
    half = f"{k.number(2 * high)} : {zero}", f"{k.number(2 * low)} : {zero}"
    return f"""{WRAPS} static inline {k.c} atan2_{k.name}({k.c} y, {k.c} x)
{{
    const {k.bits} up = bits_of_{k.name}(y) & {k.sign}, back = bits_of_{k.name}(x) & {k.sign};
    const {k.c} rise = of_bits_{k.name}(bits_of_{k.name}(y) ^ up), run = of_bits_{k.name}(bits_of_{k.name}(x) ^ back);
    const int steep = rise > run;
    const {k.c} quotient = (steep ? run : rise) / (steep ? rise : run);
    const {k.c} size = rise == run ? (rise > {zero} ? {one} : {zero}) : quotient;
    const {k.c} t = of_bits_{k.name}(bits_of_{k.name}(size) ^ back ^ (steep ? {k.sign} : 0u)), z = t * t;
    const {k.c} high = steep ? {k.number(high)} : back ? {half[0]}, low = steep ? {k.number(low)} : back ? {half[1]};
    const {k.c} value = high + (t + (t * z * ({k.polynomial(k.atan)}) + low));
    return of_bits_{k.name}((bits_of_{k.name}(value) & ~{k.sign}) | up);
}}"""
