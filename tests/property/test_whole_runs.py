"""Loops around one that is written out: the iterations in which it has all of its own are apart, and none is lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poly
from codegen.ir.loop_ir import For, walk
from poly import f64
from poly.autoschedule.rules.wavefront import overlapped
from poly.lowering.scan import ast
from poly.lowering.visits import visits_all

M, N = poly.sizes("M N")


@poly.nest
def sweep(A: f64[M, N]):
    for i in range(1, M):
        for j in range(1, N - 1):
            A[i, j] = 0.5 * A[i, j - 1] + 0.25 * A[i - 1, j + 1]


@poly.nest
def triangle(A: f64[N, N], B: f64[N, N]):
    for i in range(1, N):
        for j in range(1, i + 1):
            A[i, j] = A[i, j - 1] * 0.5 + B[i, j]


@poly.nest
def of_two(A: f64[M, N], B: f64[M, N]):
    for i in range(1, M):
        for j in range(1, N):
            A[i, j] = A[i, j - 1] + B[i - 1, j]
            B[i, j] = A[i, j] * 0.5 + B[i, j - 1]


NESTS = [sweep, triangle, of_two]
KERNELS = {nest.name: poly.compile(nest, schedule=overlapped(poly.schedule(nest)), threads=1) for nest in NESTS}


def lengths(nest: poly.Nest) -> list[int]:
    """The numbers of iterations of the written-out loops that are known and more than one."""
    made = overlapped(poly.schedule(nest))
    found = [node for node in walk(ast(made.nest, made.tree)) if isinstance(node, For)]
    trips = [node.end - node.start for node in found if node.end is not None]
    return [trip.constant for trip in trips if not trip.names and trip.constant > 1]


@pytest.mark.parametrize("nest", NESTS, ids=lambda nest: nest.name)
def test_most_iterations_have_no_tests_of_bounds(nest: poly.Function) -> None:
    assert 8 in lengths(nest.with_sizes({"M": 64, "N": 80} if "M" in nest.sizes else {"N": 80}))


@settings(deadline=None, max_examples=15)
@given(m=st.sampled_from([1, 2, 8, 9, 17, 30]), n=st.sampled_from([1, 2, 3, 7, 8, 9, 16, 31]))
@pytest.mark.parametrize("nest", NESTS, ids=lambda nest: nest.name)
def test_results_are_those_of_the_loops(nest: poly.Function, m: int, n: int) -> None:
    sizes = {"M": m, "N": n}
    shapes = [tuple(extent.evaluate(sizes) for extent in array.shape) for array in nest.arrays]
    arrays = [np.random.default_rng(len(shape) + m).random(shape) for shape in shapes]
    expected = [array.copy() for array in arrays]
    nest.reference(*expected)
    KERNELS[nest.name](*arrays)
    for got, wanted in zip(arrays, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


@settings(deadline=None, max_examples=6)
@given(m=st.integers(1, 20), n=st.integers(3, 20))
@pytest.mark.parametrize("nest", NESTS, ids=lambda nest: nest.name)
def test_each_instance_runs_once(nest: poly.Function, m: int, n: int) -> None:
    made = overlapped(poly.schedule(nest.with_sizes({name: {"M": m, "N": n}[name] for name in nest.sizes})))
    domains = {statement.name: statement.domain for statement in made.nest.statements}
    assert visits_all(ast(made.nest, made.tree), domains, made.nest.context)
