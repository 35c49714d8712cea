"""The layout of arrays in memory: strides, and the offset of an access."""

from __future__ import annotations

from collections.abc import Mapping

from codegen.ir.expr import Load
from codegen.ir.integer import Affine, Int, Linear, straight
from poly.ir.nest import Array


def strides(array: Array) -> tuple[Int, ...]:
    """The strides of each dimension, in elements: row-major and dense, unless the array has its own."""
    if array.strides is not None:
        return tuple(Linear.name(s) if isinstance(s, str) else Linear.of(s) for s in array.strides)
    result: list[Int] = [Linear.of(1)]
    for extent in reversed(array.shape[1:]):
        result.append(result[-1] * extent)
    return tuple(reversed(result)) if array.shape else ()


def step(array: Array, access: Load, iterator: str) -> Int:
    """The stride of an access along `iterator`, in elements; about this if an index has quotients."""
    total: Int = Linear()
    for index, stride in zip(access.indices, strides(array), strict=True):
        total = total + stride * straight(index).coefficient(iterator)
    return total


def offset(array: Array, access: Load, iterators: Mapping[str, Affine]) -> Int:
    """The offset of the accessed element, in elements, with each iterator replaced by its expression."""
    total: Int = Linear()
    for index, stride in zip(access.indices, strides(array), strict=True):
        total = total + stride * index.substitute(iterators)
    return total
