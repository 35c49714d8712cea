"""Computing a local's value where it is read: refusals, types, and loops that get lanes by it."""

from __future__ import annotations

import numpy as np
import pytest
from doc_nests import lower, pairs

import poly
from poly import f32, f64, i32
from poly.errors import ScheduleError
from poly.ir.tree import bands
from poly.schedules.schedule import Schedule

N = poly.sizes("N")


@poly.nest
def two_before(a: f64[N], b: f64[N]):
    x = b[0]
    y = 0.5 * b[0]
    for i in range(N):
        a[i] = (b[i] + x + y) * 0.333
        y = x
        x = b[i]


@poly.nest
def products(a: f32[N], b: f32[N], c: f32[N]):
    t: f32 = 0.1
    for i in range(N):
        s = b[i] * c[i]
        a[i] = s + t
        t = s


@poly.nest
def rounded(x: f64[N], y: f64[N]):
    t: f32 = 0.1
    k: i32 = 1
    for i in range(N):
        y[i] = x[i] * f64(t) + f64(k) / 2.0
        t = f32(x[i] + 0.7)
        k = 3


@poly.nest
def overwritten(x: f64[N], y: f64[N + 1]):
    t = 0.5
    for i in range(N):
        y[0] = x[i]
        y[i + 1] = t
        t = y[0] + 1.0


@poly.nest
def looked_up(x: f64[N], at: i32[N]):
    for i in range(N):
        t = x[at[i]]
        x[i] = t


LANES = [two_before, products, rounded]


@pytest.mark.parametrize("nest", LANES, ids=lambda nest: nest.name)
def test_loops_that_hand_on_a_local_get_lanes(nest: poly.Nest) -> None:
    kernel = poly.compile(nest, target="c", threads=1, records=False)
    made = kernel.schedule
    assert any(band.vectorize for band in bands(made.tree))
    assert Schedule.from_json(nest, made.to_json()) == made
    for size in (1, 2, 3, *range(128, 136)):
        draw = np.random.default_rng(size)
        arrays = [draw.uniform(0.5, 2, size).astype(array.dtype.numpy_name) for array in nest.arguments]
        expected = [array.copy() for array in arrays]
        nest.reference(*expected)
        kernel(*arrays)
        for got, wanted in zip(arrays, expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=2 * np.finfo(got.dtype).eps)


@pytest.mark.parametrize(
    ("nest", "local", "message"),
    [
        (pairs, "t", r"S1 reads values of S0, S2\. Remedy: part\('S1', where=…, into=…\) first"),
        (lower, "w", r"S1 computes it from itself"),
        (lower, "L", r"lower has no local L\. Locals: w"),
        (looked_up, "t", r"looked_up looks up indices"),
    ],
)
def test_refusals(nest: poly.Nest, local: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        poly.schedule(nest).substitute(local)


def test_an_element_that_changes_before_the_read_is_refused() -> None:
    parted = poly.schedule(overwritten).part("S2", where="i >= 1", into="behind")
    with pytest.raises(ScheduleError, match=r"y\[0\] has another value where behind reads it"):
        parted.substitute("t")


def test_an_order_that_only_the_local_allows_is_refused() -> None:
    @poly.nest
    def stored(x: f64[N], y: f64[N]):
        for i in range(N):
            t = x[i] + 1.0
            y[i] = t
            x[i] = 2.0

    made = poly.schedule(stored)
    assert len(made.substitute("t").nest.statements) == 2
    with pytest.raises(ScheduleError, match=r"substitute\(t\) is illegal"):
        made.distribute("i", behind="S0").distribute("i_2", last="S1").substitute("t")


@poly.nest
def never_read(a: f64[N]):
    t = 1.0
    for i in range(N):
        t = 1.0
        a[i] = 2.0
    for i in range(0):
        t = t + a[i]


def test_a_local_that_nothing_reads_is_left_alone() -> None:
    values = np.zeros(3)
    poly.compile(never_read, N=3, threads=1)(values)
    assert (values == 2.0).all()
