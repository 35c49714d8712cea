"""Specialisation of the files in `c/` and `opencl/` for one ISA and one scalar type.

The files are written once, for a scalar `T`: `T` becomes `float` or `double`, the suffix `_T` of a name becomes
`_f32_avx512` and so on, and the suffix `_px` of an intrinsic `_ps`, `_pd`, `_f32` or `_f64`. The result is plain C
without macros.

    INLINE vec_T load_T(const T *p) { return _mm512_loadu_px(p); }
    static inline … vec_f32_avx512 load_f32_avx512(const float *p) { return _mm512_loadu_ps(p); }

For an OpenCL device, `GLOBAL` and, for an operand whose address space varies, words such as `A_SPACE` become the
pointer's address space; the names that a part defines then have a letter for each such operand.

    INLINE void pack_T(TO_SPACE T *dst, GLOBAL const T *src)
    static inline … void pack_f32_opencl512_l(__local float *dst, __global const float *src)
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from microkernels.dot import DotProduct, Words
from microkernels.dtypes import DTYPES, DType, bf16, f16, in_c
from microkernels.isa import ISA
from microkernels.opencl_isa import is_device
from microkernels.product import OperationPair, operations, words
from microkernels.prune import items_of

INLINE = "static inline __attribute__((always_inline))"
NOINLINE = "static __attribute__((noinline, unused))"
UNROLL = '_Pragma("GCC unroll 32")'
UNROLL_BY_2 = '_Pragma("GCC unroll 2")'

Space = Literal["global", "local", "private"]
"""An address space of OpenCL C."""
Spaces: TypeAlias = tuple[Space, Space, Space]
"""The address spaces of the operands A, B and C of a matrix product."""
GLOBAL: Spaces = ("global", "global", "global")

FLIP = "0x80808080u"
"""The sign bits of a word of elements of 8 bits."""
HEADED = re.compile(r"^( *)HEADED ?(.*\n)", re.MULTILINE)
"""A line that only texts for panels with a head have."""

OPERANDS = {"gemm": ("A_SPACE", "B_SPACE", "C_SPACE"), "pack": ("TO_SPACE",)}
"""The words that stand for the address spaces of a part's operands."""
KEYWORDS = {"global": "__global ", "local": "__local ", "private": ""}
"""OpenCL C's qualifiers, as they precede the type that a pointer points to."""
FOLDER = Path(__file__).parent
NAME = re.compile(r"[A-Za-z_]\w*")


def suffix(isa: ISA, dtype: DType, *spaces: Space) -> str:
    """The suffix of names for this ISA and type: `f32_avx512`; on a device `f32_opencl512_l` if a space is not
    `global`."""
    return f"{dtype.name}_{isa.name}{letters(isa, *spaces)}"


def letters(isa: ISA, *spaces: Space) -> str:
    """The suffix of functions for operands in these address spaces: `_lgg`; empty if all are `global`."""
    elsewhere = is_device(isa) and set(spaces) - {"global"}
    return "_" + "".join(space[0] for space in spaces) if elsewhere else ""


def vector_constraint(isa: ISA) -> str:
    """The constraint of a vector register in inline assembly."""
    return "w" if isa.machine == "aarch64" else "v" if isa.name == "avx512" else "x"


@dataclass(frozen=True)
class Elements:
    """What a text has besides `T`: the type `source` of an array that is converted, the layout `words` of a panel, and
    the instruction `dot` that multiplies and adds words; None for an array of `T`, for panels of elements, and for a
    multiply-add of these."""

    source: DType | None = None
    words: Words | None = None
    dot: DotProduct | None = None

    @property
    def name(self) -> str:
        """What the names that a part defines have for it: `_i8x4_headed_i8`."""
        layout = self.words or self.dot
        return "".join(f"_{one.name}" for one in (layout, self.source) if one)

    @property
    def has_head(self) -> bool:
        """Whether the panel, or that of the right operand, has a head."""
        return self.words.head if self.words else bool(self.dot and self.dot.is_flipped)


PLAIN = Elements()
"""Panels of the array's elements."""


def pack_suffix(isa: ISA, dtype: DType, elements: Elements = PLAIN, *spaces: Space) -> str:
    """The suffix of the packing routines: that of the panel's type, its words, and the array's type if that differs."""
    return suffix(isa, dtype, *spaces) + elements.name


