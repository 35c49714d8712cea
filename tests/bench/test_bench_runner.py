"""The runner on contenders of our own making: who is wrong, missing, takes part. Nothing is timed in earnest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from benchmarks.arrays import Array
from benchmarks.case import Case
from benchmarks.contender import Contender, Failed, NotInstalled
from benchmarks.problems.matmul import Matmul
from benchmarks.report import ResultLine, document, exit_status, means, notes, plain, rich_table
from benchmarks.runner import Result, Rounds, measure, relative_error, tolerance
from benchmarks.workloads import nests
from microkernels.dtypes import f32

BUDGET = Rounds(seconds=0, rounds=(3, 3), sample=0)
FIELDS = {
    "workload", "size", "dtype", "target", "threads", "gflops", "peak_fraction", "seconds", "peers",
    "ratio_to_best_peer", "trials", "tune_seconds", "max_error",
}  # fmt: skip
"""What `--json` promises of a row."""


@dataclass(frozen=True)
class Fake:
    """An entrant whose calls take a time of our choice, and whose result passes through `spoil`."""

    name: str
    seconds: float = 1.0
    spoil: Callable[[Array], Array] = lambda result: result
    in_c: bool = True
    error: Exception | None = None

    def enter(self, case: Case, threads: int) -> Contender | None:
        if self.error:
            raise self.error
        a, b, c = case.problem.arrays(case.dtype)
        result = self.spoil(c + a @ b)
        return Contender(self.name, "1.0", "fake", lambda times: self.seconds * times, lambda: result, self.in_c)


@dataclass(frozen=True)
class Abstainer:
    """Has nothing for the case."""

    name: str = "abstainer"

    def enter(self, case: Case, threads: int) -> Contender | None:
        return None


def case(size: int = 8) -> Case:
    return Case("gemm", str(size), f32, Matmul(size, size, size), lambda: nests.make("gemm_nn", f32))


def run(*entrants: Fake | Abstainer, peak: float = 1e-6) -> Result:
    return measure(case(), 1, entrants, lambda: peak, BUDGET)


def line(*entrants: Fake | Abstainer) -> ResultLine:
    return ResultLine(run(*entrants), bound=1e-6, ours="poly", target="c")


def with_one_wrong_element(result: Array) -> Array:
    result[3, 4] += 0.01
    return result


def with_a_nan(result: Array) -> Array:
    result[0, 0] = np.nan
    return result


def test_a_right_result_passes_and_is_timed() -> None:
    result = run(Fake("poly", 1.0), Fake("peer", 2.0))
    assert not result.wrong
    assert result.ratio("poly").median == pytest.approx(2)
    assert len(result.peaks) == 3


@pytest.mark.parametrize("spoil", [with_one_wrong_element, with_a_nan, lambda result: result[:-1]])
def test_a_wrong_result_of_ours_makes_the_exit_status_one(spoil: Callable[[Array], Array]) -> None:
    spoiled = line(Fake("poly", spoil=spoil), Fake("peer"))
    assert exit_status([spoiled]) == 1
    assert any("WRONG RESULT of poly" in note for note in notes([spoiled]))


def test_a_wrong_peer_is_told_and_is_not_the_best() -> None:
    mixed = line(Fake("poly", 2.0), Fake("wrong", 1.0, with_a_nan), Fake("right", 4.0))
    assert exit_status([mixed]) == 0
    assert mixed.ratio == pytest.approx(2)
    assert any("WRONG RESULT of wrong" in note for note in notes([mixed]))


def test_a_missing_peer_is_skipped_and_named() -> None:
    skipped = line(Fake("poly"), Fake("mkl", error=NotInstalled("the PyPI package mkl")))
    assert "mkl: not installed (the PyPI package mkl): skipped" in list(notes([skipped]))
    assert exit_status([skipped]) == 0
    assert skipped.row()["peers"] == {}


def test_a_failure_of_ours_makes_the_exit_status_one() -> None:
    failed = line(Fake("poly", error=Failed("SpecError: no")), Fake("peer"))
    assert exit_status([failed]) == 1
    assert failed.row()["gflops"] is None
    assert "gemm 8 f32: poly failed: SpecError: no" in list(notes([failed]))


def test_who_has_nothing_for_a_case_leaves_no_trace() -> None:
    result = run(Fake("poly"), Abstainer())
    assert [timing.name for timing in result.timings] == ["poly"]
    assert not result.missing and not result.failed


def test_short_work_is_not_timed_from_python() -> None:
    entrants = (Fake("poly", 1e-6), Fake("slow loop", 1e-6, in_c=False))
    assert [timing.name for timing in run(*entrants, peak=100.0).timings] == ["poly"]
    assert [timing.name for timing in run(*entrants, peak=1e-6).timings] == ["poly", "slow loop"]


def test_the_tolerance_grows_with_the_reduction() -> None:
    assert tolerance(case(400)) == pytest.approx(2 * tolerance(case(99)), rel=0.01)


def test_an_error_is_relative_to_the_largest_element() -> None:
    expected = np.array([0.0, 4.0, -8.0])
    assert relative_error(np.array([0.0, 4.0, -7.0]), expected) == pytest.approx(1 / 8)
    assert relative_error(np.array([0.0, 4.0]), expected) == np.inf


def test_a_row_has_exactly_the_promised_fields() -> None:
    made = document([line(Fake("poly", 1.0), Fake("peer", 2.0))], {"cpu": "some"})
    (row,) = made["rows"]
    assert made["machine"] == {"cpu": "some"}
    assert set(row) == FIELDS
    assert row["peers"]["peer"] == {"gflops": pytest.approx(512e-9), "version": "1.0", "config": "fake"}
    assert row["gflops"] == pytest.approx(1024e-9)
    assert row["peak_fraction"] == pytest.approx(1.024)
    assert row["ratio_to_best_peer"] == pytest.approx(2)


def test_the_table_has_a_line_for_each_case_and_aligned_columns() -> None:
    lines = [line(Fake("poly", 1.0), Fake("peer", 2.0)), line(Fake("poly", 3.0))]
    head, *rows = plain(lines)
    assert len(rows) == 2
    assert head.split()[:4] == ["workload", "size", "dtype", "threads"]
    assert "peer" in rows[0] and "2.00" in rows[0]
    assert rows[1].split()[-4:] == ["-"] * 4
    assert rich_table(lines).row_count == 3


def test_the_means_name_each_peer() -> None:
    lines = [line(Fake("poly", 1.0), Fake("peer", 2.0)), line(Fake("poly", 1.0), Fake("peer", 8.0))]
    assert any("4.00 of peer" in text for text in means(lines))


def test_samples_of_all_rounds_are_kept() -> None:
    result = run(Fake("poly", 0.5), Fake("peer", 1.0))
    assert all(timing.samples == (timing.seconds.median,) * 3 for timing in result.timings)
