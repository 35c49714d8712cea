"""Accumulating in an array's element in place of a local."""

from __future__ import annotations

import numpy as np
import pytest
from doc_nests import lower, matmul

import poly
from poly import f32, f64
from poly.errors import ScheduleError
from poly.ir.reference import reference
from poly.schedules.schedule import Schedule

M, N, T = poly.sizes("M N T")


@poly.nest
def from_zero(A: f64[N, M], B: f64[M, N], C: f64[N, N]):
    for i in range(N):
        for j in range(N):
            acc = 0.0
            for k in range(M):
                acc += A[i, k] * B[k, j]
            C[j, i] = acc


@poly.nest
def backwards(L: f64[N, N], x: f64[N]):
    for i in range(N - 1, -1, -1):
        w = x[i]
        for j in range(i + 1, N):
            w -= L[i, j] * x[j]
        x[i] = w / L[i, i]


@poly.nest
def read_between(A: f64[N, N], B: f64[N, N], x: f64[N]):
    for i in range(N):
        w = x[i]
        for j in range(N):
            w += A[i, j]
            B[i, j] = w * x[i]
        x[i] = w


@poly.nest
def neighbour_read_between(A: f64[N, N], x: f64[N]):
    for i in range(N):
        w = x[i]
        for j in range(N):
            w += A[i, j] * x[j]
        x[i] = w


@poly.nest
def stored_in_part(A: f64[N, N], x: f64[N]):
    for i in range(N):
        w = x[i]
        for j in range(N):
            w += A[i, j]
        if i >= 2:
            x[i] = w


@poly.nest
def never_stored(A: f64[N, N], x: f64[N], y: f64[N]):
    for i in range(N):
        w = x[i]
        for j in range(N):
            w += A[i, j]
        y[i] = 2.0 * w


@poly.nest
def all_copies(x: f64[N]):
    for i in range(N):
        w = x[i]
        x[i] = w


@poly.nest
def narrower(A: f64[N, N], x: f32[N]):
    for i in range(N):
        w: f64 = 0.0
        for j in range(N):
            w += A[i, j]
        x[i] = f32(w)


@poly.nest
def in_time(A: f64[N, N], x: f64[N]):
    for _t in range(T):
        for i in range(1, N):
            w = x[i]
            for j in range(i):
                w -= A[i, j] * x[j]
            x[i] = w


@poly.nest
def copied_in_time(A: f64[N, N], x: f64[N]):
    for _t in range(T):
        for i in range(N):
            w = x[i]
            for j in range(i):
                w -= A[i, j] * x[j]
            x[i] = w


@poly.nest
def ahead(A: f64[N, N], x: f64[N]):
    for i in range(N):
        w = x[i]
        for j in range(i + 1, N):
            w += A[i, j] * x[j]
        x[i] = w


@poly.nest
def looked_up(A: f64[N, N], x: f64[N], idx: poly.i32[N]):
    for i in range(N):
        w = x[i]
        for j in range(N):
            w += A[i, idx[j]]
        x[i] = w


@poly.nest
def one_for_all(A: f64[N, N], x: f64[N]):
    w = 0.0
    for i in range(N):
        for j in range(N):
            w += A[i, j]
        x[i] = w


def computed(nest: poly.Nest, made: Schedule, sizes: dict[str, int]) -> None:
    """A schedule computes what the nest's statements do; arrays that are only written begin as NaN."""
    rng = np.random.default_rng(7)
    read = {load.array for s in nest.statements for load in s.reads}
    shapes = {a.name: tuple(e.evaluate(sizes) for e in a.shape) for a in nest.arguments}
    found = [rng.random(shape) + 0.5 if name in read else np.full(shape, np.nan) for name, shape in shapes.items()]
    expected = [array.copy() for array in found]
    known = {name for array in nest.arguments for extent in array.shape for name in extent.names}
    given = {name: value for name, value in sizes.items() if name not in known}
    poly.compile(nest, schedule=made, target="c:portable", threads=1)(*found, **given)
    reference(nest.with_sizes(sizes), tuple(expected))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize(
    ("nest", "local", "array", "left"),
    [(lower, "w", "B", 2), (from_zero, "acc", "C", 2), (backwards, "w", "x", 2), (in_time, "w", "x", 1)],
)
def test_the_array_is_left_with_the_same_values(nest: poly.Nest, local: str, array: str, left: int) -> None:
    made = poly.schedule(nest).accumulate(local, array)
    assert len(made.nest.statements) == left
    assert all(local != load.array for s in made.nest.statements for load in (s.target, *s.reads))
    assert made.on(made.nest) == made == made.on(nest)
    assert Schedule.from_json(nest, made.to_json()) == made
    for size in (1, 7):
        computed(nest, made, {name: size + at for at, name in enumerate(nest.sizes)})