def specialise(
    text: str, isa: ISA, dtype: DType, name: str = "", spaces: Sequence[Space] = (), elements: Elements = PLAIN
) -> str:
    """C text written for `T`, specialised for one ISA, scalar type and the address spaces of the part `name`."""
    operands = dict(zip(OPERANDS.get(name, ()), spaces, strict=False))
    words = _words(isa, dtype) | _element_words(isa, dtype, elements)
    own = _own_names(name) if letters(isa, *spaces) or elements != PLAIN else frozenset()
    ending = pack_suffix(isa, dtype, elements, *spaces)
    source = elements.source
    on_arm = f"{'f' if dtype.is_float else 's'}{8 * dtype.size}"
    px = _kind(dtype) if isa.machine == "x86_64" or is_device(isa) else on_arm

    def space(match: re.Match[str]) -> str:
        return KEYWORDS[operands.get(match[1], "global")] if is_device(isa) else ""

    def replace(match: re.Match[str]) -> str:
        word = match.group()
        if word in words:
            return words[word]
        if source and word.endswith("_S_T"):
            return f"{word[:-4]}_{suffix(isa, dtype)}_{source.name}"
        if word.endswith("_T"):
            return word[:-1] + (ending if word in own else suffix(isa, dtype))
        return re.sub("_px$", f"_{px}", word)

    text = HEADED.sub(r"\1\2" if elements.has_head else "", text)
    return NAME.sub(replace, re.sub(r"\b(GLOBAL|[A-Z]+_SPACE) ", space, text))


def _element_words(isa: ISA, dtype: DType, elements: Elements) -> dict[str, str]:
    """The replacements of words for the elements of arrays and panels; those of type `T` are loaded as they are."""
    own, dot, words = suffix(isa, dtype), elements.dot, elements.words
    found = {"multiply_add_D": f"fma_{own}"}
    if dot:
        found = {"multiply_add_D": f"dot_{own}_{dot.name}", "DOT": dot.code.replace("vec_T", f"vec_{own}")}
    if words:
        mask, flip = f"0x{(1 << 8 * words.element.size) - 1:X}u", FLIP if words.flipped else "0u"
        found |= {"E": in_c(words.element).c_name, "STEPS": str(words.steps), "MASK_E": mask, "FLIP": flip}
    if elements.source:
        source = in_c(elements.source)
        return found | {
            "S": source.c_name,
            "S_16": source.c_name if source.size == 2 else "int16_t",
            "OTHER_FLIP": FLIP,
        }
    loads = {"get_S_T": f"load_{own}", "get_tail_S_T": f"load_tail_{own}"}
    return found | {"S": dtype.c_name, **loads, "one_S_T": ""}


def _words(isa: ISA, dtype: DType) -> dict[str, str]:
    """The replacements of whole words in the files."""
    lanes = isa.lanes(dtype)
    integer = "int32_t" if dtype.size == 4 else "int64_t"
    words = {
        "T": dtype.c_name,
        "INLINE": INLINE,
        "NOINLINE": NOINLINE,
        "UNROLL": UNROLL,
        "UNROLL_BY_2": UNROLL_BY_2,
        "MASK": "__mmask16" if dtype.size == 4 else "__mmask8",
        "int_of_T": integer,
        "EACH_X": ", ".join(["x" if dtype.is_float else f"(u{integer})x"] * lanes),
        **_lanes(dtype, integer),
    }
    if not is_device(isa):
        return words
    kind = _kind(dtype)
    wide = {64: "512", 32: "256", 16: ""}[isa.vector_bytes]
    return words | {
        "UNROLL": '_Pragma("clang loop unroll(full)")',
        "UNROLL_BY_2": "",
        "LANES": str(lanes),
        "SIZE": str(dtype.size),
        "VEC": f"{dtype.c_name}{lanes}",
        "HALF_VEC": f"{dtype.c_name}{lanes // 2 if lanes > 2 else ''}",
        "VLOAD": f"vload{lanes}",
        "VSTORE": f"vstore{lanes}",
        "STORE_HIGH_X": f"vstore{lanes // 2}((x).hi, 0, p)" if lanes > 2 else "*(p) = (x).hi",
        "INTS": f"{'int' if dtype.size == 4 else 'long'}{lanes}",
        "NUMBERS": ", ".join(str(lane) for lane in range(lanes)),
        "EACH_LANE_OF_P": ", \\\n        ".join(f"(tail) > {lane} ? (p)[{lane}] : 0" for lane in range(lanes)),
        "MASKED_LOAD": f"__builtin_ia32_maskload{kind}{wide}",
        "MASKED_STORE": f"__builtin_ia32_maskstore{kind}{wide}",
        "MASK_512": "uint16_t" if dtype.size == 4 else "uint8_t",
        "LOAD_512": f"__builtin_ia32_loadu{kind}512_mask",
        "STORE_512": f"__builtin_ia32_storeu{kind}512_mask",
    }


def _lanes(dtype: DType, integer: str) -> dict[str, str]:
    """The replacements of words for the lanes of vectors; integers are unsigned there, so that they wrap around."""
    moved = DTYPES[f"f{8 * dtype.size}"]
    letter = "" if dtype.size == 4 else "d"
    moves = {"MOVED": moved.c_name, "RAW_512": f"__m512{letter}", "RAW_256": f"__m256{letter}"}
    if not dtype.is_float:
        return moves | {
            "lane_of_T": f"u{integer}",
            "RAW_128": "int32x4_t",
            "SET1_512": "_mm512_set1_epi32",
            "SET1_256": "_mm256_set1_epi32",
            "HADD_256": "_mm256_hadd_epi32((__m256i)x, (__m256i)x)",
            **dict.fromkeys(("FMA_512", "FMA_256", "FMA_128"), "a * b + c"),
        }
    kind = _kind(dtype)
    return moves | {
        "lane_of_T": dtype.c_name,
        "RAW_128": f"float{8 * dtype.size}x{16 // dtype.size}_t",
        "SET1_512": f"_mm512_set1_{kind}",
        "SET1_256": f"_mm256_set1_{kind}",
        "HADD_256": f"_mm256_hadd_{kind}(x, x)",
        "FMA_512": f"_mm512_fmadd_{kind}(a, b, c)",
        "FMA_256": f"_mm256_fmadd_{kind}(a, b, c)",
        "FMA_128": f"vfmaq_{dtype.name}(c, a, b)",
    }


