"""Classic nests, compiled with the default schedule, against the loops as written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from classic_nests import SIZES, check

import poly

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize(
    ("known", "target", "threads"), [(True, "c", 2), (False, "c", 1), (False, "c:portable", 2)], ids=str
)
@pytest.mark.parametrize("nest", SIZES, ids=lambda nest: nest.name)
def test_as_the_loops_are_written(nest: poly.Nest, known: bool, target: str, threads: int) -> None:
    check(nest, poly.compile(nest, target=target, threads=threads, **(SIZES[nest] if known else {})))
