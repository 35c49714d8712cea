"""The default schedule is the form that the model expects to be the fastest, with the loops as written among them."""

from __future__ import annotations

import pytest
from machines import LARGE

import poly
from microkernels.isa import ISAS
from poly import f64
from poly.autoschedule.default import default_form, expectation
from poly.model.core import Target
from poly.model.schedules import ScheduleModel
from poly.model.traffic import Traffic
from poly.schedules.schedule import schedule

TARGET = Target.nominal(ISAS["avx512"], LARGE, 1)


@poly.nest
def short_rows(A: f64[20000, 5], B: f64[20000, 5], d: f64[20000]):
    """Each sweep goes down the columns of rows that fit in a line."""
    for x in range(1, 4):
        for y in range(1, 19999):
            d[y] = A[y + 1, x] - A[y - 1, x]
            B[y, x] = A[y, x] + 0.5 * d[y]


@poly.nest
def recurrences(A: f64[500, 500]):
    for i in range(1, 500):
        for j in range(1, 500):
            A[i, j] = A[i, j - 1] * 0.5 + A[i - 1, j]


@poly.nest
def before_a_recurrence(a: f64[30000], b: f64[30000], c: f64[30000]):
    for i in range(1, 30000):
        a[i] = sqrt(c[i] + 2.0) / (c[i] + 1.0) + 1.0 / sqrt(c[i])  # noqa: F821
        b[i] = b[i - 1] * 0.5 + a[i]


@poly.nest
def hidden_behind_a_recurrence(a: f64[30000], b: f64[30000], c: f64[30000]):
    """The recurrence takes as long as all of an iteration."""
    for i in range(1, 30000):
        a[i] = c[i] + 1.0
        b[i] = a[i] / (b[i - 1] + 2.0)


CHOSEN = {
    short_rows: ("order", "contiguous"),
    recurrences: ("recurrences", "side by side"),
    before_a_recurrence: ("bodies", "in sections"),
    hidden_behind_a_recurrence: ("order", "as written"),
}


@pytest.mark.parametrize("nest", CHOSEN, ids=lambda nest: nest.name)
def test_the_model_chooses(nest: poly.Function) -> None:
    form = default_form(nest, TARGET)
    assert form.traits[-1] == CHOSEN[nest]
    written = expectation(schedule(nest), TARGET).seconds
    assert expectation(form.tried, TARGET).seconds <= written


@poly.nest
def columns(A: f64[256, 256]):
    for i in range(256):
        for j in range(1, 256):
            A[j, i] = A[j - 1, i] * 0.5


def test_the_lines_of_a_skewed_block_are_those_of_its_box() -> None:
    """A block of eight columns touches one line, or two, in each row, although its diagonals jump from line to line."""
    made = schedule(columns).skew("j", by="i", factor=2).split(i=8).order("i_tile j i")
    form = ScheduleModel(made, {}, TARGET).form({})
    lines = max(touched.lines for touched in Traffic(form).whole.below[0].part.touched.values()) / 64
    assert lines <= 2 * 256
