"""Locals inside loops whose ranges are empty: they have no elements, and a call that is legal works.

The extent of such a local is the length of a range, `N - 2000`, which comes out below 0 at smaller sizes. Locals lie
one behind the other, so the first of them must not take less than nothing.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from headers import (
    CHECKED_FLOPS,
    CLANG,
    GCC,
    at_any_level,
    build,
    header,
    implementation,
    library,
    quick,
    run,
)
from hypothesis import given
from hypothesis import strategies as st
from opencl_device import device
from range_nests import CASES, M, N

import poly
from codegen.ir.integer import Affine, element_count

C = {"float64": "double", "float32": "float"}
EACH = [
    pytest.param(nest, sizes, id=f"{nest.name}{list(sizes.values())}") for nest, all_ in CASES.items() for sizes in all_
]

TARGETS = [("c", EACH), ("opencl", EACH[::2])]


def arrays(nest: poly.Nest, sizes: dict[str, int], seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = [tuple(extent.evaluate(sizes) for extent in array.shape) for array in nest.arguments]
    return [
        rng.integers(-9, 9, shape).astype(a.dtype.numpy_name) for a, shape in zip(nest.arguments, shapes, strict=True)
    ]


def wanted(nest: poly.Nest, sizes: dict[str, int]) -> list[np.ndarray]:
    found = arrays(nest, sizes)
    nest.reference(*found)
    return found


@pytest.mark.parametrize(
    ("target", "nest", "sizes"),
    [pytest.param(target, *one.values, id=f"{target}-{one.id}") for target, some in TARGETS for one in some],
)
def test_a_legal_call_works(target: str, nest: poly.Nest, sizes: dict[str, int]) -> None:
    """At open sizes, and at sizes known beforehand."""
    name = device().label if target == "opencl" else target
    right = wanted(nest, sizes)
    for known in ({}, sizes):
        got = arrays(nest, sizes)
        poly.compile(nest, target=name, threads=2 if target == "c" else None, **known)(*got)
        for a, b in zip(got, right, strict=True):
            np.testing.assert_array_equal(a, b)


EXTENTS = st.builds(lambda m, n, k: M * m + N * n + k, st.integers(-2, 2), st.integers(-2, 2), st.integers(-9, 9))


@given(st.lists(EXTENTS, max_size=4), st.integers(0, 6), st.integers(0, 6))
def test_no_extent_counts_below_zero(extents: list[Affine], m: int, n: int) -> None:
    known = {"M": m, "N": n}
    assert element_count(extents).evaluate(known) == math.prod(max(0, extent.evaluate(known)) for extent in extents)


@pytest.mark.parametrize("nest", CASES, ids=lambda nest: nest.name)
def test_headers_take_the_call(nest: poly.Nest, tmp_path: Path) -> None:
    path = at_any_level(header(tmp_path, nest, threads="none"))
    ffi, lib = library(path, GCC, *quick(GCC))
    for sizes in CASES[nest]:
        got = arrays(nest, sizes)
        right = wanted(nest, sizes)
        told: list[object] = [sizes[size] for size in nest.sizes]
        for array in got:
            told += [ffi.cast(f"{C[str(array.dtype)]} *", array.ctypes.data), *[0] * (array.ndim - 1)]
        assert getattr(lib, nest.name)(*told) == 0, sizes
        for a, b in zip(got, right, strict=True):
            np.testing.assert_array_equal(a, b)


def test_self_tests_of_such_headers_pass_under_sanitizers(tmp_path: Path) -> None:
    """Where locals lie is the same for all instruction sets, and portable kernels compile fastest."""
    header(tmp_path, *CASES, name="ranges", threads="none", isas=["portable"], flops=CHECKED_FLOPS)
    checked = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O1")
    binary = build(CLANG, implementation("ranges", "DEBUG", "SELFTEST"), tmp_path, *checked)
    assert run(CLANG, binary, "--quick").endswith("\nPASS\n")
