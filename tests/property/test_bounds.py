"""Accesses outside of an array, found by the sets; and a check of the check by enumeration."""

from __future__ import annotations

import textwrap

import islpy as isl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poly
from codegen.ir.integer import Affine
from microkernels.dtypes import f32
from poly.analysis.bounds import check
from poly.errors import SpecError
from poly.frontends.python import parse_text
from poly.frontends.source import Source
from poly.ir.nest import Nest
from poly.ir.reference import reference

KNOWN = {"f32": f32} | {name: Affine.name(name) for name in "MNPR"}


def read(body: str, arguments: str = "A: f32[M, N], x: f32[N]") -> Nest:
    text = f"def nest({arguments}):\n{textwrap.indent(textwrap.dedent(body), '    ')}"
    return parse_text(Source(text, "nest.py", 1), KNOWN)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "for i in range(N):\n    x[i] += x[i + 1]",
            "nest.py:3: S0 reads x[i + 1] outside of x\n    x[i] += x[i + 1]\n"
            "At i = 0 and with M = 0, N = 1, index 1 of dimension 0 is outside of 0 <= index < N = 1.\n"
            "Shorten the loops, put an `if` around the statement, `assert` which sizes are right, or make x larger.",
        ),
        (
            "for i in range(M):\n    for j in range(N):\n        A[j, i] = 0.0",
            "nest.py:4: S0 writes A[j, i] outside of A\n    A[j, i] = 0.0\n"
            "At i = 0, j = 1 and with M = 1, N = 2, index 1 of dimension 0 is outside of 0 <= index < M = 1.\n"
            "Shorten the loops, put an `if` around the statement, `assert` which sizes are right, or make A larger.",
        ),
        (
            "for i in range(N):\n    x[-1] = 0.0",
            "nest.py:3: S0 writes x[-1] outside of x\n    x[-1] = 0.0\n"
            "At i = 0 and with M = 0, N = 1, index -1 of dimension 0 is outside of 0 <= index < N = 1.\n"
            "A negative index does not count from the end: write the extent minus it.",
        ),
        (
            "x[1] = 1.0",
            "nest.py:2: S0 writes x[1] outside of x\n    x[1] = 1.0\n"
            "With M = 0, N = 1, index 1 of dimension 0 is outside of 0 <= index < N = 1.\n"
            "Shorten the loops, put an `if` around the statement, `assert` which sizes are right, or make x larger.",
        ),
        (
            "t: f32[3]\nfor i in range(N):\n    t[i] = 0.0",
            "nest.py:4: S0 writes t[i] outside of t\n    t[i] = 0.0\n"
            "At i = 3 and with M = 0, N = 4, index 3 of dimension 0 is outside of 0 <= index < 3.\n"
            "Shorten the loops, put an `if` around the statement, `assert` which sizes are right, or make t larger.",
        ),
    ],
)
def test_an_access_outside_is_named_with_one_iteration(body: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        check(read(body))
    assert str(caught.value) == message


def test_a_convolution_stays_inside() -> None:
    body = """
        for p in range(P):
            for r in range(R):
                y[p] += x[p + r] * w[r]
    """
    check(read(body, "x: f32[P + R - 1], w: f32[R], y: f32[P]"))
    with pytest.raises(SpecError, match=r"reads x\[p \+ r\] outside of x"):
        check(read(body, "x: f32[P + R - 2], w: f32[R], y: f32[P]"))


def test_a_condition_keeps_an_access_inside() -> None:
    check(read("for i in range(N):\n    if i > 0 and i % 2 == 0:\n        x[i] = x[i - 2]"))


def test_an_iteration_on_an_empty_array_does_not_run() -> None:
    nest = read(
        "for i in range(M):\n    A[i, 0] = 0.0\nfor i in range(M):\n    for j in range(N):\n        A[i, j] = 1.0"
    )
    first, second = check(nest).statements
    assert first.domain.is_equal(isl.Set("[M, N] -> { S0[i] : 0 <= i < M and N >= 1 }"))
    assert second is nest.statements[1]
    assert check(nest.with_sizes({"N": 0})).statements[0].domain.is_empty()


@pytest.mark.parametrize(("empty", "runs"), [("N", [5, 0, 3, 12, 3, 5, 5, 3, 3]), ("R", [5, 2, 5, 20, 5, 0, 5, 5, 5])])
def test_what_would_read_its_value_in_a_local_does_not_run_either(empty: str, runs: list[int]) -> None:
    """Neither directly nor by way of other locals and sums; an argument has a value all the same."""
    body = """
        a: f32[2]
        for i in range(M):
            s = 1.0
            if i > 2:
                s = A[i, 0]
            t = 2.0 * s
            for j in range(4):
                t += 1.0
            y[i] = t
            z[i] = x[0]
            y[i] += z[i]
            a[0] = 2.0 * s
            z[i] += a[0]"""
    nest = read(body, "A: f32[M, N], x: f32[R], y: f32[M], z: f32[M]")
    sizes = {"M": 5, "N": 1, "R": 1, empty: 0}
    statements = check(nest).with_sizes(sizes).statements
    assert [statement.domain.count_val().to_python() for statement in statements] == runs
    arrays = [np.ones([extent.evaluate(sizes) for extent in a.shape], np.float32) for a in nest.arguments]
    reference(nest, tuple(arrays))
    assert list(arrays[2]) == ([7, 7, 7, 7, 7] if empty == "R" else [7, 7, 7, 2, 2])
    assert list(arrays[3]) == ([3, 3, 3, 3, 3] if empty == "R" else [3, 3, 3, 1, 1])


def test_a_condition_on_data_leaves_out_what_it_would_read() -> None:
    """Whatever it says, as the kernel computes a statement's values before it chooses."""
    body = """
        for i in range(M):
            if A[i, 0] > 0:
                y[i, 0] = 1
            else:
                y[i, 0] = x[0]
            if A[i, 0] > 0 or x[0] > 0:
                y[i, 1] = 1
            if not (A[i, 0] > 0 and x[0] > 0):
                y[i, 2] = 1
                y[i, 3] = 1
            if i > 1 and A[i, 0] > 0:
                y[i, 4] = x[0]
                y[i, 5] = 3
            else:
                for k in range(2):
                    y[i, 4] += max(A[i, 0], k)
            t = 3.0
            if A[i, 0] > 0:
                for k in range(2):
                    t += x[k]
                    y[i, 6] += k
            y[i, 7] = t
            u = x[0]
            if A[i, 0] > 0:
                u = 4
                v = A[i, 0]
                y[i, 8] = v
                if i > 2:
                    y[i, 10] = x[1] + v
            y[i, 9] = u"""
    nest = read(body, "A: f32[M, N], x: f32[2 * R], y: f32[M, 11]")
    kernel = poly.compile(nest, records=False)
    for extent in (0, 2):
        x, y = np.full(extent, 7, np.float32), np.zeros((6, 11), np.float32)
        A, other = np.float32([[1], [-1], [2], [-3], [0], [4]]), y.copy()
        kernel(A, x, y)
        reference(nest, (A, x, other))
        np.testing.assert_array_equal(y, other)


@settings(deadline=None, max_examples=80)
@given(
    st.tuples(st.integers(-2, 2), st.integers(-2, 2), st.integers(-3, 3)),
    st.tuples(st.integers(-1, 2), st.integers(0, 2)),
    st.integers(0, 5),
)
def test_it_finds_what_enumeration_finds(index: tuple[int, int, int], loops: tuple[int, int], size: int) -> None:
    first, step = loops[0], loops[1] + 1
    a, b, c = index
    body = f"for i in range({first}, N, {step}):\n    for j in range(i, N):\n        x[{a}*i + {b}*j + {c}] = 0.0"
    nest = read(body, "x: f32[N]").with_sizes({"N": size})
    accesses = [a * i + b * j + c for i in range(first, size, step) for j in range(i, size)]
    if size == 0:
        assert check(nest).statements[0].domain.is_empty(), "x has no element"
    elif all(0 <= access < size for access in accesses):
        assert check(nest) is nest
    else:
        with pytest.raises(SpecError):
            check(nest)
