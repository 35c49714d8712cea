"""Contractions over domains that are no box: padded convolutions, whose taps outside the image are left out."""

from __future__ import annotations

import numpy as np
import pytest
from shared_nests import padded

import poly
from poly import f64

P, Q, C, F = poly.sizes("P Q C F")


@poly.nest
def lower_times(L: f64[P, P], B: f64[P, Q], X: f64[P, Q]) -> None:
    for i in range(P):
        for j in range(Q):
            for k in range(i + 1):
                X[i, j] += L[i, k] * B[k, j]


def convolved(image: np.ndarray, weights: np.ndarray) -> np.ndarray:
    wide = np.pad(image.astype(np.float64), ((1, 1), (1, 1), (0, 0)))
    height, width = image.shape[:2]
    taps = ((r, s) for r in range(3) for s in range(3))
    return sum(wide[r : r + height, s : s + width] @ weights[r, s].astype(np.float64) for r, s in taps)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("shape", [(7, 7, 32, 33), (1, 1, 16, 64), (2, 13, 17, 5), (14, 3, 40, 128)])
def test_padded_convolution(shape: tuple[int, int, int, int], known: bool, threads: int) -> None:
    p, q, c, f = shape
    rng = np.random.default_rng(7)
    image, weights = rng.standard_normal((p, q, c), np.float32), rng.standard_normal((3, 3, c, f), np.float32)
    out = np.full((p, q, f), np.nan, np.float32)
    sizes = {"P": p, "Q": q, "C": c, "F": f} if known else {}
    kernel = poly.compile(padded, sizes=sizes, threads=threads)
    kernel(image, weights, out)
    bound = 4 * np.finfo(np.float32).eps * np.sqrt(9 * c) * 9
    np.testing.assert_allclose(out, convolved(image, weights), rtol=0, atol=bound)


def test_it_goes_to_a_microkernel() -> None:
    schedule = poly.compile(padded, P=14, Q=14, C=64, F=64, threads=1).schedule
    assert "microkernel" in repr(schedule)
    assert "if" not in str(schedule), "the tiles are boxes: no iteration tests whether its tap is inside"


@pytest.mark.parametrize("size", [1, 5, 17, 40])
def test_triangle_times_matrix(size: int) -> None:
    rng = np.random.default_rng(size)
    triangle, matrix = rng.standard_normal((size, size)), rng.standard_normal((size, 2 * size + 1))
    out = rng.standard_normal((size, 2 * size + 1))
    expected = out + np.tril(triangle) @ matrix
    poly.compile(lower_times, P=size, Q=2 * size + 1, threads=1)(triangle, matrix, out)
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-13 * size)
