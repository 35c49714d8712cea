"""Nests that are called like functions: which kernel serves a call."""

from __future__ import annotations

import numpy as np
import pytest

import poly
from poly import ArgumentError, f32
from poly.function import SPECIALISED

M = poly.sizes("M")


@poly.nest
def copy(A: f32[M], B: f32[M]):
    for i in range(M):
        B[i] = A[i]


def copied(nest: poly.Function, size: int) -> bool:
    source, target = np.arange(size, dtype=np.float32), np.zeros(size, np.float32)
    nest(source, target)
    return bool((source == target).all())


def test_a_nest_with_sizes_fixed_has_kernels_of_its_own() -> None:
    """Neither serves the other's calls, also beyond the number of sizes that get a kernel each."""
    fixed = copy.with_sizes({"M": 3})
    assert copied(fixed, 3)
    assert all(copied(copy, size) for size in range(2 * SPECIALISED))
    with pytest.raises(ArgumentError, match=r"expected \(3,\)"):
        copied(fixed, 4)
    assert copied(fixed, 3)