def _kind(dtype: DType) -> str:
    """The ending of x86's intrinsics; integers are moved by those of floats."""
    return {4: "ps", 8: "pd"}[dtype.size]


@functools.cache
def _file(name: str) -> str:
    """The text of a file such as `c/gemm.h` or `opencl/vec.cl`, before specialisation."""
    return (FOLDER / name).read_text()


@functools.cache
def _own_names(name: str) -> frozenset[str]:
    """The names that the file `c/NAME.h` defines."""
    return frozenset().union(*(item.names for item in items_of(_file(f"c/{name}.h")))) if name else frozenset()


def guarded(name: str, text: str) -> str:
    """The text with an include guard, so that concatenated sources define it once."""
    guard = f"POLY_{name.upper()}"
    return f"#ifndef {guard}\n#define {guard}\n{text.strip()}\n#endif\n"


@functools.cache
def part(name: str, isa: ISA, dtype: DType, spaces: tuple[Space, ...] = (), elements: Elements = PLAIN) -> str:
    """The file `c/NAME.h` for one ISA, scalar type, address spaces and elements, with its guard."""
    text = specialise(_file(f"c/{name}.h"), isa, dtype, name, spaces, elements)
    return guarded(f"{name}_{pack_suffix(isa, dtype, elements, *spaces)}", text)


def outer_product(made: OperationPair, isa: ISA, dtype: DType, spaces: Spaces, elements: Elements) -> str:
    """The register tile of `c/gemm.h` for a pair of operations, with its guard."""
    text = f"{operations(made)}\n{in_family(made, _file('c/gemm.h'))}"
    own = specialise(text, isa, dtype, "gemm", spaces, elements)
    has_choices = "min_T" in (isa.layer or _file(f"c/vec_{isa.name}.h")) if operations(made) else True
    choices = "" if has_choices else part("vec_choose", isa, dtype)
    return choices + guarded(f"{made.family}_{pack_suffix(isa, dtype, elements, *spaces)}", own)


def in_family(made: OperationPair, text: str) -> str:
    """Text of `c/gemm.h`, or that calls it, with the operations of a family and with names of its own."""
    known = words(made)
    own = {name: _in_family(made, name) for name in _own_names("gemm")}
    return NAME.sub(lambda word: known.get(word[0]) or own.get(word[0], word[0]), text)


def _in_family(made: OperationPair, name: str) -> str:
    if name.startswith("gemm_"):
        return f"{made.family}_{name.removeprefix('gemm_')}"
    return name if made.family == "gemm" else f"{made.family.upper()}_{name}"


def conversion(isa: ISA, dtype: DType, source: DType) -> str:
    """Vectors of `dtype` from elements of the type `source`."""
    kind = f"_{source.name}" if source in (f16, bf16) else "_narrow" if source.size <= 2 else ""
    name, elements = f"convert{kind}", Elements(source)
    return part(name, isa, dtype, elements=elements) + part("convert_tail", isa, dtype, elements=elements)


def multiply_adds(isa: ISA, dtype: DType, dot: DotProduct | None) -> str:
    """The multiply-add of words, beside the vector layer's own of elements."""
    return part("dot", isa, dtype, elements=Elements(dot=dot)) if dot else ""


def vector_layer(isa: ISA, dtype: DType) -> str:
    """The vector type and its operations."""
    if is_device(isa):
        return _device_layer(isa, dtype)
    own = guarded(f"vec_{suffix(isa, dtype)}", specialise(isa.layer, isa, dtype))
    layer = own if isa.layer else part(f"vec_{isa.name}", isa, dtype)
    return layer if isa.masks else layer + part("vec_tail", isa, dtype)


@functools.cache
def _device_layer(isa: ISA, dtype: DType) -> str:
    """The layer in OpenCL C, with masks if the device's compiler has them for vectors of this width."""
    masks = "avx512" if isa.vector_bytes == 64 else "avx2"
    any_device, masked = _file("opencl/tail.cl"), _file(f"opencl/tail_{masks}.cl")
    tails = f"#if defined(__{masks.upper().replace('512', '512F')}__)\n{masked}#else\n{any_device}#endif\n"
    text = specialise(f"{_file('opencl/vec.cl')}\n{tails}", isa, dtype)
    return guarded(f"vec_{suffix(isa, dtype)}", text)
