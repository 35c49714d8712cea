"""Classic nests, compiled with the default schedule, against the loops as written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from classic_nests import SIZES, check

import poly

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize(("known", "threads"), [(True, 2), (False, 1)], ids=str)
@pytest.mark.parametrize("nest", SIZES, ids=lambda nest: nest.name)
def test_as_the_loops_are_written(nest: poly.Nest, known: bool, threads: int) -> None:
    check(nest, poly.compile(nest, threads=threads, **(SIZES[nest] if known else {})))


@pytest.mark.parametrize("nest", list(SIZES)[::2], ids=lambda nest: nest.name)
def test_without_intrinsics(nest: poly.Nest) -> None:
    check(nest, poly.compile(nest, target="c:portable", threads=2))
