"""Data that verify a program: no steady state, full rank, and neither growth nor decay beyond all digits."""

from __future__ import annotations

import numpy as np

from benchmarks.arrays import Array, aligned, random
from microkernels.dtypes import DType

Shape = tuple[int, ...]


def dominant(shape: Shape, dtype: DType, seed: int) -> Array:
    """A symmetric positive definite matrix: every factorisation without pivoting is stable."""
    array = random(shape, dtype, seed)
    array[...] = (array + array.T) / (2 * len(array) ** 0.5)
    np.fill_diagonal(array, 3)
    return array


def triangle(shape: Shape, dtype: DType, seed: int) -> Array:
    """Small numbers around a diagonal of 2: a triangular solve neither grows nor vanishes."""
    array = random(shape, dtype, seed)
    array /= len(array) ** 0.5
    np.fill_diagonal(array, 2)
    return array


def correlations(shape: Shape, dtype: DType, seed: int) -> Array:
    """The first column of a positive definite Toeplitz matrix."""
    array = random(shape, dtype, seed)
    array *= 0.2 / len(array) ** 0.5
    return array


def positive(shape: Shape, dtype: DType, seed: int) -> Array:
    """Numbers in [0.5, 1.5), to divide by."""
    array = random(shape, dtype, seed)
    array[...] = 1 + array / 2
    return array


def small(shape: Shape, dtype: DType, seed: int) -> Array:
    """Factors below one, with which a recurrence neither grows nor vanishes."""
    array = random(shape, dtype, seed)
    array /= 2
    return array


def factors(shape: Shape, dtype: DType, seed: int) -> Array:
    """Numbers around 1 whose product is near it."""
    array = random(shape, dtype, seed)
    array[...] = 1 + array / array.size
    return array


def zeros(shape: Shape, dtype: DType, seed: int) -> Array:
    array = aligned(shape, dtype)
    array[...] = 0
    return array


def edits(shape: Shape, dtype: DType, seed: int) -> Array:
    """Zeros, but for the number of letters before each place in the first row and column."""
    array = zeros(shape, dtype, seed)
    array[0], array[:, 0] = np.arange(shape[1]), np.arange(shape[0])
    return array


def distances(shape: Shape, dtype: DType, seed: int) -> Array:
    """Integers from 1 to 999: most shortest paths take several edges."""
    return integers(shape, dtype, seed, 1, 1000)


def bases(shape: Shape, dtype: DType, seed: int) -> Array:
    """Integers from 0 to 3."""
    return integers(shape, dtype, seed, 0, 4)


def integers(shape: Shape, dtype: DType, seed: int, low: int, high: int) -> Array:
    """Random integers of an interval without its end."""
    array = aligned(shape, dtype)
    array[...] = np.random.default_rng(seed).integers(low, high, size=shape)
    return array
