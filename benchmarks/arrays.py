"""Test data: random, the same in every run, and at the same places for all contenders.

A problem's arrays start on cache lines. What is measured are copies at places where NumPy puts its own arrays, as when
candidates of a search are measured (`start_by_numpy` in poly/measure/data.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microkernels.dtypes import DType
from poly.machine.description import PAGE
from poly.measure.data import start_by_numpy

Array = NDArray[Any]
Arrays = Array | tuple[Array, ...]

ALIGNMENT = 64
"""Bytes: a cache line."""


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
    memory = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    return _moved(array, memory, -memory.ctypes.data % ALIGNMENT)


def as_by_numpy(arrays: Sequence[Array]) -> tuple[Array, ...]:
    """Copies at places where NumPy's own arrays start."""
    return tuple(_as_by_numpy(array, number) for number, array in enumerate(arrays))


def _as_by_numpy(array: Array, number: int) -> Array:
    memory = np.empty(array.nbytes + PAGE, np.uint8)
    return _moved(array, memory, start_by_numpy(memory, array.nbytes, number))


def _moved(array: Array, memory: NDArray[np.uint8], start: int) -> Array:
    """A copy in a memory, from a byte on."""
    result = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    result[...] = array
    return result
