"""Nests for arrays that are not dense, with symbolic strides."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from codegen.names import another
from poly.ir.nest import Array, Nest


def with_strides(nest: Nest, dense: Container[str] = ()) -> Nest:
    """The same nest with symbolic strides for its arrays: `A_ld` for a matrix, otherwise `A_stride0`, …

    The last dimension stays contiguous, and so do the arrays that are named as `dense`.
    """
    indices = (iterator for statement in nest.statements for iterator in statement.iterators)
    taken = frozenset({*nest.sizes, *(array.name for array in nest.arrays), *indices})
    names = {
        a.name: tuple(another(name, taken) for name in _stride_names(a))
        for a in nest.arguments
        if a.extents and a.name not in dense
    }
    arrays = tuple(
        replace(a, strides=(*names[a.name], *(2,) * a.is_complex, 1)) if names.get(a.name) else a for a in nest.arrays
    )
    return replace(nest, arrays=arrays)


def _stride_names(array: Array) -> tuple[str, ...]:
    """Names for all strides but the last."""
    if len(array.extents) == 2:
        return (f"{array.name}_ld",)
    return tuple(f"{array.name}_stride{dimension}" for dimension in range(len(array.extents) - 1))
