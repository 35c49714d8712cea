"""The scalar types. `f32[M, K]` is the type of an array with that shape."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol


@dataclass(frozen=True)
class DType:
    """A scalar type: its short name, C spelling, NumPy name and size in bytes."""

    name: str
    c_name: str
    numpy_name: str
    size: int
    is_float: bool

    def __getitem__(self, shape: Any) -> ArrayType:
        return ArrayType(self, shape if isinstance(shape, tuple) else (shape,))

    @property
    def is_unsigned(self) -> bool:
        """Whether the type is one of integers without negative numbers."""
        return self.name.startswith("u")

    @property
    def is_stored(self) -> bool:
        """Whether C only stores the type, as the bits of a float: it computes in f32, and rounds each result."""
        return self.is_float and self.c_name == STORED

    __iter__ = None
    """A type is not iterable: without this, `list(f32)` would call `__getitem__` for ever."""

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, repr=False)
class ComplexType(DType):
    """A type of complex numbers: a real part and an imaginary part behind it, both of the type `part`.

    Only front ends and callers have it. Loops compute with the parts, which are a last dimension of arrays.
    """

    part: DType


@dataclass(frozen=True, repr=False)
class ArrayType:
    """`dtype[shape]`; the entries of the shape are integers or affine expressions of sizes."""

    dtype: DType
    shape: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


f32 = DType("f32", "float", "float32", 4, True)
f64 = DType("f64", "double", "float64", 8, True)
u8 = DType("u8", "uint8_t", "uint8", 1, False)
u16 = DType("u16", "uint16_t", "uint16", 2, False)
i8 = DType("i8", "int8_t", "int8", 1, False)
i16 = DType("i16", "int16_t", "int16", 2, False)
i32 = DType("i32", "int32_t", "int32", 4, False)
i64 = DType("i64", "int64_t", "int64", 8, False)

STORED = "uint16_t"
"""The type in C of a float that is only stored."""
f16 = DType("f16", "half", "float16", 2, True)
"""Half precision, IEEE 754's binary16; GPU microkernels accumulate in f32."""
bf16 = DType("bf16", STORED, "bfloat16", 2, True)
"""The upper half of an f32: its range, with 8 bits of precision."""

c64 = ComplexType("c64", "float", "complex64", 8, True, f32)
c128 = ComplexType("c128", "double", "complex128", 16, True, f64)

COMPLEX = {dtype.part: dtype for dtype in (c64, c128)}
"""The complex types by the type of their parts."""

DTYPES = {dtype.name: dtype for dtype in (bf16, f16, f32, f64, u8, u16, i8, i16, i32, i64)}
"""The types that loops compute with, by name."""
ANNOTATED = {**DTYPES, **{dtype.name: dtype for dtype in (c64, c128)}}
"""The types that arguments may have."""


def in_c(dtype: DType) -> DType:
    """The type as C has it: C99 and C++11 have no half precision, and store its bits."""
    return replace(dtype, c_name=STORED) if dtype == f16 else dtype


class HasElements(Protocol):
    """An array in loops, with the type of what they compute with, its shape, and whether it `is_complex`."""

    @property
    def dtype(self) -> DType: ...
    @property
    def shape(self) -> tuple[Any, ...]: ...
    @property
    def is_complex(self) -> bool: ...


class CallerElements:
    """An array as its caller sees it: the last dimension of a complex one, of its parts, is in the elements."""

    @property
    def element(self: HasElements) -> DType:
        """The type of an element."""
        return COMPLEX[self.dtype] if self.is_complex else self.dtype

    @property
    def extents(self: HasElements) -> tuple[Any, ...]:
        """The shape in elements."""
        return self.shape[:-1] if self.is_complex else self.shape
