"""The scalar types, as users write them in annotations: `A: f32[M, K]` is an array, `alpha: f32` a number.

To a type checker, brackets in an annotation have types in them, not sizes. It accepts sizes where it must not look into
the brackets: mypy behind a name that can be anything, others behind a class that defines what its brackets mean. Of an
argument's elements both only know that they may be anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from microkernels.dtypes import DType

MYPY = False
"""True to mypy, and to no other type checker."""

if MYPY:
    from poly.any_types import bf16 as bf16
    from poly.any_types import c64 as c64
    from poly.any_types import c128 as c128
    from poly.any_types import f16 as f16
    from poly.any_types import f32 as f32
    from poly.any_types import f64 as f64
    from poly.any_types import i8 as i8
    from poly.any_types import i16 as i16
    from poly.any_types import i32 as i32
    from poly.any_types import i64 as i64
    from poly.any_types import u8 as u8
    from poly.any_types import u16 as u16
elif TYPE_CHECKING:

    class _ScalarType(DType, type):
        """The class of the scalar types: each is a class in annotations, and elsewhere a DType."""

    class _Argument(metaclass=_ScalarType):
        """An argument of a nest: an array or a number."""

        def __class_getitem__(cls, shape: Any) -> Any: ...
        def __getitem__(self, at: Any) -> Any: ...
        def __setitem__(self, at: Any, value: Any) -> None: ...

    class bf16(_Argument, float):
        """The upper half of an f32: its range, with 8 bits of precision."""

    class f16(_Argument, float):
        """Half precision."""

    class f32(_Argument, float):
        """Single precision."""

    class f64(_Argument, float):
        """Double precision."""

    class c64(_Argument, complex):
        """Complex numbers of two f32."""

    class c128(_Argument, complex):
        """Complex numbers of two f64."""

    class u8(_Argument, int):
        """Integers from 0 to 255, which wrap around."""

    class u16(_Argument, int):
        """Integers from 0 to 65535, which wrap around."""

    class i8(_Argument, int):
        """Integers of 8 bits, which wrap around."""

    class i16(_Argument, int):
        """Integers of 16 bits, which wrap around."""

    class i32(_Argument, int):
        """Integers of 32 bits, which wrap around."""

    class i64(_Argument, int):
        """Integers of 64 bits, which wrap around."""

else:
    from microkernels.dtypes import bf16, c64, c128, f16, f32, f64, i8, i16, i32, i64, u8, u16

__all__ = ["bf16", "c64", "c128", "f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16"]
