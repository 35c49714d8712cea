"""atan as a C function.

atan(t) = t + t z p(z), z = t^2, for |t| <= 1/2, where p interpolates with errors of 8.9e-10 (f32) and 1.5e-17 (f64).
From 1/2 to 2 it is pi/4 + atan((x - 1)/(x + 1)), and beyond pi/2 - atan(1/x), with pi/4 and pi/2 in two parts; the
forms share one division.
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
    const int large = size > {k.number(2)}, small = size < {k.number(0.5)};
    const {k.c} above = large ? -{one} : small ? size : size - {one};
    const {k.c} below = large ? size : small ? {one} : size + {one};
    const {k.c} t = above / below, z = t * t;
    const {k.c} high = large ? {k.number(high)} : small ? {k.number(0)} : {k.number(high / 2)};
    const {k.c} low = large ? {k.number(low)} : small ? {k.number(0)} : {k.number(low / 2)};
    const {k.c} value = high + (t + (t * z * ({k.polynomial(k.atan)}) + low));
    return of_bits_{k.name}(bits_of_{k.name}(value) | sign);
}}"""
