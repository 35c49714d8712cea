"""How the tool that measures register tiles reads its samples, and tells quiet ones from busy ones."""

from __future__ import annotations

import pytest

from microkernels.catalogue import gemm
from microkernels.dtypes import f32
from microkernels.isa import host
from microkernels.speed import Sample, best_issue, busy, cell, flops, measured, neighbour_of, parsed, quiet, siblings


def test_rounds_are_read_as_columns() -> None:
    peak, columns = parsed("32.0\n16.0 12.0 11.5\n8.0 6.0 6.1\n31.0\n15.0 11.0 12.0\n9.0 5.0 12.0\n")
    assert peak == pytest.approx(32.25)
    assert columns == [[Sample(16, 11.5, 12), Sample(15, 11, 12)], [Sample(8, 6, 6.1), Sample(9, 5, 12)]]


def test_a_round_that_was_cut_off_is_no_table() -> None:
    with pytest.raises(ValueError, match="zip"):
        parsed("32.0\n16.0 12.0 11.5\n8.0 6.0 6.1\n31.0\n15.0 11.0 12.0\n")


def test_samples_between_quiet_and_busy_count_as_neither() -> None:
    samples = [Sample(30, 11.9, 12), Sample(20, 5.9, 6.1), Sample(10, 6, 12)]
    issue = best_issue([samples * 20])
    assert (issue, quiet(samples, issue), busy(samples, issue)) == (12, [30], [20])


def test_cells_have_quartiles_unless_samples_are_few() -> None:
    assert cell([float(speed) for speed in range(1, 12)], 12) == "25.0 50.0 75.0"
    assert cell([1.0] * 7, 12) == ""


def test_the_neighbour_is_the_other_thread_of_the_core() -> None:
    assert siblings("0-2,8\n") == {0, 1, 2, 8}
    assert siblings("5") == {5}
    assert neighbour_of(1 << 20, frozenset({3, 7})) == 3
    assert neighbour_of(1 << 20, frozenset()) is None


def test_the_program_samples_each_column_in_each_round() -> None:
    kernel = gemm(host(), f32, 4, 2)
    peak, columns = measured(host(), f32, [kernel], rounds=2)
    assert peak > 0
    assert [len(column) for column in columns] == [2] * len(flops(kernel))
