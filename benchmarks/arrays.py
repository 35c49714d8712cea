"""Test data: random, the same in every run, and at the same places for all contenders.

A problem's arrays start on cache lines. What is measured are copies at places where NumPy puts its own arrays: `malloc`
writes 16 bytes before each block, so that large arrays, which get pages of their own, start 16 bytes behind a page, and
small ones 16, 32 or 48 bytes behind a cache line as often as on one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microkernels.dtypes import DType

Array = NDArray[np.floating[Any]]

ALIGNMENT = 64
"""Bytes: a cache line."""

PAGE = 4096
HEADER = 16
"""Bytes that `malloc` writes before a block."""

LARGE = 128 * 1024
"""Bytes from which glibc's `malloc` gives a block pages of its own."""

SMALL = (16, 48)
"""Bytes behind a cache line at which small arrays start in turn: by chance with NumPy, so two that no vector likes."""


def aligned(shape: Sequence[int], dtype: DType) -> Array:
    """An uninitialised array that starts on a cache line."""
    memory = np.empty(prod(shape) * dtype.size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + prod(shape) * dtype.size].view(dtype.numpy_name).reshape(shape)


def random(shape: Sequence[int], dtype: DType, seed: int = 0) -> Array:
    """Numbers in [-1, 1), the same for the same seed."""
    array = aligned(shape, dtype)
    array[...] = np.random.default_rng(seed).uniform(-1, 1, size=shape)
    return array


def copy(array: Array) -> Array:
    """An aligned copy."""
    return _moved(array, 0, ALIGNMENT)


def as_by_numpy(arrays: Sequence[Array]) -> tuple[Array, ...]:
    """Copies at places where NumPy's own arrays start."""
    return tuple(
        _moved(array, HEADER, PAGE) if array.nbytes >= LARGE else _moved(array, SMALL[n % len(SMALL)], ALIGNMENT)
        for n, array in enumerate(arrays)
    )


def _moved(array: Array, offset: int, unit: int) -> Array:
    """A copy that starts `offset` bytes behind a multiple of `unit`."""
    memory = np.empty(array.nbytes + unit, np.uint8)
    start = (offset - memory.ctypes.data) % unit
    result = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    result[...] = array
    return result
