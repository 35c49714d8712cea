"""Whether a candidate's result is right: equal to the trusted one but for rounding."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

SLACK = 32
"""How many times the rounding that a sum is expected to have is allowed."""
BLOCK = 1 << 20
"""Elements that are compared at a time: temporary arrays stay small."""


def difference(name: str, found: Array, expected: Array, length: int) -> str:
    """What is wrong with an array, in words; empty where nothing is.

    Integers must be equal. Floats may differ by the rounding of sums of `length` terms, which grows with its root,
    relative to the largest element; where the trusted result is not finite, nothing is asked.
    """
    flat, wanted = found.reshape(-1), expected.reshape(-1)
    bound = _bound(wanted, length)
    worst, place = 0.0, -1
    for start in range(0, flat.size, BLOCK):
        error = _errors(flat[start : start + BLOCK], wanted[start : start + BLOCK])
        at = int(error.argmax())
        if error[at] > max(worst, bound):
            worst, place = float(error[at]), start + at
    if place < 0:
        return ""
    index = ", ".join(map(str, np.unravel_index(place, found.shape)))
    return f"wrong result: {name}[{index}] is {flat[place]}, not {wanted[place]}"


def _bound(wanted: Array, length: int) -> float:
    """The largest error that is rounding."""
    if wanted.dtype.kind != "f":
        return 0.0
    largest = 0.0
    for start in range(0, wanted.size, BLOCK):
        block = np.abs(wanted[start : start + BLOCK])
        largest = max(largest, float(block.max(initial=0.0, where=np.isfinite(block))))
    kind = np.finfo(wanted.dtype)
    return max(float(kind.tiny), SLACK * float(kind.eps) * sqrt(max(1, length)) * largest)


def _errors(found: Array, wanted: Array) -> Array:
    """The distance of each element; infinite where one is not finite and should be, 0 where nothing is asked."""
    if wanted.dtype.kind != "f":
        return np.where(found == wanted, 0.0, np.inf)
    with np.errstate(all="ignore"):
        error = np.abs(found.astype(np.float64) - wanted)
    error[~np.isfinite(error)] = np.inf
    error[~np.isfinite(wanted)] = 0.0
    return error
