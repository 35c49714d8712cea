"""Polynomials as C text."""

from __future__ import annotations

from collections.abc import Sequence


def horner(coefficients: Sequence[str], z: str = "z") -> str:
    """A polynomial in z by Horner's rule, from its coefficients, the lowest first: `(c2 * z + c1) * z + c0`."""
    *lower, text = coefficients
    for coefficient in reversed(lower):
        text = f"({text}) * {z} + {coefficient}" if z in text else f"{text} * {z} + {coefficient}"
    return text
