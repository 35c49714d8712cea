"""Loops around few iterations, which compilers make straight code: what earlier iterations wrote is read as written."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poly


def rows(columns: int, apart: int, across: int, written_out: bool) -> poly.Nest:
    """Each row of a few elements is read by one some rows below, `across` columns further left."""
    places = range(2, columns + 2)
    body = [f"        A[i, {j}] = 0.1 * A[i - {apart}, {j} - {across}]" for j in places]
    loop = [f"        for j in range(2, {columns + 2}):", f"            A[i, j] = 0.1 * A[i - {apart}, j - {across}]"]
    head = [f"def few(A: 'f64[33, {columns + 4}]'):", f"    for i in range({apart}, 33):"]
    return poly.parse("\n".join([*head, *(body if written_out else loop)]))


@settings(deadline=None, max_examples=6)
@given(st.integers(2, 16), st.integers(1, 3), st.integers(-2, 2), st.booleans(), st.sampled_from(["c", "c:avx2"]))
def test_rows_that_read_rows_before(columns: int, apart: int, across: int, written_out: bool, target: str) -> None:
    check(rows(columns, apart, across, written_out), target)


@pytest.mark.parametrize("target", ["c", "c:avx2"])
@pytest.mark.parametrize("written_out", [False, True])
def test_five_columns(target: str, written_out: bool) -> None:
    """gcc 12 computes these rows from what stood there at first, where the loop doesn't stay in order."""
    check(rows(5, 2, 2, written_out), target)


def check(nest: poly.Nest, target: str) -> None:
    array = nest.arguments[0]
    expected = np.random.default_rng(2).random([extent.constant for extent in array.shape])
    got = expected.copy()
    nest.reference(expected)
    try:
        kernel = poly.compile(nest, schedule=poly.schedule(nest), target=target, records=False)
    except poly.TargetError:
        pytest.skip(f"this machine has no {target}")
    kernel(got)
    np.testing.assert_allclose(got, expected, rtol=1e-13)


@pytest.mark.parametrize(
    ("element", "source", "ordered"),
    [
        ("A[i, j]", "A[i - 2, j]", True),
        ("A[i, j]", "A[i, j - 1]", False),
        ("A[2*i, j]", "A[2*i + 1, j]", False),
        ("A[i, j]", "A[i + 40, j]", True),
    ],
)
def test_only_loops_whose_iterations_meet_stay_in_order(element: str, source: str, ordered: bool) -> None:
    loops = ["def f(A: 'f64[99, 9]'):", "    for i in range(2, 40):", "        for j in range(1, 6):"]
    nest = poly.parse("\n".join([*loops, f"            {element} = {source}"]))
    kernel = poly.compile(nest, schedule=poly.schedule(nest), records=False)
    assert ("POLY_IN_ORDER" in kernel.source) == ordered
