"""Exact dependences against a count by hand: every access of a run in order, and what was last written before it."""

from __future__ import annotations

import gc
from collections import defaultdict
from dataclasses import replace

import doc_nests
import islpy as isl
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreter import Instance, accesses, instances, run_order
from random_nests import VALUE_OF_N, nests

import poly
from poly import f64
from poly.analysis.dependences import Dependence, dependences
from poly.ir.budget import CALL, limited
from poly.ir.nest import Nest

M, N, T = poly.sizes("M N T")

Pair = tuple[Instance, Instance]


def pairs(nest: Nest, dependence: Dependence) -> set[Pair]:
    """The pairs of a dependence for N = VALUE_OF_N."""
    relation = dependence.relation
    if relation.find_dim_by_name(isl.dim_type.param, "N") >= 0:
        relation = relation.fix_val(isl.dim_type.param, 0, isl.Val(VALUE_OF_N)).project_out(isl.dim_type.param, 0, 1)
    count = relation.dim(isl.dim_type.in_)
    found: set[Pair] = set()

    def visit(point: isl.Point) -> None:
        size = relation.dim(isl.dim_type.in_) + relation.dim(isl.dim_type.out)
        values = tuple(point.get_coordinate_val(isl.dim_type.set, d).to_python() for d in range(size))
        found.add((Instance(dependence.source, values[:count]), Instance(dependence.sink, values[count:])))

    relation.wrap().foreach_point(visit)
    return found


def kinds(nest: Nest) -> dict[str, set[Pair]]:
    found: dict[str, set[Pair]] = defaultdict(set)
    for dependence in dependences(nest):
        found[dependence.kind] |= pairs(nest, dependence)
    return found


def flow_by_hand(nest: Nest) -> set[Pair]:
    last: dict[object, Instance] = {}
    found: set[Pair] = set()
    for instance in run_order(nest, nest.tree):
        for element, writes in accesses(nest, instance):
            if not writes and element in last:
                found.add((last[element], instance))
        last |= {element: instance for element, writes in accesses(nest, instance) if writes}
    return found


@settings(max_examples=60)
@given(nests())
def test_flow_is_exact_without_reassociation(nest: Nest):
    plain = replace(nest, reassociate=False)
    fixed = plain.with_sizes({"N": VALUE_OF_N}) if plain.sizes else plain
    assert kinds(plain)["flow"] == flow_by_hand(fixed)


@settings(max_examples=60)
@given(st.one_of(nests(), nests(stepped=True)))
def test_chains_of_dependences_order_every_two_instances_that_conflict(nest: Nest):
    """With reassociation: all but the updates of one reduction among themselves."""
    fixed = nest.with_sizes({"N": VALUE_OF_N}) if nest.sizes else nest
    order = run_order(fixed, fixed.tree)
    after: dict[Instance, set[Instance]] = defaultdict(set)
    for dependence in dependences(nest).binding:
        for source, sink in pairs(nest, dependence):
            after[source].add(sink)
    for source in reversed(order):
        after[source] |= {later for sink in after[source] for later in after[sink]}
    for place, first in enumerate(order):
        for second in order[place + 1 :]:
            if must_stay(fixed, first, second):
                assert second in after[first], (first, second)


def must_stay(nest: Nest, first: Instance, second: Instance) -> bool:
    """Whether two instances conflict otherwise than as updates of one element by one reduction."""
    one, other = nest.statement(first.statement), nest.statement(second.statement)
    same = one.op == other.op != "="
    for number, (a, first_writes) in enumerate(accesses(nest, first)):
        for other_number, (b, second_writes) in enumerate(accesses(nest, second)):
            targets = number < 2 and other_number < 2
            if a == b and (first_writes or second_writes) and not (same and targets):
                return True
    return False


