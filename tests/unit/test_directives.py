"""Directives of a text: where gcc must not make branches of choices in lanes, and calls of copies."""

import poly
from codegen.directives import CHOSEN, COPIED
from poly import f64

N = poly.sizes("N")


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
def horner(c: f64[N], x: f64[N], y: f64[N]):
    for i in range(N):
        s = 0.0
        for k in range(N):
            s = s * x[i] + c[k]
        y[i] = s


def test_a_register_tile_is_filled_and_copied_by_vectors() -> None:
    source = poly.compile(horner, target="c:avx2", records=False).source
    assert COPIED in source and COPIED not in poly.compile(sum_above, records=False).source
    assert "store_whole_f64x4(&s[0], &s_lanes.all);" in source
    assert "for (int64_t i = 4*i_tile; i < 4*i_tile + 4; i += 1)" in source
