"""Multiply-adds of several neighbouring steps of a reduction at a time, and the panels that they read.

A word has the elements of `steps` neighbouring steps of one lane: two of 16 bits, four of 8. Panels hold words in place
of elements, and a microkernel adds up words as it otherwise multiplies and adds elements: its tile has the same shape.

    C[i, j] += A[i, k] * B[k, j]        C[i, j] = dot(word of A[i, 4w … 4w + 3], word of B[4w … 4w + 3, j], C[i, j])

The instructions for 8 bits multiply unsigned by signed elements. Where both operands are alike, the left one has its
sign bit flipped, which adds 128 to signed elements and subtracts 128 from unsigned ones; the row before the first of
the right operand's panel, its head, has what this changes, and the sums begin with it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from microkernels.dtypes import DType, i8, i16, i32, u8
from microkernels.isa import ISA


@dataclass(frozen=True)
class Words:
    """How an operand's elements lie in a panel: as `element`, converted to it, `steps` of them in a word.

    `flipped` elements have the other sign bit; a panel with a `head` has a row more, before its first.
    """

    element: DType
    steps: int
    flipped: bool = False
    head: bool = False

    @property
    def name(self) -> str:
        """Its part of names: `i8x4`."""
        return f"{self.element.name}x{self.steps}{'_flipped' * self.flipped}{'_headed' * self.head}"


@dataclass(frozen=True)
class DotProduct:
    """An instruction that adds to a sum of the type `dtype` the products of `steps` pairs of elements.

    `code` is its C text for the vectors x, row and sum. It takes one instruction of the instruction set's with
    `is_fused`, two otherwise. `feature` is what it needs of the CPU besides, as /proc/cpuinfo names it.
    """

    left: DType
    right: DType
    dtype: DType
    code: str
    is_fused: bool
    feature: str = ""

    @property
    def name(self) -> str:
        """Its part of a microkernel's name: `u8i8`, or `i8` where both operands are alike.

        A name ends in `vnni` where the same types have another instruction, too.
        """
        kinds = self.left.name if self.left == self.right else f"{self.left.name}{self.right.name}"
        return f"{kinds}vnni" if self.left == i16 and self.is_fused else kinds

    @property
    def steps(self) -> int:
        """The neighbouring steps in a word."""
        return self.dtype.size // self.left.size

    @property
    def is_flipped(self) -> bool:
        """Whether the left operand has its sign bits flipped, since the instruction takes one operand of each sign."""
        return self.left == self.right and self.left.size == 1

    def words(self, side: str) -> Words:
        """How the panels of the `left` or the `right` operand are laid out."""
        if side == "left":
            return Words(self.left, self.steps, flipped=self.is_flipped)
        return Words(self.right, self.steps, head=self.is_flipped)

    def extended(self, isa: ISA) -> ISA:
        """The instruction set with what else the instruction needs."""
        return isa.extended({self.feature: FLAGS[self.feature]}) if self.feature else isa


NAMES = ("i8", "u8", "i8u8", "u8i8", "i16vnni", "i16")
"""The names of all such instructions."""

FLAGS = {"avx512_vnni": "-mavx512vnni", "avx512_bf16": "-mavx512bf16", "avx_vnni": "-mavxvnni"}
"""The CPU features beyond the instruction sets, each with the compiler's flag for it."""

PAIRS = {"avx512": "_mm512_madd_epi16", "avx2": "_mm256_madd_epi16"}
"""Two products of 16 bits, added; of these sums only that of four times -2^15 wraps around."""
FOURS = {"avx512": ("_mm512_dpbusd_epi32", "avx512_vnni"), "avx2": ("_mm256_dpbusd_avx_epi32", "avx_vnni")}
"""Four products of an unsigned by a signed element, added to the sum without saturation, and the feature."""
FUSED_PAIRS = {"avx512": ("_mm512_dpwssd_epi32", "avx512_vnni"), "avx2": ("_mm256_dpwssd_avx_epi32", "avx_vnni")}
"""The same, and added to the sum."""
RAW = {"avx512": "__m512i", "avx2": "__m256i"}


def _pairs(isa: ISA) -> DotProduct:
    raw = RAW[isa.name]
    return DotProduct(i16, i16, i32, f"sum + (vec_T){PAIRS[isa.name]}(({raw})x, ({raw})row)", is_fused=False)


def _fused_pairs(isa: ISA) -> DotProduct:
    raw, (function, feature) = RAW[isa.name], FUSED_PAIRS[isa.name]
    return DotProduct(i16, i16, i32, f"(vec_T){function}(({raw})sum, ({raw})x, ({raw})row)", True, feature)


def _fours(isa: ISA, left: DType, right: DType) -> DotProduct:
    raw, (function, feature) = RAW[isa.name], FOURS[isa.name]
    unsigned, signed = ("x", "row") if right == i8 else ("row", "x")
    code = f"(vec_T){function}(({raw})sum, ({raw}){unsigned}, ({raw}){signed})"
    return DotProduct(left, right, i32, code, True, feature)


def dots(isa: ISA, dtype: DType) -> tuple[DotProduct, ...]:
    """The instructions of an instruction set, with those of its CPUs' further features, for sums of a type."""
    if isa.name not in RAW or dtype != i32:
        return ()
    return (*(_fours(isa, left, right) for left in (i8, u8) for right in (i8, u8)), _fused_pairs(isa), _pairs(isa))


def fitting(isa: ISA, dtype: DType, left: DType, right: DType, features: Collection[str]) -> DotProduct | None:
    """The best of these for elements of two types, on a CPU with these features; None if there is none."""
    for dot in dots(isa, dtype):
        known = dot.feature in features or not dot.feature
        if known and all(holds(one, own) for one, own in ((dot.left, left), (dot.right, right))):
            return dot
    return None


def with_dots(isa: ISA) -> ISA | None:
    """An instruction set with the feature for four products of 8 bits; None if no CPU has that."""
    _, feature = FOURS.get(isa.name, ("", ""))
    return isa.extended({feature: FLAGS[feature]}) if feature else None


def holds(element: DType, own: DType) -> bool:
    """Whether a panel's elements have all values of an array's type."""
    return own == element or (element == i16 and own in (i8, u8))
