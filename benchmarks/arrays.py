"""Test data: random, the same in every run, with the same alignment for all contenders."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microkernels.dtypes import DType

Array = NDArray[np.floating[Any]]

ALIGNMENT = 64
"""Bytes: a cache line. NumPy's own arrays may or may not start 16 bytes after one, by chance."""


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
    twin = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -twin.ctypes.data % ALIGNMENT
    result = twin[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    result[...] = array
    return result
