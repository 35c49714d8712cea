"""The space of nests that are no contraction over a box: its points are legal, compute the same, hold the default."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from random import Random
from typing import Any

import numpy as np
import pytest
from classic_nests import SIZES, arguments, floyd, gemv_like, seidel, transpose, trmm, zero_more
from loop_nests import chain, heat_3d, jacobi_2d, solve_block
from machines import LARGE, TINY, derived
from shared_nests import padded

import poly
from benchmarks.workloads import nests, stencil
from microkernels.dtypes import DTYPES
from microkernels.isa import host
from poly import f32, f64
from poly.autoschedule.default import default_form, default_schedule
from poly.autoschedule.derive import all_forms
from poly.autoschedule.rules.microkernels import heaviest_product
from poly.autoschedule.spaces.space import Point
from poly.errors import ScheduleError
from poly.model.core import Target
from poly.schedules.schedule import Schedule

HOST = host()


def workloads() -> list[poly.Nest]:
    """The nests of the benchmarks that are no contraction, at the sizes that are measured."""
    found = (problem for _, problem in stencil.PROBLEMS)
    return [nests.make(problem.name, DTYPES["f32"]).with_sizes(problem.size) for problem in found]


SMALL: dict[poly.Nest, dict[str, int]] = {
    jacobi_2d: {"N": 23, "T": 5},
    heat_3d: {"N": 14, "T": 3},
    seidel: {"N": 21, "T": 4},
    transpose: {"M": 45, "N": 38},
    trmm: {"M": 19, "N": 37},
    floyd: {"N": 24},
    padded: {"P": 7, "Q": 9, "C": 17, "F": 40},
    gemv_like: {"M": 70, "N": 300},
    solve_block: {"N": 50, "M": 40},
    zero_more: {"N": 37},
    chain: {"N": 21, "M": 70},
}
"""Nests of every kind, at sizes at which few blocks come out even."""


N, M, T = poly.sizes("N M T")


@poly.nest
def two_times(A: f64[N], B: f64[N], C: f64[M], D: f64[M]):
    for _t in range(T):
        for i in range(1, N - 1):
            B[i] = (A[i - 1] + A[i] + A[i + 1]) / 3.0
        for i in range(1, N - 1):
            A[i] = (B[i - 1] + B[i] + B[i + 1]) / 3.0
    for _u in range(T):
        for i in range(1, M - 1):
            D[i] = (C[i - 1] + C[i] + C[i + 1]) / 3.0
        for i in range(1, M - 1):
            C[i] = (D[i - 1] + D[i] + D[i + 1]) / 3.0


@poly.nest
def turn_both(A: f64[N, M], B: f64[M, N], C: f32[N, M], D: f32[M, N]):
    for i in range(N):
        for j in range(M):
            B[j, i] = A[i, j]
    for i in range(N):
        for j in range(M):
            D[j, i] = C[i, j]


@poly.nest
def turn_and_sweep(A: f64[N, M], B: f64[M, N], S: f64[N, N]):
    for i in range(N):
        for j in range(M):
            B[j, i] = A[i, j]
    for i in range(1, N - 1):
        for j in range(1, N - 1):
            S[i, j] = 0.3 * S[i - 1, j + 1] + 0.3 * S[i, j - 1]


@poly.nest
def all_three(A: f64[N], B: f64[N], C: f64[M, M], D: f64[M, M], S: f64[M, M]):
    for _t in range(T):
        for i in range(1, N - 1):
            B[i] = (A[i - 1] + A[i] + A[i + 1]) / 3.0
        for i in range(1, N - 1):
            A[i] = (B[i - 1] + B[i] + B[i + 1]) / 3.0
    for i in range(M):
        for j in range(M):
            D[j, i] = C[i, j]
    for i in range(1, M - 1):
        for j in range(1, M - 1):
            S[i, j] = 0.3 * S[i - 1, j + 1] + 0.3 * S[i, j - 1]


LINES, BESIDE = ("blocks", "of lines"), ("recurrences", "side by side")
SEVERAL: dict[poly.Nest, set[tuple[str, str]]] = {
    two_times: {("time tiles", "all")},
    turn_both: {LINES},
    turn_and_sweep: {LINES},  # and with 16 lanes, recurrences side by side
    all_three: {LINES, BESIDE},
}
"""Nests to which a rule applies in several places, or several rules, with the traits of their defaults."""


def each(some: Iterable[poly.Nest]) -> list[Any]:
    """Nests in turn for one thread and for two."""
    return [pytest.param(nest, 1 + at % 2, id=f"{nest.name}-{1 + at % 2}") for at, nest in enumerate(some)]


def stable(nest: poly.Nest) -> list[Any]:
    """Arguments; the matrix of a solve is far from singular."""
    made = arguments(nest, {})
    if nest.name == "solve_block":
        made[0] += 50 * np.eye(len(made[0]), dtype=made[0].dtype)
    return made


@pytest.mark.parametrize(("nest", "threads"), each(SIZES))
def test_the_default_is_a_point(nest: poly.Nest, threads: int) -> None:
    """On one thread at known sizes, on two at open ones."""
    given_nest = nest.with_sizes(SIZES[nest]) if threads == 1 else nest
    space = derived(given_nest, threads)
    expected = default_schedule(given_nest, Target.nominal(HOST, LARGE, threads))
    assert space.choice in space
    assert space.schedule(space.choice) == expected


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("nest", workloads(), ids=lambda nest: nest.name)
def test_the_default_has_neighbours(nest: poly.Nest, threads: int) -> None:
    """What is measured has its default in a structure with sizes, where there is anything to choose."""
    space = derived(nest, threads)
    assert space.schedule(space.choice) == default_schedule(nest, Target.nominal(HOST, LARGE, threads))
    if nest.name == "solve" and len(nest.arrays[1].shape) == 1:
        assert len(space) == 1, "a solve with one right side is a recurrence: there is nothing to choose"
    elif (nest.name, threads) not in (("jacobi", 2), ("heat", 1), ("heat", 2)):
        assert space.structures[space.choice.structure].knobs
    assert all(dict(structure.traits).get("order") != "by default" for structure in space.structures)


@pytest.mark.parametrize(("nest", "threads"), each(SMALL))
def test_structures_differ(nest: poly.Nest, threads: int) -> None:
    space = derived(nest.with_sizes(SMALL[nest]), threads, TINY)
    traits = [structure.traits for structure in space.structures]
    assert len(set(traits)) == len(traits)
    sample = space.sample(6, Random(1))
    made = [space.schedule(point) for point in sample]
    assert len({repr(schedule) for schedule in made}) == len(sample)


@pytest.mark.parametrize("nest", SMALL, ids=lambda nest: nest.name)
def test_knobs_ascend_within_the_loops(nest: poly.Nest) -> None:
    sizes = SMALL[nest]
    space = derived(nest.with_sizes(sizes))
    for structure in space.structures:
        for knob in structure.knobs:
            numbers = [value for value in knob.values if value is not None]
            assert numbers == sorted(set(numbers)), "each value once, in order"
            assert None not in knob.values[:-1]
        if dict(structure.traits).get("blocks") == "of loops":
            assert all(
                value is None or value < max(sizes.values()) for knob in structure.knobs for value in knob.values
            )


@pytest.mark.parametrize(("nest", "threads"), each(SEVERAL))
def test_several_rules_make_one_form(nest: poly.Nest, threads: int) -> None:
    """Where more than one rule applies the default is still a point, with the sizes of each rule open."""
    caches = TINY if nest is two_times else LARGE
    target = Target.nominal(HOST, caches, threads)
    space = derived(nest, threads, caches)
    chosen = space.structures[space.choice.structure]
    assert space.schedule(space.choice) == default_schedule(nest, target)
    assert SEVERAL[nest] <= {(name.split(" of ")[0], value) for name, value in chosen.traits}
    known = {"N": 1500, "M": 1380, "T": 20} if nest is two_times else {"N": 150, "M": 138, "T": 5}
    fixed = nest.with_sizes({size: known[size] for size in nest.sizes})
    space = derived(fixed, threads, TINY)
    structure = space.structures[space.choice.structure]
    assert len(structure.knobs) > 1
    for at in Random(1).sample(list(structure.points()), 2):
        ours, expected = stable(fixed), stable(fixed)
        poly.compile(fixed, schedule=structure.schedule(structure.values(at)), threads=threads)(*ours)
        fixed.reference(*expected)
        for our, their in zip(ours, expected, strict=True):
            np.testing.assert_allclose(our, their, rtol=1e-5 if our.dtype == np.float32 else 1e-9)


@pytest.mark.parametrize(("nest", "threads"), each([*SMALL, *SEVERAL]))
def test_a_form_makes_what_was_tried(nest: poly.Nest, threads: int) -> None:
    """The schedule that stands for a form, its cost and its legality is that of its usual values."""
    target = Target.nominal(HOST, TINY, threads)
    forms = [*all_forms(nest, target, heaviest_product(nest, target)), default_form(nest, target)]
    assert all(form.make(dict(form.usual)) == form.tried for form in forms)
    assert all(form.allows(dict(form.usual)) for form in forms)
    assert all(len(form.at()) == len(form.knobs) == len({knob.name for knob in form.knobs}) for form in forms)


def test_the_default_derives_no_other_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """poly.compile pays for what it weighs alone: no blocks of loops are tried, no solve is made twice."""

    def other(*args: object) -> Any:
        raise AssertionError("this is no part of the default")

    for name in ("blocks.blocks", "lanes.unrolled", "time_tiles.time_tiles", "sharing.sharings"):
        monkeypatch.setattr(f"poly.autoschedule.rules.{name}", other)
    for nest in (jacobi_2d, transpose, seidel, solve_block):
        assert default_schedule(nest, Target.nominal(HOST, LARGE, 2)).steps


def test_it_is_the_same_each_time() -> None:
    nest = jacobi_2d.with_sizes({"N": 300, "T": 20})
    one, other = derived.__wrapped__(nest, 2, TINY), derived.__wrapped__(nest, 2, TINY)
    assert [(s.traits, s.knobs) for s in one.structures] == [(s.traits, s.knobs) for s in other.structures]
    assert one.choice == other.choice
    assert list(one) == list(other)
    assert [one.predict(p).seconds for p in one] == [other.predict(p).seconds for p in other]


@pytest.mark.parametrize("nest", list(SMALL)[::2], ids=lambda nest: nest.name)
def test_points_are_read_again(nest: poly.Nest) -> None:
    """A record keeps a schedule as text: each step is legal where it is taken, on the nest that was given."""
    known = nest.with_sizes(SMALL[nest])
    space = derived(known, 2, TINY)
    for number, structure in enumerate(space.structures):
        made = space.schedule(Point(number, next(structure.points())))
        assert Schedule.from_json(known, made.to_json()) == made


@pytest.mark.parametrize("nest", SMALL, ids=lambda nest: nest.name)
def test_points_compute_the_same(nest: poly.Nest) -> None:
    """Two points of each space, drawn among those that are not the loops as written."""
    known = nest.with_sizes(SMALL[nest])
    space = derived(known, 2, TINY)
    points = [point for point in space if len(space.structures[point.structure].traits) > 1]
    for point in Random(nest.name).sample(points, 2):
        ours, expected = stable(known), stable(known)
        poly.compile(known, schedule=space.schedule(point), threads=2)(*ours)
        known.reference(*expected)
        for our, their in zip(ours, expected, strict=True):
            if isinstance(our, np.ndarray):
                np.testing.assert_allclose(our, their, rtol=1e-4 if our.dtype == np.float32 else 1e-9)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 6, 7])
def test_register_tiles_of_any_height(rows: int) -> None:
    """Seven pixels in a row, of which the outer taps leave six: some tiles are empty for them."""
    space = derived(padded.with_sizes({"P": 7, "Q": 7, "C": 32, "F": 32}))
    number = next(n for n, s in enumerate(space.structures) if dict(s.traits).get("columns") == "between")
    point = space.nearest(number, {"rows": rows, "vectors": 1})
    assert point is not None and space.values(point)["rows"] == rows
    assert f"gemm_{HOST.name}_{rows}x" in repr(space.schedule(point))


def test_work_without_end_leaves_structures_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("poly.autoschedule.derive.AFFORDABLE", 1)
    space = derived(transpose.with_sizes({"M": 2000, "N": 2000}))
    assert space.schedule(space.choice) == default_schedule(space.nest, Target.nominal(HOST, LARGE, 1))


def test_a_point_that_is_none_is_refused() -> None:
    space = derived(jacobi_2d.with_sizes({"N": 300, "T": 20}), caches=TINY)
    structure = next(s for s in space.structures if dict(s.traits).get("time tiles") == "rows")
    with pytest.raises(ScheduleError, match="are illegal for this structure"):
        structure.schedule({knob.name: 0 for knob in structure.knobs})


def test_a_space_is_pickled() -> None:
    """With its sizes; its points mean the same schedules."""
    space = poly.space(transpose, N=40)
    again = pickle.loads(pickle.dumps(space))
    assert (again.choice, again.sizes, list(again)) == (space.choice, space.sizes, list(space))
    assert again.schedule(again.choice) == space.schedule(space.choice)
