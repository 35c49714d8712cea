"""The arguments of a nest as buffers of its program, and its signature, which calls of a cached kernel need too."""

from __future__ import annotations

from typing import Literal

from codegen.ir.program import Buffer
from codegen.ir.signature import Signature
from poly.ir.nest import Array, Nest


def arguments(nest: Nest) -> tuple[Buffer, ...]:
    """The array and scalar parameters of the C function."""
    return tuple(buffer(nest, array) for array in nest.arguments)


def signature(nest: Nest, scratch: bool = True) -> Signature:
    """The signature of the nest's C function."""
    return Signature(nest.name, nest.integers, arguments(nest), scratch, nest.fixed, conditions=nest.conditions)


def buffer(nest: Nest, array: Array) -> Buffer:
    """An array or scalar of a nest as a buffer of the program."""
    strides = None if array.strides is None else tuple(str(s) for s in array.strides)
    return Buffer(array.name, array.dtype, array.shape, _direction(nest, array), strides, is_complex=array.is_complex)


def _direction(nest: Nest, array: Array) -> Literal["in", "out", "inout", "scalar", "local"]:
    if array.kind != "array":
        return array.kind
    read = any(load.array == array.name for s in nest.statements for load in s.reads)
    if array.name not in nest.written:
        return "in"
    return "inout" if read else "out"
