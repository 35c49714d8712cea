"""Arrays that lie in memory in another way than a kernel takes them: transposed, in Fortran's order, backwards, apart.

    A.T                  the dimensions in the order of their strides, the longest first
    x[::-1]              backwards: the nest reads x[N - 1 - i] where it read x[i]
    A[:, 3], A[:, ::2]   apart: with a dimension of one element behind the others, so that each row is contiguous

A kernel for turned arrays takes views of them whose strides are not negative, and whose rows are contiguous.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias


class ArrayView(NamedTuple):
    """What is passed in place of an array: its dimensions in this order, those in `backwards` from their ends.

    If its elements are `apart`, a dimension of one element follows. All are numbers of the array's own dimensions.
    """

    axes: tuple[int, ...]
    backwards: tuple[int, ...] = ()
    apart: bool = False

    def of_array(self, array: Any) -> Any:
        """The view of a NumPy array."""
        turned = array.transpose(self.axes)
        if not (self.backwards or self.apart):
            return turned
        steps = (slice(None, None, -1 if axis in self.backwards else 1) for axis in self.axes)
        return turned[(*steps, *(None,) * self.apart)]

    def of_tensor(self, tensor: Any) -> Any:
        """The view of a tensor (see `codegen.calls.tensors`), whose strides are never negative."""
        turned = tensor.permute(self.axes)
        return turned.unsqueeze(-1) if self.apart else turned


Views: TypeAlias = Mapping[str, ArrayView]
"""For some arrays, what is passed in place of them."""

Turn: TypeAlias = Callable[[Views], Callable[..., None] | None]
"""Makes the caller of the kernel for turned arrays; None if it cannot be made for these."""


ORDERS = 64
"""The most shapes and strides whose views are remembered."""


def by_strides(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """The dimensions, those that repeat elements first, then the longest stride; one of a single element stays."""
    several = [axis for axis, extent in enumerate(shape) if extent > 1]
    in_order = iter(sorted(several, key=lambda axis: (strides[axis] != 0, -abs(strides[axis]))))
    return tuple(next(in_order) if extent > 1 else axis for axis, extent in enumerate(shape))


def has_rows(shape: Sequence[int], strides: Sequence[int], size: int) -> bool:
    """Whether rows are contiguous, and the other strides whole elements of `size` bytes, forwards."""
    kept = [stride for stride, extent in zip(strides, shape, strict=True) if extent != 1]
    return not kept or (kept[-1] == size and all(stride > 0 and stride % size == 0 for stride in kept))


@lru_cache(ORDERS)
def turning(shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> ArrayView | None:
    """The view of an array that a kernel takes; None if it takes the array itself, or no view of it.

    Strides are arguments of the kernel that takes arrays with gaps. Where another order leaves no gaps, they are known.
    """
    if not shape or 0 in shape or any(stride % size for stride in strides):
        return None
    own, ordered = tuple(range(len(shape))), by_strides(shape, strides)
    rows = shape[-1] == 1 or abs(strides[-1]) == size
    axes = own if rows and not _is_dense([shape[a] for a in ordered], [strides[a] for a in ordered], size) else ordered
    last = axes[-1]
    backwards = tuple(axis for axis in own if strides[axis] < 0 and shape[axis] > 1)
    view = ArrayView(axes, backwards, apart=shape[last] > 1 and abs(strides[last]) != size)
    return None if view == ArrayView(own) else view


def _is_dense(shape: Sequence[int], strides: Sequence[int], size: int) -> bool:
    """Whether elements follow one another without gaps, in either direction."""
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent > 1 and abs(stride) != size:
            return False
        size *= extent
    return True
