"""The loops that isl makes visit each instance once: for random schedules, and for loops that isl gets wrong."""

from __future__ import annotations

from contextlib import suppress

import islpy as isl
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_nests import nests, steps

import poly
from codegen.ir.isl_ast import loops
from poly import i64
from poly.ir.budget import TooCostly, limited
from poly.lowering.scan import ast
from poly.lowering.visits import visits_all
from poly.schedules.schedule import Schedule

K = poly.sizes("K")


@poly.nest
def strided(v: i64[12 * K + 16]):
    for p in range(K - 1):
        for j in range(p - 2, 2 * p + 1):
            for k in range(0, 2 * j + 1, 5):
                v[k + 4 * K + 6] += 1


@poly.nest
def conditional(D: i64[4 * K + 6]):
    for j in range(K):
        for k in range(0, 2 * j + 1, 5):
            if j + 2 * k < 4:
                D[j + 2] += 1
            else:
                D[j + 2] -= 1


def skewed(nest: poly.Nest) -> Schedule:
    """Tiles of a loop skewed by its own tiles: conditions with several quotients, of which isl 0.27 has one wrong."""
    made = poly.schedule(nest).tile(k=32).skew("k", by="k_tile", factor=2)
    return made.order("k k_tile").tile(k=3, k_tile=8)


def domains(nest: poly.Nest) -> dict[str, isl.Set]:
    return {statement.name: statement.domain for statement in nest.statements}


@pytest.mark.parametrize("nest", [strided, conditional])
def test_loops_that_isl_gets_wrong_are_not_used(nest: poly.Function) -> None:
    schedule = skewed(nest)
    with pytest.raises(TooCostly):
        ast(nest, schedule.tree)
    with pytest.warns(poly.CostWarning, match="have conditions inside"):
        kernel = poly.compile(nest, schedule=schedule, records=False)
    for size in (1, 3, 4, 5, 9, 40):
        (argument,) = nest.arguments
        got = np.zeros(argument.shape[0].evaluate({"K": size}), np.int64)
        right = got.copy()
        kernel(got)
        nest.reference(right)
        np.testing.assert_array_equal(got, right)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(nests(), st.data())
def test_loops_of_random_schedules_visit_all(nest: poly.Nest, data: st.DataObject) -> None:
    made = poly.schedule(nest)
    for _ in range(4):
        with suppress(poly.ScheduleError):
            made = made.apply([data.draw(steps(made.tree))])
    with suppress(TooCostly):
        found = ast(made.nest, made.tree)  # which has more statements after some steps
        with limited(1_000_000):
            assert visits_all(found, domains(made.nest), nest.context)


@poly.nest
def total(x: i64[K], s: i64[1]):
    s[0] = 0
    for k in range(K):
        s[0] += x[k]


def test_a_statement_in_no_loop_is_visited_once() -> None:
    made = poly.schedule(total).tile(k=2).skew("k_tile", by="k")
    kernel = poly.compile(total, schedule=made, records=False)
    for size in range(6):
        s = np.full(1, 7)
        kernel(np.arange(size), s)
        assert s[0] == size * (size - 1) // 2


@pytest.mark.parametrize(
    "change", ["0 <= i < N - 1", "0 <= i <= N", "0 <= i < N and i != 5", "0 <= i < N and i % 2 = 0"]
)
def test_other_instances_are_seen(change: str) -> None:
    whole, other = (isl.Set(f"[N] -> {{ S[i] : {text} }}") for text in ("0 <= i < N", change))
    context = isl.Set("[N] -> { : N >= 8 }")
    schedule = isl.Map("{ S[i] -> [i] }").intersect_domain(other)
    made = loops(isl.AstBuild.from_context(context).node_from_schedule_map(isl.UnionMap.from_map(schedule)))
    assert visits_all(made, {"S": other}, context)
    assert not visits_all(made, {"S": whole}, context)


def test_an_instance_visited_twice_is_seen() -> None:
    context = isl.Set("[N] -> { : N >= 8 }")
    whole = isl.Set("[N] -> { S[i] : 0 <= i < N }")
    twice = isl.Map("[N] -> { S[i] -> [i, t] : 0 <= i < N and 0 <= t < 2 }")
    made = loops(isl.AstBuild.from_context(context).node_from_schedule_map(isl.UnionMap.from_map(twice)))
    assert not visits_all(made, {"S": whole}, context)