def test_the_local_takes_no_memory() -> None:
    known = from_zero.with_sizes({"N": 300, "M": 300})
    made = poly.schedule(known).accumulate("acc", "C")
    assert poly.compile(known, schedule=made, target="c:portable", threads=1).workspace_bytes == 0


@poly.nest
def longer(A: f64[N, N], y: f64[N, N]):
    for i in range(N):
        w: f64[N + 2]
        for j in range(N, N + 2):
            w[j] = 0.5  # noqa: F821
        for j in range(N):
            w[j] = A[i, j] + 1.0  # noqa: F821
        for j in range(N):
            y[i, j] = w[j]  # noqa: F821


@pytest.mark.parametrize(
    ("nest", "arguments", "message"),
    [
        (read_between, ("w", "x"), "S2 would read another value as x[i]"),
        (neighbour_read_between, ("w", "x"), "S1 would read another value as x[j]"),
        (stored_in_part, ("w", "x"), "other values would be left in x"),
        (never_stored, ("w", "x"), "other values would be left in x. Remedy: another array, or leave w as it is."),
        (never_stored, ("w", "A"), "no statement copies an element of A to w, or computes one from it"),
        (one_for_all, ("w", "x"), "no statement copies an element of x to w, or computes one from it"),
        (copied_in_time, ("w", "x"), "what S1 reads as x[j] passes through more than 4 copies"),
        (all_copies, ("w", "x"), "all statements are copies between the two"),
        (longer, ("w", "y"), "S0 would access y[i, j], which may be outside of y"),
        (narrower, ("w", "x"), "accumulate(w, x): w is f64, x is f32."),
        (looked_up, ("w", "x"), "accumulate(w, x): looked_up looks up indices."),
        (lower, ("B", "L"), "accumulate: lower has no local B. Locals: w."),
        (lower, ("w", "w"), "accumulate(w, w): w is no other array. Arrays: L, B."),
        (matmul, ("w", "C"), "accumulate: matmul has no local w. Locals: none."),
    ],
)
def test_refusals(nest: poly.Nest, arguments: tuple[str, str], message: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        poly.schedule(nest).accumulate(*arguments)
    assert message in str(caught.value)


def test_a_packed_array_is_refused() -> None:
    with pytest.raises(ScheduleError, match="one of them is packed"):
        poly.schedule(from_zero).distribute("i", behind="S1").pack("acc", at="i_2").accumulate("acc", "C")


def test_an_order_that_only_the_local_allows_is_refused() -> None:
    """Where all stores follow all sums, these have any order; in the array, each needs the next ones' old elements."""
    apart = poly.schedule(ahead).distribute("i", behind="S1").reverse("i")
    with pytest.raises(ScheduleError, match=r"accumulate\(w, x\) is illegal"):
        apart.accumulate("w", "x")


@pytest.mark.parametrize(("first", "second"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_an_element_of_a_shifted_place(first: int, second: int) -> None:
    @poly.nest
    def shifted(A: f64[N, N], x: f64[N + 1]):
        for i in range(N):
            w = x[i + first]
            for j in range(N):
                w += A[i, j]
            x[i + second] = w

    made = poly.schedule(shifted).accumulate("w", "x")
    assert len(made.nest.statements) == (1 if first == second else 2), "the load or the store stays, as a move"
    computed(shifted, made, {"N": 5})
