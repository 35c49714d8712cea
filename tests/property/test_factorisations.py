"""Factorisations in blocks: any block and kernel, at any size up to a few blocks, computes what the loops compute."""

from __future__ import annotations

import re
from math import sqrt
from random import Random

import numpy as np
import pytest
from classic_nests import cholesky, floyd, inplace_mm, lu, trisolve
from hypothesis import given, settings
from hypothesis import strategies as st

import poly
from codegen.c import kernel_source
from microkernels.catalogue import gemm
from microkernels.isa import ISAS
from poly import Nest, f64
from poly.autoschedule.default import default_form
from poly.autoschedule.rules.factorisations import Blocks, eliminations, factorisations, factorised
from poly.autoschedule.rules.lanes import vectorized
from poly.autoschedule.rules.sharing import parallelized
from poly.embed.routine import USUAL
from poly.ir.reference import reference
from poly.lowering.lower import lower
from poly.model.core import Target
from poly.schedules.steps import Tensorize

N = poly.sizes("N")
PORTABLE = ISAS["portable"]


@poly.nest
def elimination(A: f64[N, N]):
    for k in range(N):
        for i in range(k + 1, N):
            A[i, k] /= A[k, k]
        for i in range(k + 1, N):
            for j in range(k + 1, N):
                A[i, j] -= A[i, k] * A[k, j]


@poly.nest
def ldlt(A: f64[N, N], L: f64[N, N], d: f64[N]):
    """A becomes L times the diagonal matrix of d."""
    for i in range(N):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * L[j, k]
            L[i, j] = A[i, j] / d[j]
        d[i] = A[i, i]
        for k in range(i):
            d[i] -= A[i, k] * L[i, k]


@poly.nest
def in_a_scalar(A: f64[N, N]):
    for i in range(N):
        for j in range(i):
            w = A[i, j]
            for k in range(j):
                w -= A[i, k] * A[k, j]
            A[i, j] = w / A[j, j]
        for j in range(i, N):
            w = A[i, j]
            for k in range(i):
                w -= A[i, k] * A[k, j]
            A[i, j] = w


@poly.nest
def columns_first(A: f64[N, N]):
    for j in range(N):
        for k in range(j):
            for i in range(j, N):
                A[i, j] -= A[i, k] * A[j, k]
        A[j, j] = sqrt(A[j, j])
        for i in range(j + 1, N):
            A[i, j] /= A[j, j]


@poly.nest
def solve(A: f64[N, N], B: f64[N, N], X: f64[N, N]):
    """Out of place, each right-hand side in turn."""
    for r in range(N):
        for i in range(N):
            w = B[i, r]
            for j in range(i):
                w -= A[i, j] * X[j, r]
            X[i, r] = w / A[i, i]


@poly.nest
def solve_upwards(A: f64[N, N], X: f64[N, N]):
    for i in range(N - 1, -1, -1):
        for r in range(N):
            for j in range(i + 1, N):
                X[i, r] -= A[i, j] * X[j, r]
            X[i, r] /= A[i, i]


@poly.nest
def solve_rows(A: f64[N, N], X: f64[N, N]):
    for r in range(N):
        for j in range(N):
            for k in range(j):
                X[r, j] -= X[r, k] * A[k, j]
            X[r, j] /= A[j, j]


@poly.nest
def invert(A: f64[N, N], X: f64[N, N]):
    """The inverse of a lower triangle; what is above it stays."""
    for j in range(N):
        X[j, j] = 1 / A[j, j]
        for i in range(j + 1, N):
            X[i, j] = 0.0
            for k in range(j, i):
                X[i, j] -= A[i, k] * X[k, j]
            X[i, j] /= A[i, i]


NESTS = [
    lu, elimination, cholesky, columns_first, ldlt, in_a_scalar, solve, solve_upwards, solve_rows, invert,
]  # fmt: skip


def typed(nest: Nest, dtype: str) -> Nest:
    """The nest with other types of its arrays."""
    text = nest.source.partition("\n")[2].replace("f64", dtype)
    return poly.parse(text, names={"N": N, dtype: getattr(poly, dtype), "sqrt": sqrt})


def arguments(nest: Nest, size: int) -> list[np.ndarray]:
    """A positive definite matrix, and arrays to fill."""
    rng = np.random.default_rng(size)
    half = rng.random((size, size))
    others = (np.ones((size,) * len(array.shape)) for array in nest.arguments[1:])
    dtype = nest.arguments[0].dtype.numpy_name
    return [array.astype(dtype) for array in (half @ half.T + size * np.eye(size), *others)]


