"""Parting a statement into the instances that need their own block and the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import islpy as isl
import numpy as np
import pytest
from classic_nests import cholesky, lu
from doc_nests import copy, solve

import poly
from poly import f64
from poly.analysis.contraction import terms
from poly.analysis.dependences import Dependence
from poly.errors import ScheduleError
from poly.schedules.schedule import Schedule

N = poly.sizes("N")


def points(made: Schedule, name: str) -> set[tuple[int, ...]]:
    found: set[tuple[int, ...]] = set()

    def note(point: isl.Point) -> None:
        found.add(tuple(point.get_coordinate_val(isl.dim_type.set, d).to_python() for d in range(2)))

    made.nest.statement(name).domain.foreach_point(note)
    return found


@pytest.mark.parametrize("size", [2, 5, 9])
def test_every_instance_is_in_one_part(size: int) -> None:
    made = poly.schedule(solve.with_sizes({"N": 17})).part("S0", i=size)
    far, near = points(made, "S0"), points(made, "S0_near")
    assert not far & near
    assert far | near == {(i, j) for i in range(17) for j in range(i)}
    assert near == {(i, j) for i, j in far | near if i // size == j // size}


def test_a_condition_chooses_the_instances_of_the_second_part() -> None:
    made = poly.schedule(solve.with_sizes({"N": 17})).part("S0", where="j // 4 < i // 4 and 2 <= j <= N - 9", into="T")
    expected = {(i, j) for i in range(17) for j in range(i) if j // 4 < i // 4 and 2 <= j <= 8}
    assert points(made, "T") == expected
    assert points(made, "S0") == {(i, j) for i in range(17) for j in range(i)} - expected


@pytest.mark.parametrize(
    "made",
    [
        poly.schedule(solve).part("S0", i=4).distribute("j"),
        poly.schedule(solve).part("S0", where="i - j > 3", into="T").distribute("j"),
        poly.schedule(solve).pack("L", at="i").part("S0", i=4),
        poly.schedule(solve).pack("L", at="j").pack("L").part("S0", i=4),
        poly.schedule(solve).pack("L", at="j", statement="S0").part("S0", i=4),
    ],
    ids=["apart", "apart by a condition", "copied for i", "copied for j and whole", "copied for one"],
)
def test_the_parts_compute_the_same(made: Schedule) -> None:
    rng = np.random.default_rng(3)
    lower, x = np.tril(rng.random((21, 21))) + 3 * np.eye(21), rng.random(21)
    expected = np.linalg.solve(lower, x)
    poly.compile(solve, schedule=made, threads=1)(lower, x)
    np.testing.assert_allclose(x, expected)


@pytest.mark.parametrize(
    "made",
    [
        poly.schedule(solve).part("S0", i=4),
        poly.schedule(solve).part("S0", where="i - j > 3", into="T").part("T", where="j == 0", into="first"),
    ],
)
def test_a_nest_is_parted_once(made: Schedule) -> None:
    assert made.on(made.nest) == made == made.on(solve)
    assert Schedule.from_json(solve, made.to_json()) == made


@pytest.mark.parametrize(
    ("nest", "statement", "where"),
    [
        (solve, "S0", "i - j > 3"),
        (lu, "S0", "k // 4 < j // 4"),
        (lu, "S1", "j % 2 == 0"),
        (cholesky, "S2", "k < N - 9"),
    ],
)
def test_the_dependences_are_those_of_a_new_analysis(nest: poly.Nest, statement: str, where: str) -> None:
    parted = poly.schedule(nest).part(statement, where=where, into="T").nest
    found, expected = poly.dependences(parted), poly.dependences(replace(parted))
    for ours, theirs in ((found.items, expected.items), (found.races, expected.races)):
        assert (one := by_kind(ours)).keys() == (other := by_kind(theirs)).keys()
        assert all(one[key].is_equal(other[key]) for key in one)


def by_kind(dependences: tuple[Dependence, ...]) -> dict[tuple[object, ...], isl.Map]:
    """The pairs of all dependences of the same kind between the same statements."""
    found: dict[tuple[object, ...], isl.Map] = {}
    for d in dependences:
        key = d.kind, d.array, d.source, d.sink, d.reduction
        found[key] = found[key].union(d.relation) if key in found else d.relation
    return found


@poly.nest
def three_products(A: f64[N, N], B: f64[N, N], C: f64[N, N]):
    for i in range(N):
        for j in range(i + 1):
            for k in range(N):
                C[i, j] -= A[i, k] * B[j, k] - B[i, k] * A[j, k] + 2.0 * A[i, k] * A[k, j]


@poly.nest
def changed_between(A: f64[N, N], C: f64[N, N]):
    for i in range(N):
        for j in range(1, N):
            C[i, 0] += A[i, j] + C[i, j]


@pytest.mark.parametrize("first", [1, 2])
def test_terms_are_added_one_after_the_other(first: int) -> None:
    made = poly.schedule(three_products).part("S0", terms=first, into="rest")
    assert [len(terms(made.nest.statement(name).expr)) for name in ("S0", "rest")] == [first, 3 - first]
    assert made.on(made.nest) == made == made.on(three_products)
    assert Schedule.from_json(three_products, made.to_json()) == made
    made = made.distribute("k").distribute("j").distribute("i")
    one, other, out = np.random.default_rng(first).random((3, 21, 21))
    expected = np.where(np.tri(21), out - one @ other.T + other @ one.T - 2 * one @ one, out)
    poly.compile(three_products, schedule=made, threads=1)(one, other, out)
    np.testing.assert_allclose(out, expected, rtol=1e-13)


@pytest.mark.parametrize(
    ("nest", "number", "message"),
    [
        (three_products, 0, "the number of terms of S0 that stay must be an integer from 1 up, not 0"),
        (three_products, 3, "the number of terms of S0 that stay must be an integer from 1 to 2, not 3"),
        (solve, 1, "part(S0, terms=1): it adds one term only."),
        (copy, 1, "part(S0, terms=1): it is no sum. Only the terms that `+=` or `-=` adds can be added one by one."),
        (changed_between, 1, "part(S0, terms=1): a term reads C, which the first statement changes."),
        (replace(three_products, reassociate=False), 1, "part(S0, terms=1): three_products has reassociate=False."),
    ],
)
def test_terms_that_stay_together(nest: poly.Nest, number: int, message: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        poly.schedule(nest).part("S0", terms=number, into="rest")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("nest", "statement", "size", "message"),
    [
        (solve, "S0", {"i": 0}, "the block size of loop i must be an integer from 1 up, not 0"),
        (solve, "S0", {"q": 8}, "there is no loop q. Loops: i, j."),
        (solve, "S1", {"j": 8}, "statement S1 is not in loop j. Statements there: S0."),
        (solve, "S0", {"i": 1}, "none of its instances depends on others of the same 1 iterations"),
        (copy, "S0", {"i": 8}, "none of its instances depends on others"),
        (
            solve,
            "S0",
            {},
            "part(S0) needs one loop and the size of its blocks, such as i=8, or a condition "
            "or a number of terms, and a name",
        ),
        (solve, "S0", {"where": "i > 3"}, "part(S0) needs one loop and the size of its blocks"),
        (solve, "S0", {"where": "i > 3", "into": "T", "i": 4}, "part(S0) needs one loop and the size of its blocks"),
        (solve, "S0", {"where": "i > 3", "into": "S1"}, "part(S0): there is a statement S1 already."),
        (solve, "S0", {"where": "i > j", "into": "T"}, "part(S0): i > j holds for every one of its instances."),
        (solve, "T", {"where": "i > j", "into": "U"}, "statement T is not in the loops. Statements: S0, S1."),
        (solve, "S1", {"where": "i > j", "into": "T"}, "'i > j': S1 has no iterator 'j'. Iterators and sizes: N, i."),
        (solve, "S0", {"where": "i > 3 or j > 3", "into": "T"}, "'i > 3 or j > 3' is not quasi-affine. A formula has"),
        (solve, "S0", {"where": "i // j > 3", "into": "T"}, "'j' in 'i // j > 3' is not quasi-affine. A formula has"),
        (solve, "S0", {"where": "i >", "into": "T"}, "'i >' is no formula. A formula has"),
    ],
)
def test_refusals(nest: poly.Nest, statement: str, size: dict[str, Any], message: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        poly.schedule(nest).part(statement, **size)
    assert message in str(caught.value)


def test_a_name_stands_for_one_part() -> None:
    made = poly.schedule(solve).part("S0", where="i - j > 3", into="T")
    with pytest.raises(ScheduleError, match=r"part\(S0\): there is a statement T already. Remedy: another name."):
        made.part("S0", where="i - j > 2", into="T")
