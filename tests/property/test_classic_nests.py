"""Classic nests, compiled with the default schedule, against the loops as written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from classic_nests import SIZES, cholesky, lu

import poly

Array = np.ndarray[Any, Any]


def arguments(nest: poly.Nest, sizes: dict[str, int]) -> list[Any]:
    """Positive numbers; a well-conditioned matrix where the nest factors or solves."""
    rng = np.random.default_rng(0)
    made: list[Any] = []
    for array in nest.arguments:
        shape = tuple(extent.evaluate(sizes) for extent in array.shape)
        if array.kind == "scalar":
            made.append(1.5)
        elif not array.dtype.is_float:
            made.append(rng.integers(-9, 9, shape).astype(array.dtype.numpy_name))
        else:
            values = rng.random(shape) + 0.5
            if nest in (cholesky, lu):
                values = values @ values.T + 10 * shape[0] * np.eye(shape[0])
            made.append(values.astype(array.dtype.numpy_name))
    return made


@pytest.mark.parametrize(
    ("known", "target", "threads"), [(True, "c", 2), (False, "c", 1), (False, "c:portable", 2)], ids=str
)
@pytest.mark.parametrize("nest", SIZES, ids=lambda nest: nest.name)
def test_as_the_loops_are_written(nest: poly.Nest, known: bool, target: str, threads: int) -> None:
    check(nest, poly.compile(nest, target=target, threads=threads, **(SIZES[nest] if known else {})))


def check(nest: poly.Nest, kernel: Callable[..., Any]) -> None:
    """The kernel does what the loops as written do."""
    ours, expected = arguments(nest, SIZES[nest]), arguments(nest, SIZES[nest])
    kernel(*ours)
    nest.reference(*expected)
    for our, their in zip(ours, expected, strict=True):
        if isinstance(our, np.ndarray):
            np.testing.assert_allclose(our, their, rtol=2e-5 if our.dtype == np.float32 else 1e-9)
