"""Bodies in sections, statement by statement where no cycle ties them, do what the loops as written do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poly
from poly import f64, i32
from poly.autoschedule.rules.lanes import vectorized
from poly.autoschedule.rules.sections import cut
from poly.ir.tree import bands, statements
from tests.support.machines import TINY

N = poly.sizes("N")


@poly.nest
def backwards(a: f64[N + 2], b: f64[N + 2], c: f64[N + 2], d: f64[N + 2]):
    """What is written first needs what the second writes in the iteration before."""
    for i in range(1, N):
        a[i] = b[i - 1] + c[i] * d[i]
        b[i] = c[i + 1] - d[i]


@poly.nest
def beside_a_recurrence(a: f64[N + 2], b: f64[N + 2], c: f64[N + 2], d: f64[N + 2]):
    for i in range(1, N):
        a[i] += b[i] * c[i]
        d[i] = d[i - 1] * d[i - 1] * 0.5 + a[i]
        a[i] -= b[i] * b[i]


@poly.nest
def through_a_local(a: f64[N + 2], b: f64[N + 2], c: f64[N + 2], d: f64[N + 2]):
    for i in range(1, N):
        t = a[i] * b[i] + c[i]
        s = t * t
        d[i] = d[i - 1] / (2.0 + s) + t


@poly.nest
def on_both_sides(a: i32[N + 2], b: i32[N + 2], c: i32[N + 2], d: i32[N + 2]):
    """A recurrence of two statements, with others before and behind it."""
    for i in range(2, N):
        c[i] = b[i] * 3
        a[i] = max(d[i - 1], c[i]) - 1
        d[i] = min(a[i], d[i - 2]) + i
        b[i] = a[i] - d[i] + c[i - 1]


NESTS = [backwards, beside_a_recurrence, through_a_local, on_both_sides]
SECTION = 64
MADE = {nest.name: vectorized(cut(poly.schedule(nest), TINY)) for nest in NESTS}
KERNELS = {name: poly.compile(made.nest, schedule=made, threads=1) for name, made in MADE.items()}


@pytest.mark.parametrize("nest", NESTS, ids=lambda nest: nest.name)
def test_what_no_cycle_ties_has_lanes(nest: poly.Function) -> None:
    tied = {"beside_a_recurrence": {"S1"}, "through_a_local": {"S2"}, "on_both_sides": {"S1", "S2"}}
    loops = [band for band in bands(MADE[nest.name].tree) if not bands(band.body)]
    alone = {name for band in loops if not band.vectorize for name in statements(band)}
    assert alone == tied.get(nest.name, set())
    assert len(loops) > 1


@settings(deadline=None, max_examples=12)
@given(n=st.sampled_from([1, 2, 3, SECTION - 1, SECTION, SECTION + 1, 3 * SECTION + 5]), seed=st.integers(0, 99))
@pytest.mark.parametrize("nest", NESTS, ids=lambda nest: nest.name)
def test_results_are_those_of_the_loops(nest: poly.Function, n: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    dtype = nest.arrays[0].dtype.numpy_name
    arrays = [draw.integers(-9, 9, n + 2).astype(dtype) for _ in range(4)]
    expected = [array.copy() for array in arrays]
    nest.reference(*expected)
    KERNELS[nest.name](*arrays)
    for got, wanted in zip(arrays, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-13)


@poly.nest
def one_cycle(a: f64[N + 2], b: f64[N + 2]):
    for i in range(1, N):
        a[i] = b[i - 1] + 1.0
        b[i] = a[i] * 0.5


@poly.nest
def free(a: f64[N + 2], b: f64[N + 2]):
    for i in range(1, N):
        a[i] = a[i] + 1.0
        b[i] = a[i] * 0.5


@pytest.mark.parametrize("nest", [one_cycle, free], ids=lambda nest: nest.name)
def test_loops_that_gain_nothing_stay_whole(nest: poly.Function) -> None:
    made = poly.schedule(nest)
    assert cut(made, TINY) is made