def check(nest: Nest, made: poly.Schedule, size: int, threads: int = 1) -> None:
    """A schedule computes what the loops as written do, up to rounding."""
    found, expected = arguments(nest, size), arguments(nest, size)
    poly.compile(nest, schedule=made, target="c:portable", threads=threads)(*found)
    reference(nest, tuple(expected))
    for ours, theirs in zip(found, expected, strict=True):
        bound = 8 * size * np.finfo(ours.dtype).eps * np.abs(theirs).max()
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=bound)


@settings(max_examples=8)
@given(
    st.sampled_from(NESTS),
    st.sampled_from(["f32", "f64"]),
    st.sampled_from([(2, 2), (4, 2), (3, 3)]),
    st.integers(1, 3),
    st.data(),
)
def test_blocks_of_any_size_compute_the_same(
    nest: Nest, dtype: str, tile: tuple[int, int], count: int, data: st.DataObject
) -> None:
    nest = typed(nest, dtype)
    kernel = gemm(PORTABLE, getattr(poly, dtype), *tile)
    depth = count * kernel.rows
    around = data.draw(st.sampled_from([0, 2 * depth]))
    rows = data.draw(st.sampled_from([0, 2, 3, 5]))
    size = data.draw(st.integers(1, 2 * (around or depth) + 1))
    known = nest.with_sizes({"N": size}) if around or data.draw(st.booleans()) else nest
    made = factorised(known, PORTABLE, Blocks(depth, kernel, around, rows))
    assert made is not None or known is not nest, "a factorisation of any size has blocks"
    if made is not None:
        assert made.on(known).tree == made.tree, "the public steps make it, and each is legal"
        check(known, vectorized(made), size)


@pytest.mark.parametrize(("nest", "loops"), [(lu, 1), (cholesky, 2)])
def test_threads_share_the_tiles(nest: Nest, loops: int) -> None:
    """The updates above and below LU's diagonal run in one loop."""
    kernel = gemm(PORTABLE, f64, 4, 2)
    made = factorised(nest, PORTABLE, Blocks(8, kernel))
    assert made is not None
    shared = parallelized(made, 2)
    assert sum(step.name == "parallel" for step in shared.steps) == loops
    check(nest, vectorized(shared), 43, threads=2)


@pytest.mark.parametrize("nest", [lu, solve_rows])
def test_points_of_its_forms_are_legal(nest: Nest) -> None:
    target = Target.nominal(ISAS["avx2"], USUAL, 2)
    for form in factorisations(nest.with_sizes({"N": 70}), target):
        structure = form.structure(target, {})
        for at in Random(1).sample(list(structure.points()), 2):
            form.schedule(structure.values(at))


@pytest.mark.parametrize("nest", [floyd, trisolve, inplace_mm])
def test_what_is_no_factorisation_is_left_alone(nest: Nest) -> None:
    assert factorised(nest, PORTABLE) is None


def test_the_blocks_of_divisions_follow_their_columns() -> None:
    (found,) = eliminations(lu)
    assert found.counts == {"S0": "k", "S1": "j", "S2": "k"}
    (found,) = eliminations(solve_upwards)
    assert found.counts == {"S0": "-j", "S1": "-i"}


@pytest.mark.parametrize(("nest", "sizes"), [(lu, (16, 400)), (cholesky, (16, 400))])
def test_the_default_schedule_has_blocks_where_they_are_expected_to_pay(nest: Nest, sizes: tuple[int, int]) -> None:
    target = Target.nominal(ISAS["avx512"], USUAL, 1)
    forms = [default_form(nest.with_sizes({"N": size}), target) for size in sizes]
    blocked = [any(isinstance(step, Tensorize) for step in form.tried.steps) for form in forms]
    assert blocked == [False, True]


def test_loops_are_found_for_what_is_chosen() -> None:
    """Of its blocks isl does not find the loops with an open size."""
    text = lu.source.partition("\n")[2].replace("f64", "f32")
    for name in "ijk":
        text = re.sub(rf"(?<=[\[ ]){name}(?=[],])", f"N - 1 - {name}", text)
    backwards = poly.parse(text, names={"N": N, "f32": poly.f32})
    made = default_form(backwards, Target.nominal(ISAS["avx2"], USUAL, 1)).tried
    assert kernel_source(lower(made.nest, made.tree, ISAS["avx2"]))


@pytest.mark.parametrize("isa", ["avx512", "avx2"])
def test_code_is_made_of_blocks_of_blocks(isa: str) -> None:
    made = factorised(lu.with_sizes({"N": 2000}), ISAS[isa])
    assert made is not None
    assert "gemm" in kernel_source(lower(made.nest, made.tree, ISAS[isa]))
