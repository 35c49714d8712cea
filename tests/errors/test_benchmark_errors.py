"""What `kernel.benchmark` refuses: it says what is wrong before it measures, and changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

import poly
from poly import f64

N = poly.sizes("N")


@poly.nest
def doubled(x: f64[N]):
    for i in range(N):
        x[i] *= 2.0


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), float("inf"), "2", True, None])
def test_seconds_must_be_a_positive_number(seconds: object) -> None:
    x = np.ones(8)
    with pytest.raises(poly.ArgumentError, match="seconds must be a positive number, the most to measure for; got"):
        poly.compile(doubled).benchmark(x, seconds=seconds)
    assert (x == 1).all()


def test_arguments_are_checked_as_in_a_call() -> None:
    kernel = poly.compile(doubled)
    with pytest.raises(poly.ArgumentError, match=r"doubled takes 1 argument: x: f64\[N\]\. Missing: x\."):
        kernel.benchmark()
    with pytest.raises(poly.ArgumentError, match="x has dtype float32"):
        kernel.benchmark(np.ones(8, np.float32))
    with pytest.raises(poly.ArgumentError, match="It has no trails"):
        kernel.benchmark(np.ones(8), trails=3)
    with pytest.raises(poly.ArgumentError, match="threads must be an integer"):
        kernel.benchmark(np.ones(8), threads=0)
