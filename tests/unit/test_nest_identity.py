"""A nest is known by what it computes: schedules, comparisons, headers and records tell alike-looking ones apart."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import poly
from microkernels.isa import ISAS
from poly import f32, f64
from poly.ir.nest import difference
from poly.records.key import key_for

M, N = poly.sizes("M N")


def scaling(factor: Any, dtype: Any = f64, reassociate: bool = True) -> poly.Nest:
    """Nests with one source text."""

    def scaled(A: dtype[M, N], s: dtype[M]):
        for i in range(M):
            for j in range(N):
                s[i] += factor * A[i, j]

    return poly.nest(scaled) if reassociate else poly.nest(reassociate=False)(scaled)


def shifted(offset: int) -> poly.Nest:
    """Nests whose bounds and indices differ, with one source text."""

    def moved(x: f64[N], y: f64[N]):
        for i in range(offset, N):
            y[i] = x[i - offset]

    return poly.nest(moved)


PAIRS: list[tuple[Callable[[], poly.Nest], Callable[[], poly.Nest], str]] = [
    (lambda: scaling(2.0), lambda: scaling(3.0), "factor is 2.0 in the one, 3.0 in the other"),
    (lambda: scaling(2), lambda: scaling(2.0), "factor is 2 in the one, 2.0 in the other"),
    (lambda: scaling(2.0), lambda: scaling(2.0, f32), "they take A: f64[:, :], s: f64[:], and A: f32[:, :], s: f32[:]"),
    (lambda: shifted(1), lambda: shifted(2), "offset is 1 in the one, 2 in the other"),
    (lambda: shifted(1), lambda: scaling(1.0), "they take x: f64[:], y: f64[:], and A: f64[:, :], s: f64[:]"),
    (
        lambda: scaling(2.0),
        lambda: scaling(2.0, reassociate=False),
        "only one of them allows reassociation of reductions",
    ),
]
IDS = ["factor", "kind of number", "type", "bounds", "loops", "reassociate"]


def test_a_nest_stays_the_same_whatever_isl_does_with_its_sets() -> None:
    """isl may simplify a set in place: its text is another one then."""

    def told() -> poly.Nest:
        def sieved(x: f64[N], A: f64[N, N]):
            for i in range(N):
                for j in range(N):
                    if j < N or (5 * j) % 4 == (i + j) % 5 or (3 * j + 5 * i) // 3 == j:
                        x[j] += A[i, j]

        return poly.nest(sieved)

    used = told()
    domain, before = used.statements[0].domain, str(used.statements[0].domain)
    domain.subtract(domain.remove_divs())
    assert str(domain) != before
    assert used.structure == told().structure


@pytest.mark.parametrize(("first", "second", "told"), PAIRS, ids=IDS)
def test_a_schedule_of_another_nest_is_refused(first: Any, second: Any, told: str) -> None:
    one, other = first(), second()
    for made in (poly.schedule(one), poly.compile(one, threads=1).schedule):
        with pytest.raises(poly.ScheduleError, match=re.escape(told) + r"\. Make one with poly\.schedule\("):
            poly.compile(other, schedule=made)
    known = [nest.with_sizes(dict.fromkeys(nest.sizes, 8)) for nest in (one, other)]
    with pytest.raises(poly.SpecError, match="can't be compared: " + re.escape(told)):
        poly.compare(*map(poly.schedule, known), threads=1)
    assert one.structure != other.structure and difference(one, one) is None
    assert key_for(one, ISAS["portable"], 1) != key_for(other, ISAS["portable"], 1)


def test_the_same_loops_under_another_name_share_a_schedule() -> None:
    """Identity is the digest, in which the name does not count; the kernel is that of the nest asked for."""

    @poly.nest
    def other(A: f64[M, N], s: f64[M]):
        for i in range(M):
            for j in range(N):
                s[i] += 2.0 * A[i, j]

    kernel = poly.compile(other, schedule=poly.schedule(scaling(2.0)).split(j=4))
    assert kernel.nest.name == "other"
    A, s = np.arange(12.0).reshape(3, 4), np.zeros(3)
    kernel(A, s)
    np.testing.assert_array_equal(s, 2 * A.sum(axis=1))


def test_sizes_of_a_schedule_and_of_a_nest() -> None:
    nest = scaling(2.0)
    steps = poly.schedule(nest).split(j=4)
    fixed = nest.with_sizes({"N": 4})
    assert poly.compile(fixed, schedule=steps).nest.sizes == ("M",), "the nest's own sizes stay fixed"
    assert poly.compile(nest, schedule=steps.on(fixed)).nest.sizes == ("M",), "and so do the schedule's"
    assert poly.compile(nest.with_sizes({"M": 3}), schedule=steps.on(fixed)).nest.sizes == ()
    with pytest.raises(poly.ScheduleError, match="this is a schedule of another scaled: it has N = 4, not 5"):
        poly.compile(nest.with_sizes({"N": 5}), schedule=steps.on(fixed))


def test_a_parted_nest_is_the_same_nest() -> None:
    @poly.nest
    def solve(L: f64[N, N], x: f64[N]):
        for i in range(N):
            for j in range(i):
                x[i] -= L[i, j] * x[j]

    parted = poly.schedule(solve).part("S0", i=4)
    assert parted.nest.structure == solve.structure
    kernel = poly.compile(solve, schedule=parted, N=9)
    assert kernel.nest.structure == solve.structure
    again = poly.compile(solve, schedule=kernel.schedule)
    L, x, y = np.tri(9), np.ones(9), np.ones(9)
    again(L, x)
    solve.reference(L, y)
    np.testing.assert_array_equal(x, y)


def test_a_header_tells_alike_nests_apart(tmp_path: Any) -> None:
    kernels = [poly.compile(scaling(factor), threads=1) for factor in (2.0, 3.0)]
    with pytest.raises(poly.SpecError, match="two different nests are called scaled"):
        poly.write_header(tmp_path / "both.h", kernels)


def test_a_nest_keeps_its_identity_when_it_is_pickled() -> None:
    for nest in (scaling(2.0), scaling(2.0, reassociate=False), scaling(2.0).with_sizes({"N": 4})):
        again = pickle.loads(pickle.dumps(nest))
        assert (again.structure, again.fixed, again.reassociate) == (nest.structure, nest.fixed, nest.reassociate)
