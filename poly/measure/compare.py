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
    relative to the element and to the mean of all. Where the trusted result is not finite nothing is asked, nor where
    it is so large that the terms in another order may not be.
    """
    flat, wanted = found.reshape(-1), expected.reshape(-1)
    mean = _mean(wanted) if wanted.dtype.kind == "f" else 0.0
    worst, place = 1.0, -1
    for start in range(0, flat.size, BLOCK):
        excess = _excess(flat[start : start + BLOCK], wanted[start : start + BLOCK], mean, length)
        at = int(excess.argmax())
        if excess[at] > worst:
            worst, place = float(excess[at]), start + at
    if place < 0:
        return ""
    index = ", ".join(map(str, np.unravel_index(place, found.shape)))
    return f"wrong result: {name}[{index}] is {flat[place]}, not {wanted[place]}"


def _mean(wanted: Array) -> float:
    """The mean of the absolute values that are finite."""
    total, count = 0.0, 0
    for start in range(0, wanted.size, BLOCK):
        block = np.abs(wanted[start : start + BLOCK])
        finite = np.isfinite(block)
        total += float(block.sum(dtype=np.float64, where=finite))
        count += int(finite.sum())
    return total / max(1, count)


def _excess(found: Array, wanted: Array, mean: float, length: int) -> Array:
    """The distance of each element by what is allowed: more than 1 is wrong, 0 where nothing is asked."""
    if wanted.dtype.kind != "f":
        return np.where(found == wanted, 0.0, np.inf)
    kind = np.finfo(wanted.dtype)
    with np.errstate(all="ignore"):
        allowed = SLACK * float(kind.eps) * sqrt(max(1, length)) * (np.abs(wanted.astype(np.float64)) + mean)
        excess = np.abs(found.astype(np.float64) - wanted) / (allowed + float(kind.tiny))
    excess[~np.isfinite(excess)] = np.inf
    excess[~(np.abs(wanted) <= float(kind.max) / max(1, length))] = 0.0
    return excess
