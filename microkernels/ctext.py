"""From the C files in `c/` to text for one ISA and one scalar type.

The files are written once, for a scalar `T`: `T` becomes `float` or `double`, a name that ends in `_T` ends in
`_f32_avx512` and so on, and an intrinsic that ends in `_px` in `_ps`, `_pd`, `_f32` or `_f64`. What comes out is
plain C without macros.

    INLINE vec_T load_T(const T *p) { return _mm512_loadu_px(p); }
    static inline … vec_f32_avx512 load_f32_avx512(const float *p) { return _mm512_loadu_ps(p); }
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

from microkernels.dtypes import DType
from microkernels.isa import ISA

INLINE = "static inline __attribute__((always_inline))"
NOINLINE = "static __attribute__((noinline, unused))"
UNROLL = '_Pragma("GCC unroll 32")'


def suffix(isa: ISA, dtype: DType) -> str:
    """What names of this ISA and type end in: `f32_avx512`."""
    return f"{dtype.name}_{isa.name}"


def specialise(text: str, isa: ISA, dtype: DType) -> str:
    """C text written for `T`, made for one ISA and scalar type."""
    x86 = isa.machine == "x86_64"
    words = {
        "T": dtype.c_name,
        "INLINE": INLINE,
        "NOINLINE": NOINLINE,
        "UNROLL": UNROLL,
        "MASK": "__mmask16" if dtype.size == 4 else "__mmask8",
        "int_of_T": "int32_t" if dtype.size == 4 else "int64_t",
        "EACH_X": ", ".join(["x"] * isa.lanes(dtype)),
    }
    px = {4: "ps", 8: "pd"}[dtype.size] if x86 else dtype.name

    def replace(match: re.Match[str]) -> str:
        word = match.group()
        if word in words:
            return words[word]
        if word.endswith("_T"):
            return word[:-1] + suffix(isa, dtype)
        return word.removesuffix("_px") + "_" + px if word.endswith("_px") else word

    return re.sub(r"[A-Za-z_]\w*", replace, text)


def guarded(name: str, text: str) -> str:
    """The text with an include guard, so that concatenated sources hold it once."""
    guard = f"POLY_{name.upper()}"
    return f"#ifndef {guard}\n#define {guard}\n{text.strip()}\n#endif\n"


@functools.cache
def part(name: str, isa: ISA, dtype: DType) -> str:
    """The file `c/NAME.h` for one ISA and scalar type, with its guard."""
    text = (Path(__file__).parent / "c" / f"{name}.h").read_text()
    return guarded(f"{name}_{suffix(isa, dtype)}", specialise(text, isa, dtype))


def vector_layer(isa: ISA, dtype: DType) -> str:
    """The vector type and its operations."""
    layer = part(f"vec_{isa.name}", isa, dtype)
    return layer if isa.masks else layer + part("vec_tail", isa, dtype)
