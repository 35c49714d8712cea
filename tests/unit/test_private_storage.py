"""Arrays of which iterations have their own copies, or whose dimensions have another order: what is left in them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from doc_nests import norms, reused, solve

import poly
from microkernels.isa import PORTABLE
from poly import f64
from poly.autoschedule.rules.relayout import relaid
from poly.errors import ScheduleError
from poly.ir.tree import Micro, bands, walk
from poly.model import Caches
from poly.model.core import Target
from poly.schedules.schedule import Schedule

N = poly.sizes("N")


@poly.nest
def triangles(A: f64[N, N], t: f64[N], s: f64[N]):
    """Other iterations write an element of t last than one of s."""
    for k in range(3):
        for i in range(N):
            for j in range(N - i):
                t[j] = 2.0 * A[i, j]
                s[j + i] = t[j] + k
            for j in range(N - i):
                A[i, j] = t[N - i - 1 - j] + s[j + i]


@poly.nest
def backwards(A: f64[N, N], t: f64[N + 1]):
    for i in range(N - 1, -1, -1):
        for j in range(0, N + 1, 2):
            t[j] = 0.5 + i
        for j in range(0, N, 2):
            A[i, j] = t[j]
    for j in range(N):
        A[0, j] = t[j]


@poly.nest
def products(A: f64[N, N, N], B: f64[N, N], row: f64[N]):
    for r in range(N):
        for q in range(N):
            for p in range(N):
                row[p] = 0.0
                for s in range(N):
                    row[p] += A[r, q, s] * B[s, p]
            for p in range(N):
                A[r, q, p] = row[p]


@poly.nest
def in_part(A: f64[N, N], t: f64[N]):
    for i in range(N):
        for j in range(i):
            t[j] = A[i, j]
        for j in range(N):
            A[i, j] += t[j]


@poly.nest
def orthogonal(A: f64[N + 2, N], R: f64[N, N], Q: f64[N + 2, N]):
    for k in range(N):
        nrm = 0.0
        for i in range(N + 2):
            nrm += A[i, k] * A[i, k]
        R[k, k] = math.sqrt(nrm)
        for i in range(N + 2):
            Q[i, k] = A[i, k] / R[k, k]
        for j in range(k + 1, N):
            R[k, j] = 0.0
            for i in range(N + 2):
                R[k, j] += Q[i, k] * A[i, j]
            for i in range(N + 2):
                A[i, j] = A[i, j] - Q[i, k] * R[k, j]


@poly.nest
def looked_up(A: f64[N, N], t: f64[N], at: poly.i32[N]):
    for i in range(N):
        for j in range(N):
            t[j] = A[i, at[j]]


def computed(nest: poly.Nest, made: Schedule, size: int) -> None:
    """A schedule computes what the loops as written do, and leaves the same values behind."""
    rng, shapes = np.random.default_rng(7), [a.shape for a in nest.arguments]
    sizes = dict.fromkeys(nest.sizes, size)
    found = [rng.random([extent.evaluate(sizes) for extent in shape]) for shape in shapes]
    found[0] += 9.0 * np.eye(*found[0].shape) if found[0].ndim == 2 else 0.0
    expected = [array.copy() for array in found]
    poly.compile(nest, schedule=made, target="c:portable", threads=2)(*found)
    nest.reference(*expected)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("nest", "array", "loops", "parallel"),
    [
        (reused, "t", ("i",), True),
        (triangles, "t", ("k", "i"), False),
        (triangles, "t", ("i",), False),
        (triangles, "s", ("i",), False),
        (backwards, "t", ("i",), True),
        (products, "row", ("r", "q"), True),
        (products, "row", ("q",), False),
    ],
)
def test_the_array_is_left_with_the_same_values(
    nest: poly.Nest, array: str, loops: tuple[str, ...], parallel: bool
) -> None:
    made = poly.schedule(nest).privatize(array, *loops)
    assert made.on(made.nest) == made == made.on(nest)
    assert Schedule.from_json(nest, made.to_json()) == made
    shared = made.parallel(loops[0]) if parallel else made
    for size in (1, 7):
        computed(nest, shared, size)


def test_loops_that_take_turns_at_an_array_get_threads_and_a_microkernel() -> None:
    made = poly.compile(products.with_sizes({"N": 96}), target="c", threads=2, records=False).schedule
    assert "privatize('row', 'r', 'q')" in repr(made)
    assert any(isinstance(node, Micro) for node in walk(made.tree))
    assert any(band.parallel for band in bands(made.tree))


@pytest.mark.parametrize(("nest", "arrays"), [(norms, ("Q",)), (triangles, ("A",)), (orthogonal, ("A", "Q", "R"))])
def test_dimensions_in_another_order(nest: poly.Nest, arrays: tuple[str, ...]) -> None:
    made = poly.schedule(nest)
    for array in arrays:
        made = made.reorder_storage(array, 1, 0)
    assert made.on(made.nest) == made == made.on(nest)
    assert Schedule.from_json(nest, made.to_json()) == made
    for size in (1, 7):
        computed(nest, made, size)


@poly.nest
def vectors(A: f64[N, N], x: f64[N], y: f64[N], v: f64[N]):
    for i in range(1, N):
        for j in range(i + 1):
            x[j] -= A[i, j] * v[i]
            y[i] += A[i, j] * v[j]
    for i in range(N):
        v[i] = x[i]


@pytest.mark.parametrize("into", [None, "u"])
def test_blocks_of_a_loop_sum_apart(into: str | None) -> None:
    nest = vectors.with_sizes({"N": 40})
    made = poly.schedule(nest).rfactor("S0", into, i=16)
    assert made.on(made.nest) == made == made.on(nest)
    assert Schedule.from_json(nest, made.to_json()) == made
    shared = made.split(i=16).parallel("i_tile").vectorize("j")
    assert shared.on(nest) == shared
    computed(nest, shared, 40)


@pytest.mark.parametrize("size", [16, 64])
def test_an_iterator_counts_blocks(size: int) -> None:
    nest = vectors.with_sizes({"N": 40})
    made = poly.schedule(nest).distribute("j").split_iterator("S0", i=size).split_iterator("S1", j=size)
    assert "j_block" in made.nest.statement("S1").iterators and len(list(bands(made.tree))) == 4 + (size < 40)
    sums = made.rfactor("S1", j_block=1)
    for one in (made, sums):
        assert one.on(nest) == one and Schedule.from_json(nest, one.to_json()) == one
        computed(nest, one, 40)


def test_a_loop_that_counts_every_second_iteration_is_split() -> None:
    """Its index is the half of an iterator that is even, without rounding."""

    @poly.nest
    def every_second(x: f64[N]):
        for i in range(0, N, 2):
            x[i] += 1

    made = poly.schedule(every_second).split(i=2).split_iterator("S0", i=3)
    assert "i_block" in made.nest.statement("S0").iterators


def test_threads_have_sums_of_their_own() -> None:
    nest = vectors.with_sizes({"N": 1200})
    made = poly.compile(nest, target="c", threads=2, records=False).schedule
    assert "rfactor('S0', i=600)" in repr(made) and any(band.parallel for band in bands(made.tree))
    computed(nest, made, 1200)


@pytest.mark.parametrize(
    ("nest", "statement", "arguments", "message"),
    [
        (vectors.with_sizes({"N": 9}), "S2", {"i": 4}, r"S2, i=4\): it is no sum. Remedy: leave it as it is"),
        (vectors.with_sizes({"N": 9}), "S0", {"k": 4}, r"S0 has no iterator k. Iterators: i, j"),
        (vectors, "S0", {"i": 4}, r"how many iterations i has depends on sizes"),
        (solve.with_sizes({"N": 9}), "S0", {"j": 4}, r"its terms may read what it adds to"),
        (norms.with_sizes({"M": 9}), "S1", {"i": 4}, r"there is no statement S1. Statements: S0"),
        (norms.with_sizes({"M": 9}), "S0", {"i": 4, "into": "Q"}, r"there is Q already"),
        (products.with_sizes({"N": 9}), "S1", {"s": 4}, r"S0 accesses row in the loops around it, too"),
    ],
)
def test_sums_that_stay_together(nest: poly.Nest, statement: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        poly.schedule(nest).rfactor(statement, **arguments)


@pytest.mark.parametrize("threads", [1, 2])
def test_columns_are_contiguous_in_strips(threads: int) -> None:
    known = orthogonal.with_sizes({"N": 24})
    made = relaid(known, Target.nominal(PORTABLE, Caches(1024, 4096, 1 << 20), threads))
    assert made is not None and "j // 2" in repr(made) and "k // 8" in repr(made)
    assert {node.kernel.name for node in walk(made.tree) if isinstance(node, Micro)} == {"gemvt_portable"}
    assert any(band.parallel for band in bands(made.tree)) == (threads > 1)
    assert made.on(known) == made
    computed(known, made, 24)


@pytest.mark.parametrize(
    ("nest", "arguments", "message"),
    [
        (in_part, ("t", "i"), r"S1\[0, 0\] reads t\[j\] as it is before the loops \(with N = 1\)"),
        (solve, ("x", "i"), r"S0\[1, 0\] reads x\[i\] as it is before the loops"),
        (triangles, ("A", "i"), r"S0\[0, 0, 0\] reads A\[i, j\] as it is before the loops"),
        (triangles, ("t", "i", "k"), r"loops i, k are not inside one another, in this order"),
        (triangles, ("t", "i", "j"), r"S2 accesses it in loop i, not j"),
        (triangles, ("t",), r"privatize needs an array and loops"),
        (triangles, ("t", "x"), r"there is no loop x"),
        (triangles, ("u", "i"), r"there is no array u\. Arrays: A, t, s\."),
        (reused, ("A", "i"), r"no statement in loop i writes it"),
        (looked_up, ("t", "i"), r"looked_up looks up indices"),
    ],
)
def test_refusals(nest: poly.Nest, arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        poly.schedule(nest).privatize(*arguments)


def test_names_and_loops_that_changed_are_refused() -> None:
    with pytest.raises(ScheduleError, match=r"there is an array A already. Remedy: another name, into=…"):
        poly.schedule(reused).privatize("t", "i", into="A")
    with pytest.raises(ScheduleError, match=r"these loops are not as written any more. Remedy: privatize first"):
        poly.schedule(reused).tile(i=4).privatize("t", "i")
