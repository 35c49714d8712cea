"""The runner on contenders of our own making: who is wrong, missing, takes part. Nothing is timed in earnest.

Where time matters, a fake clock stands still but for what contenders, probes and pauses take of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from benchmarks import runner
from benchmarks.arrays import Array
from benchmarks.case import Case
from benchmarks.contender import Contender, Failed, NotInstalled, Tuned
from benchmarks.issue import issue_rate
from benchmarks.problems.matmul import Matmul
from benchmarks.report import ResultLine, document, exit_status, means, notes, plain, rich_table
from benchmarks.runner import ATTEMPTS, AWAKE, SETTLE, Result, Rounds, measure, relative_error, tolerance
from benchmarks.workloads import nests
from microkernels.dtypes import f32
from poly.timing.load import MachineLoad

BUDGET = Rounds(seconds=0, rounds=(3, 3), sample=0)
FIELDS = {
    "workload", "size", "dtype", "target", "threads", "gflops", "peak_fraction", "seconds", "peers",
    "ratio_to_best_peer", "max_error", "right", "config", "samples", "peaks", "issues", "spread",
    "attempts", "reliable", "disturbed", "best_peer", "ratio_spread",
    "bound", "workspace", "built_seconds", "interval", "date", "load", "poly", "compiler", "host",
}  # fmt: skip
"""What `--json` promises of a row."""


def peak_of_one() -> float:
    """A peak in GFLOP/s."""
    return 1e-6


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
    peer = {"gflops": pytest.approx(512e-9), "version": "1.0", "config": "fake", "samples": [2.0] * 3, "right": True}
    assert row["peers"]["peer"] == {**peer, "max_error": pytest.approx(0, abs=1e-6)}
    assert (row["samples"], row["attempts"], row["reliable"]) == ([1.0] * 3, 1, True)
    assert row["gflops"] == pytest.approx(1024e-9)
    assert row["peak_fraction"] == pytest.approx(1.024)
    assert row["ratio_to_best_peer"] == pytest.approx(2)


def test_a_tuned_kernel_names_its_trials() -> None:
    made = line(Fake("poly"))
    timing = replace(made.result.timings[0], tuned=Tuned(12, 3.5))
    row = replace(made, result=replace(made.result, timings=(timing,))).row()
    assert (row["trials"], row["tune_seconds"]) == (12, 3.5)


def test_a_busy_machine_is_told_with_the_worst_case() -> None:
    quiet, busy = line(Fake("poly")), line(Fake("poly"))
    loads = [MachineLoad(1.0, 2, 0.5, others, 0.0) for others in (0.02, 0.6, 1.4)]
    lines = [replace(quiet, result=replace(busy.result, load=load)) for load in loads]
    (said,) = [note for note in notes(lines) if "busy" in note]
    assert said.startswith("the machine was busy: other processes used 1.4 of 2 CPUs")
    assert "busy in 2 of 3 cases" in said
    assert not [note for note in notes(lines[:1]) if "busy" in note]


def test_a_slow_contender_takes_part_in_the_first_rounds_only() -> None:
    budget = replace(BUDGET, rounds=(8, 8), patience=5.0)
    result = measure(
        case(), 1, [Fake("poly", 0.5), Fake("quick", 1.0), Fake("slow", 2.0), Fake("snail", 9.0)], peak_of_one, budget
    )
    assert [len(timing.samples) for timing in result.timings] == [8, 5, 2, 1]
    assert result.ratio_to(result.timings[2], result.timings[0]).median == pytest.approx(4)


def test_a_slow_peer_is_the_best_where_it_is_the_only_one() -> None:
    budget = replace(BUDGET, rounds=(8, 8), patience=5.0)
    result = measure(case(), 1, [Fake("poly", 0.5), Fake("slow", 2.0)], peak_of_one, budget)
    assert result.best_peer("poly").name == "slow" and result.ratio("poly").median == pytest.approx(4)


def test_rounds_end_when_the_medians_are_known() -> None:
    precise = replace(BUDGET, seconds=1e9, rounds=(6, 50), precise=0.01)
    assert len(measure(case(), 1, [Fake("poly"), Fake("peer")], peak_of_one, precise).peaks) == 6
    assert len(measure(case(), 1, [Fake("poly")], peak_of_one, replace(precise, precise=None)).peaks) == 50


def test_what_the_user_named_is_called_from_python_however_short_the_work_is() -> None:
    named = replace(BUDGET, always=frozenset({"mine"}))
    result = measure(case(), 1, [Fake("poly"), Fake("mine", in_c=False), Fake("other", in_c=False)], lambda: 1e6, named)
    assert [timing.name for timing in result.timings] == ["poly", "mine"]


def test_rounds_beside_a_busy_neighbour_are_told() -> None:
    quiet = replace(run(Fake("poly")), issues=(6.0, 6.0, 5.9, 8.0) + 20 * (6.0,))  # one probe met a change of the clock
    busy = replace(quiet, issues=(3.0, 6.0, 3.0))
    lines = [ResultLine(result, bound=1e-6, ours="poly", target="c") for result in (quiet, busy)]
    assert [row["disturbed"] for row in document(lines, {})["rows"]] == [0, pytest.approx(2 / 3)]
    (told,) = (note for note in notes(lines) if "neighbour" in note)
    assert "gemm 8 f32 (1 thread)" in told and "2 of 27 rounds" in told


def test_without_issue_rates_nothing_is_said_of_neighbours() -> None:
    shown = [line(Fake("poly"))]
    assert document(shown, {})["rows"][0]["disturbed"] is None
    assert not any("neighbour" in note for note in notes(shown))


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


@dataclass
class Clock:
    """A clock that passes as `spend` says; `log` has what happened, in order."""

    now: float = 0.0
    log: list[tuple[str, float]] = field(default_factory=list)

    def spend(self, what: str, seconds: float) -> float:
        self.now += seconds
        self.log.append((what, seconds))
        return seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(runner, "perf_counter", lambda: clock.now)
    monkeypatch.setattr(runner, "sleep", lambda seconds: clock.spend("sleep", seconds))
    return clock


@dataclass(frozen=True)
class Clocked:
    """An entrant whose calls take the seconds that `seconds` yields, of a clock."""

    name: str
    clock: Clock
    seconds: Iterator[float]

    def enter(self, case: Case, threads: int) -> Contender:
        a, b, c = case.problem.arrays(case.dtype)
        result = c + a @ b

        def run(times: int) -> float:
            return self.clock.spend(self.name, times * next(self.seconds))

        return Contender(self.name, "1.0", "fake", run, lambda: result)


def steady(clock: Clock, name: str, seconds: float = 1e-3) -> Clocked:
    return Clocked(name, clock, iter(lambda: seconds, None))


def phases(*lengths: tuple[int, Iterable[float]]) -> Iterator[float]:
    """The seconds of so many calls each, repeating a pattern."""
    for count, pattern in lengths:
        times = tuple(pattern)
        yield from (times[n % len(times)] for n in range(count))


def probe_of(clock: Clock) -> Callable[[], float]:
    def probe() -> float:
        clock.spend("probe", 1e-3)
        return 100.0

    return probe


def attempt(clock: Clock, *patterns: Iterable[float]) -> Result:
    """Ours, whose calls follow one pattern in each attempt, beside a steady peer.

    A call counts those that fill a sample; in each of three rounds, one warms up and one is timed.
    """
    lengths = [(1 + 2 * 3, pattern) for pattern in patterns]
    ours = Clocked("poly", clock, phases(*lengths))
    budget = Rounds(seconds=0, rounds=(3, 3), sample=1e-3)
    return measure(case(), 1, (ours, steady(clock, "peer", 2e-3)), probe_of(clock), budget)


CALM, WILD = (1e-3,), (1e-3, 1e-3, 1e-3, 1e-3, 5e-3)


def test_a_steady_case_is_measured_once(clock: Clock) -> None:
    result = attempt(clock, CALM)
    assert (result.attempts, result.reliable("poly"), len(result.peaks)) == (1, True, 3)


def test_an_unsteady_case_is_measured_again_until_it_is_steady(clock: Clock) -> None:
    result = attempt(clock, WILD, CALM)
    assert (result.attempts, result.reliable("poly")) == (2, True)
    assert result.timing("poly").samples == pytest.approx((1e-3,) * 3)


def test_what_stays_unsteady_is_reported_once_and_marked(clock: Clock) -> None:
    result = attempt(clock, *[WILD] * ATTEMPTS)
    assert (result.attempts, result.reliable("poly")) == (ATTEMPTS, False)
    assert len(result.timing("poly").samples) == 3
    shown = ResultLine(result, bound=100.0, ours="poly", target="c")
    assert shown.cells()[-1].endswith("!")
    assert shown.row()["reliable"] is False and shown.row()["spread"] > 0.2
    assert any("unreliable" in note for note in notes([shown]))


def test_a_peer_that_is_not_the_best_may_be_unsteady(clock: Clock) -> None:
    slow = Clocked("slow", clock, iter([0.1, *[0.1, 0.5] * 20]))
    entrants = (steady(clock, "poly"), steady(clock, "peer"), slow)
    result = measure(case(), 1, entrants, probe_of(clock), Rounds(0, (3, 3), 1e-3))
    assert result.attempts == 1


def test_threads_are_kept_awake_before_samples_and_probes(clock: Clock) -> None:
    measure(case(), 2, (steady(clock, "poly"), steady(clock, "peer")), probe_of(clock), Rounds(0, (2, 2), 1e-3))
    start = clock.log.index(("sleep", SETTLE))
    turns = [list(turn) for turn in _split(clock.log[start:])]
    assert [turn[0][0] for turn in turns] == ["probe", "poly", "peer", "probe", "peer", "poly"]
    for turn in turns:
        assert len({who for who, _ in turn}) == 1
        assert sum(seconds for _, seconds in turn[:-1]) >= AWAKE


def test_one_thread_needs_no_waking(clock: Clock) -> None:
    measure(case(), 1, (steady(clock, "poly"),), probe_of(clock), Rounds(0, (2, 2), 1e-3))
    spent = [what for what, seconds in clock.log if seconds]
    assert spent == ["probe", "poly", *["probe", "poly", "poly"] * 2]


def test_a_cold_case_times_one_call_by_threads_that_slept(clock: Clock) -> None:
    cold = replace(case(), cold=True)
    measure(cold, 2, (steady(clock, "poly"),), probe_of(clock), Rounds(0, (2, 2), 1e-3))
    assert clock.log[-3:] == [("poly", 1e-3), ("sleep", SETTLE), ("poly", 1e-3)]


def test_the_issue_rate_is_probed_in_each_round(clock: Clock) -> None:
    entrants = (steady(clock, "poly"),)
    result = measure(case(), 1, entrants, probe_of(clock), Rounds(0, (3, 3), 1e-3), issue=lambda: 6.0)
    assert result.issues == (6.0,) * 3


def test_the_issue_rate_of_a_core_is_a_few_instructions_a_cycle() -> None:
    probe = issue_rate(1)
    if probe is None:
        pytest.skip("this CPU has no such probe")
    assert 0.5 < probe() < 20


def _split(log: Iterable[tuple[str, float]]) -> Iterator[list[tuple[str, float]]]:
    """What happened between the pauses."""
    turn: list[tuple[str, float]] = []
    for entry in log:
        if entry[0] == "sleep":
            if turn:
                yield turn
            turn = []
        else:
            turn.append(entry)
    yield turn
