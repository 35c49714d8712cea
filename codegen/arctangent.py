"""atan as a C function.

atan(t) = t + t z p(z), z = t^2, for t up to 1, where p interpolates with errors of 1.1e-8 (f32) and 3.6e-17 (f64).
Beyond, it is pi/2 - atan(1/x), with pi/2 in two parts; both share one division. A form between them would have fewer
terms, but more choices, which take more time.
"""

from __future__ import annotations

from codegen.constants import Constants
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
