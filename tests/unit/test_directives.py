"""Directives of a text: where gcc must not make branches of choices in lanes."""

import poly
from codegen.directives import CHOSEN
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
