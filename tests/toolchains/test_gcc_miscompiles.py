"""Nests that gcc 12 has miscompiled, built as users build them: most property tests are not optimised."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from headers import GCC, at_any_level, build, header, implementation, run

import poly
from poly import f32, f64

M, N = poly.sizes("M N")


@poly.nest
def pairs_swapped(x: f32[2 * N], s: f32[1]):
    for i in range(N):
        s[0] += x[2 * i + 1]
        s[0] += x[2 * i]


@poly.nest
def pairs_in_one_sum(x: f32[2 * N], s: f32[1]):
    for i in range(N):
        s[0] = s[0] + x[2 * i + 1] + x[2 * i]


@poly.nest
def fours_backward(x: f32[4 * N], s: f32[1]):
    for i in range(N):
        for j in range(3, -1, -1):
            s[0] += x[4 * i + j]


@poly.nest
def fours_from_a_local(x: f32[4 * N], s: f32[1]):
    total: f32 = 0
    for i in range(N):
        for j in range(4):
            total += 2 * x[4 * i + 3 - j]
    s[0] = total


@poly.nest
def fours_over_threes(x: f32[4 * N], s: f32[3]):
    for i in range(N):
        for j in range(2):
            for k in range(2):
                s[j + k] -= x[4 * i + 2 * j - k + 1]


@pytest.mark.parametrize("target", ["c", "c:portable"])
@pytest.mark.parametrize(
    "nest",
    [pairs_swapped, pairs_in_one_sum, fours_backward, fours_from_a_local, fours_over_threes],
    ids=lambda n: n.name,
)
def test_sums_that_gcc_takes_into_vectors_have_each_term_once(nest: poly.Function, target: str) -> None:
    """gcc 12 adds terms that lie in memory in another order than in the loop, and forgets to set them right.

    All sums are exact, so an order of their own would not show.
    """
    for size in (1, 2, 5, 8):
        x = (
            np.float32(2.0) ** np.arange(4 * size if nest.name.startswith("fours") else 2 * size, dtype=np.float32)
            % 8191
        )
        for schedule in (None, poly.schedule(nest)):
            s, expected = np.zeros(3 if nest is fours_over_threes else 1, np.float32), np.zeros(3, np.float32)
            expected = expected[: len(s)]
            nest.reference(x, expected)
            poly.compile(nest, schedule=schedule, target=target, records=False)(x, s)
            np.testing.assert_array_equal(s, expected)


@poly.nest
def set_and_added(x: f64[4, N + 1, 2], y: f64[N + 2]):
    for i in range(2):
        for j in range(N):
            y[i + j] = 0.0
            for k in range(4):
                y[i + j] += x[k, j, i]


@poly.nest
def set_twice(x: f64[4, N + 1, 2], y: f64[N + 2]):
    for i in range(2):
        for j in range(N):
            y[i + j] = x[0, j, i]
            y[i + j] = x[1, j, i]


@poly.nest
def set_again_and_again(x: f64[4, N + 1, 2], y: f64[N + 2]):
    for j in range(N):
        for i in range(2):
            for k in range(4):
                y[i + j] = x[k, j, i] * 2


@poly.nest
def set_by_diagonals(x: f64[4, N + 1, 2], y: f64[N + 2]):
    for i in range(2):
        for j in range(N):
            y[i + j] = x[0, j, i] * 2


@poly.nest
def set_by_moving_rows(x: f64[4, N + 1, 2], y: f64[N + 2]):
    for i in range(2):
        for e in range(i, N + i):
            y[e] = x[0, e - i, i]


@pytest.mark.parametrize(
    "nest",
    [set_and_added, set_twice, set_again_and_again, set_by_diagonals, set_by_moving_rows],
    ids=lambda n: n.name,
)
def test_elements_that_iterations_write_in_turn_keep_the_last_value(nest: poly.Function) -> None:
    """gcc 12 exchanges such loops, and takes iterations of the outer one as lanes."""
    for size in (2, 11):
        x = np.arange(8.0 * (size + 1)).reshape(4, size + 1, 2) ** 2 % 97
        for known in ({}, {"N": size}):
            fixed = nest.with_sizes(known)
            for schedule in (None, poly.schedule(fixed)):
                y, expected = np.zeros(size + 2), np.zeros(size + 2)
                nest.reference(x, expected)
                poly.compile(fixed, schedule=schedule, target="c:portable", records=False)(x, y)
                np.testing.assert_array_equal(y, expected)


@poly.nest
def last_greatest(x: f64[M, N], y: f64[M]):
    for i in range(M):
        most: f64 = x[i, 0]
        for j in range(1, N):
            most = most if most >= x[i, j] else x[i, j]
        y[i] = most


@poly.nest
def discounted(x: f64[M, N], y: f64[M]):
    for i in range(M):
        for j in range(N):
            y[i] = max(x[i, j], y[i] - 1)


@pytest.mark.parametrize(("nest", "marked"), [(last_greatest, False), (discounted, True), (pairs_in_one_sum, True)])
def test_only_sums_are_kept_from_gcc(nest: poly.Function, marked: bool) -> None:
    """gcc adds the terms of a sum in another order, and has no such way with a choice."""
    kernel = poly.compile(nest, schedule=poly.schedule(nest), records=False)
    assert ("POLY_IN_ORDER" in kernel.source) == marked


@pytest.mark.parametrize("nest", [last_greatest, discounted], ids=lambda n: n.name)
def test_a_choice_that_is_no_reduction_stays_in_order(nest: poly.Function) -> None:
    """The last NaN hides all before it."""
    x = np.random.default_rng(5).integers(-2, 3, (40, 37)) / 2.0
    x[1::3, 7], x[::4, 20], x[2, -1] = np.nan, np.nan, np.nan
    expected, y = np.zeros(40), np.zeros(40)
    nest.reference(x, expected)
    for schedule in (None, poly.schedule(nest)):
        for target in ("c", "c:portable"):
            y[:] = 0
            poly.compile(nest, schedule=schedule, target=target, records=False)(x, y)
            np.testing.assert_array_equal(y, expected)
            np.testing.assert_array_equal(np.signbit(y), np.signbit(expected))


@pytest.mark.parametrize("level", ["-O2", "-O3"])
def test_headers_keep_the_last_value_at_every_level(level: str, tmp_path: Path) -> None:
    """Without gcc's interchange and distribution of loops, which only flags of our own builds had left out."""
    path = header(tmp_path, set_by_diagonals, set_by_moving_rows, name="turns", isas=["portable"], threads="none")
    assert '"no-tree-loop-distribution", "no-loop-interchange"' in path.read_text()
    at_any_level(path)
    binary = build(GCC, implementation("turns", "SELFTEST"), tmp_path, level)
    assert run(GCC, binary, "--quick").endswith("\nPASS\n")
