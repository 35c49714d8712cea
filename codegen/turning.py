"""Arrays whose dimensions lie in another order in memory, such as the transpose of a matrix or one in Fortran's order.

A kernel for turned arrays takes them with their dimensions in the order of their strides, the longest first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

Axes: TypeAlias = Mapping[str, tuple[int, ...]]
"""For some arrays, the dimensions in the order in which they are passed: what `numpy.transpose` takes."""

Turn: TypeAlias = Callable[[Axes], Callable[..., None] | None]
"""Makes the caller of the kernel for turned arrays; None if it cannot be made for these."""


ORDERS = 64
"""The most shapes and strides whose orders are remembered."""


def by_strides(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """The dimensions, the longest stride first; one of a single element stays where it is."""
    several = [axis for axis, extent in enumerate(shape) if extent > 1]
    in_order = iter(sorted(several, key=lambda axis: -strides[axis]))
    return tuple(next(in_order) if extent > 1 else axis for axis, extent in enumerate(shape))


def has_rows(shape: Sequence[int], strides: Sequence[int], size: int) -> bool:
    """Whether rows are contiguous, and the other strides whole elements of `size` bytes, forwards."""
    kept = [stride for stride, extent in zip(strides, shape, strict=True) if extent != 1]
    return not kept or (kept[-1] == size and all(stride > 0 and stride % size == 0 for stride in kept))


@lru_cache(ORDERS)
def turning(shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> tuple[int, ...] | None:
    """The order of an array's dimensions in which its rows are contiguous; None if they are, or in no order."""
    if len(shape) < 2 or shape[-1] < 2 or strides[-1] == size or 0 in shape:
        return None
    axes = by_strides(shape, strides)
    turned = [shape[axis] for axis in axes], [strides[axis] for axis in axes]
    return axes if has_rows(*turned, size) else None
