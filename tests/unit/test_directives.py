"""Directives of a text: where gcc must not make branches of choices in lanes, and calls of copies."""

import poly
from codegen.directives import CHOSEN, COPIED
from poly import f64

M, N = poly.sizes("M N")


@poly.nest
def sums_above(x: f64[N], t: f64, s: f64[2]):
    for i in range(N):
        if x[i] > t:
            s[0] += x[i]
            s[1] += 1.0


@poly.nest
def sum_above(x: f64[N], t: f64, s: f64[1]):
    for i in range(N):
        if x[i] > t:
            s[0] += x[i]


def test_lanes_that_choose_twice_by_one_condition_stay_without_branches() -> None:
    assert CHOSEN in poly.compile(sums_above, records=False).source
    assert CHOSEN not in poly.compile(sum_above, records=False).source


@poly.nest
def largest(x: f64[M], y: f64[N], most: f64[M]):
    for i in range(M):
        for j in range(N):
            most[i] = max(most[i], x[i] * y[j])


def test_a_register_tile_is_filled_and_copied_by_vectors() -> None:
    source = poly.compile(largest, target="c:avx2", threads=1, records=False).source
    assert COPIED in source and COPIED not in poly.compile(sum_above, records=False).source
    assert "store_whole_f64x4(&most[4*i_tile], &most_lanes.all);" in source
