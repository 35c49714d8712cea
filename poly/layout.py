"""Where an array's elements lie: strides, and the offset of an access."""

from __future__ import annotations

from collections.abc import Mapping

from codegen.affine import Affine
from codegen.expr import Load
from poly.nest import Array
from poly.polynomial import Polynomial


def strides(array: Array) -> tuple[Polynomial, ...]:
    """Elements between neighbours along each dimension: row-major and dense, unless the array names its own."""
    if array.strides is not None:
        return tuple(Polynomial.of(s) for s in array.strides)
    result = [Polynomial.of(1)]
    for extent in reversed(array.shape[1:]):
        result.append(result[-1] * extent)
    return tuple(reversed(result)) if array.shape else ()


def step(array: Array, access: Load, iterator: str) -> Polynomial:
    """How many elements further the access is when `iterator` grows by one."""
    total = Polynomial()
    for index, stride in zip(access.indices, strides(array), strict=True):
        total = total + stride * index.coefficient(iterator)
    return total


def offset(array: Array, access: Load, iterators: Mapping[str, Affine]) -> Polynomial:
    """The offset (in elements) of the element accessed, with each iterator replaced by its expression."""
    total = Polynomial()
    for index, stride in zip(access.indices, strides(array), strict=True):
        total = total + stride * index.substitute(iterators)
    return total