def test_flow_between_loops_with_steps():
    """isl's analysis loses pairs where two conditions on remainders meet."""

    @poly.nest
    def steps(W: f64[12, 12]):
        for t in range(5):
            for k in range(t - 2, t):
                for q in range(-2, 3, 2):
                    W[q + 5, q + 2] += 1
                for i in range(k - 2, 3, 3):
                    W[i + 5, t + 1] = W[k + 5, k + 2]

    plain = replace(steps, reassociate=False)
    assert kinds(plain)["flow"] == flow_by_hand(plain)
    reordered = poly.schedule(steps).reorder_storage("W", 1, 0)
    W = np.arange(144.0).reshape(12, 12)
    wanted = W.copy()
    poly.compile(steps, schedule=reordered)(W)
    steps.reference(wanted)
    np.testing.assert_array_equal(W, wanted)


def test_distances_of_a_stencil():
    @poly.nest
    def heat(u: f64[T, N]):
        for t in range(1, T):
            for x in range(1, N - 1):
                u[t, x] = u[t - 1, x - 1] + u[t - 1, x] + u[t - 1, x + 1]

    found = dependences(heat)
    assert {d.distance for d in found} == {(1, -1), (1, 0), (1, 1)}
    assert {d.kind for d in found} == {"flow"}


def test_the_text_of_a_dependence():
    assert str(dependences(doc_nests.dot)) == (
        "flow on s (reduction): { S0[i] -> S0[i' = 1 + i] : 0 <= i <= -2 + N }  distance (1)"
    )
    assert str(dependences(doc_nests.copy)) == "no dependences"


def test_an_initial_value_comes_before_every_update_and_a_use_after_all_of_them():
    @poly.nest
    def total(A: f64[N], s: f64[1], t: f64[1]):
        s[0] = 0.0
        for i in range(N):
            s[0] += A[i]
        t[0] = s[0]

    fixed = total.with_sizes({"N": 3})
    ordered = {pair for d in dependences(fixed).binding for pair in pairs(fixed, d)}
    for i in range(3):
        assert (Instance("S0", ()), Instance("S1", (i,))) in ordered
        assert (Instance("S1", (i,)), Instance("S2", ())) in ordered
    assert not any(a.statement == b.statement for a, b in ordered)


def test_updates_by_different_operators_stay_in_order():
    @poly.nest
    def mixed(A: f64[N], s: f64[1]):
        for i in range(N):
            s[0] += A[i]
            s[0] *= A[i]

    found = dependences(mixed.with_sizes({"N": 3}))
    assert {(d.source, d.sink) for d in found.binding} == {("S0", "S1"), ("S1", "S0")}
    assert {(d.source, d.sink) for d in found if d.reduction} <= {("S0", "S0"), ("S1", "S1")}


def test_without_reassociation_a_reduction_binds():
    strict = replace(doc_nests.dot, reassociate=False)
    assert [d.distance for d in dependences(strict).binding] == [(1,)]
    assert dependences(doc_nests.dot).binding == ()


def test_races_are_all_pairs_of_updates():
    fixed = doc_nests.dot.with_sizes({"N": 4})
    (race,) = dependences(fixed).races
    assert len(pairs(fixed, race)) == 12


def test_dependences_are_computed_once_and_forgotten_with_the_nest():
    nest = replace(doc_nests.wave)
    assert dependences(nest) is dependences(nest)
    assert dependences(replace(nest)) is not dependences(nest)
    from poly.analysis.dependences import _known

    key = id(nest)
    assert key in _known
    del nest
    gc.collect()
    assert key not in _known


def test_instances_of_the_interpreter_are_the_domain():
    fixed = doc_nests.copy.with_sizes({"M": 2, "N": 3})
    assert len(instances(fixed, fixed.tree)) == 6


def test_nests_alike_are_analysed_once_in_a_call() -> None:
    """A nest with a part of a statement, and one with a known size, are other nests, though `structure` is the same."""
    nest = doc_nests.chain
    parted = poly.schedule(nest).part("S0", where="i > 2", into="T").nest
    with limited(CALL):
        assert dependences(replace(nest)) is dependences(replace(nest))
        for other in (parted, nest.with_sizes({"N": 9}), replace(nest, reassociate=False)):
            assert dependences(replace(other)) is not dependences(replace(nest))
    assert dependences(replace(nest)) is not dependences(replace(nest))
