"""A whole tuning on a made-up landscape: budgets, what is kept, resuming, transfer, interrupts. Nothing is timed."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner
from tuning_fakes import NEST, Table, double, grid_space

import poly
from poly import commands, f32
from poly.autoschedule.spaces.space import Point, Space
from poly.records import Store, point_text
from poly.search.allocation import Standing
from poly.search.events import Ask, Search
from poly.tuning import session, together
from poly.tuning.display import Silent, Status
from poly.tuning.options import MOST, Options
from poly.tuning.outcome import TunedKernel
from poly.tuning.problem import problem
from poly.tuning.report import TrialReport

SPACE = replace(grid_space(), choice=Point(0, (6, 6)))
"""The model is wrong: the bowl's lowest point is (3, 3)."""
BEST = Point(0, (3, 3))


M = poly.sizes("M")
LOOPS = """import poly
from poly import f32

M, N = poly.sizes("M N")

@poly.nest
def double(A: f32[M, N], B: f32[M, N]):
    for i in range(M):
        for j in range(N):
            B[i, j] = 2 * A[i, j]
"""


@poly.nest
def shortened(A: f32[M], B: f32[M - 4]):
    for i in range(M - 4):
        B[i] = A[i + 4]


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The made-up space, measurer and an empty store."""
    store = tmp_path / "records.sqlite"
    monkeypatch.setattr(session, "_space", lambda task: replace(SPACE, sizes=task.at))
    monkeypatch.setattr(session, "LiveMeasurer", Table)
    monkeypatch.setenv("POLY_RECORDS", str(store))
    monkeypatch.setattr(Table, "measured", [])
    return store


def tune(**more: Any) -> TunedKernel:
    options = {"target": "c:portable", "threads": 1} | more
    return poly.tune(NEST, **options)


@pytest.mark.slow
def test_a_tuning_ends_at_the_best_point_and_tells_how(made_up: Path) -> None:
    kernel = tune()
    tuning = kernel.tuning
    assert tuning.best == BEST and tuning.store == made_up
    assert tuning.trials == len(Table.measured) and tuning.reused == 0
    assert tuning.ratio == pytest.approx(16 / 10, rel=0.01)
    assert kernel.schedule == SPACE.schedule(BEST)
    assert kernel.origin == "record" and kernel.record is not None and kernel.record.finished


@pytest.mark.parametrize("trials", [1, 2, 7])
def test_no_more_trials_than_allowed(trials: int) -> None:
    tuning = tune(trials=trials).tuning
    assert tuning.trials == len(Table.measured) == trials
    assert tuning.stopped == f"the budget of {trials} trials is spent"


def test_compile_follows_the_record_and_says_so() -> None:
    tune()
    kernel = poly.compile(NEST, target="c:portable", threads=1)
    assert kernel.origin == "record"
    assert kernel.schedule == SPACE.schedule(BEST)
    assert poly.compile(NEST, target="c:portable", threads=1, records=False).origin == "model"


def test_the_same_call_again_measures_nothing_and_gives_the_same() -> None:
    first = tune(trials=8).tuning
    Table.measured.clear()
    again = tune(trials=8).tuning
    assert Table.measured == []
    assert (again.best, again.trials, again.reused) == (first.best, 8, 8)
    assert again.stopped == "the records hold 8 trials"


def test_a_search_that_came_to_its_end_measures_nothing_when_called_again() -> None:
    first = tune().tuning
    Table.measured.clear()
    again = tune().tuning
    assert Table.measured == []
    assert (again.best, again.trials, again.reused) == (first.best, first.trials, first.trials)
    assert again.stopped == first.stopped


def test_a_larger_budget_goes_on_where_the_smaller_ended() -> None:
    tune(trials=5)
    before = list(Table.measured)
    tuning = tune(trials=9).tuning
    assert len(Table.measured) == 9 and tuning.trials == 9 and tuning.reused == 5
    assert not set(before) & set(Table.measured[5:])


def test_without_records_nothing_is_known_or_kept(made_up: Path) -> None:
    tune(trials=3, records=False)
    kernel = tune(trials=3, records=False)
    assert len(Table.measured) == 6
    assert kernel.tuning.store is None and kernel.origin == "given"
    assert not made_up.exists()


def test_cold_trials_are_not_mixed_with_warm_ones() -> None:
    tune(trials=3)
    assert tune(trials=3, cold=True).tuning.reused == 0
    assert tune(trials=3, cold=True).tuning.reused == 3
    assert len(Table.measured) == 6


def test_failures_are_counted_by_reason_and_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Table, "failing", frozenset(p for p in SPACE if p.at[0] == 4))
    tuning = tune().tuning
    (crashed,) = tuning.failures
    assert f"failed          crashed ({crashed.count})\n" in str(tuning)
    assert "crashed: Segmentation fault (SIGSEGV)\n" in str(tuning)
    failed = [point for point in Table.measured if point in Table.failing]
    assert len(failed) == len(set(failed)) == crashed.count


def test_when_every_point_fails_the_reasons_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Table, "failing", frozenset(SPACE))
    for _ in range(2):
        with pytest.raises(poly.SearchError, match=r"3 .*crashed"):
            tune(trials=3)
    assert len(Table.measured) == 3


def test_the_display_shows_what_is_asked_what_came_and_who_is_best(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Status] = []

    class Recorder(Silent):
        def update(self, status: Status) -> None:
            shown.append(status)

    def two(space: Space, start: Point, random: Random) -> Search:
        yield Ask((start,))
        yield Ask((BEST, Point(0, (0, 0))))

    monkeypatch.setattr(together, "display", lambda show: Recorder())
    choice = tune(trials=1).tuning.seconds
    shown.clear()
    monkeypatch.setattr(Table, "failing", frozenset([Point(0, (0, 0))]))
    best = tune(strategy=two, trials=4).tuning.seconds
    begun, asked, came, failed, judged = (shown[i] for i in range(5))
    assert (begun.tried, begun.reused, begun.best, begun.trying) == (1, 1, choice, "")
    assert (asked.tried, asked.trying) == (1, "2 candidates (as written)")
    assert (came.tried, came.best) == (2, choice), "the search has not decided yet"
    assert (failed.tried, [str(failure) for failure in failed.failures]) == (3, ["crashed (1)"])
    assert (judged.best, judged.where) == (best, "as written; x 4, y 4")
    assert judged.choice == pytest.approx(choice, rel=0.01)


def interrupt_at(count: int) -> Callable[[Point], None]:
    def before(point: Point) -> None:
        if len(Table.measured) == count:
            raise KeyboardInterrupt

    return before


def test_ctrl_c_gives_the_best_so_far_and_the_same_call_resumes(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tune(records=False).tuning
    Table.measured.clear()
    with monkeypatch.context() as patch:
        patch.setattr(Table, "before", staticmethod(interrupt_at(6)))
        with pytest.warns(poly.SearchWarning, match=r"the best of 6 trials.*the same call again goes on"):
            kernel = tune()
    assert kernel.tuning.interrupted and kernel.tuning.trials == 6
    assert kernel.record is not None and not kernel.record.finished
    tuning = tune().tuning
    assert tuning.best == whole.best and tuning.reused == 6 and not tuning.interrupted
    sampled = Table.measured[: len(Table.measured) - 3]  # all but the finalists measured again
    assert len(sampled) == len(set(sampled))


def test_ctrl_c_before_the_first_trial_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Table, "before", staticmethod(interrupt_at(0)))
    with pytest.raises(KeyboardInterrupt):
        tune()


def test_the_command_ends_with_the_status_of_ctrl_c(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "loops.py"
    file.write_text(LOOPS)
    command = ["tune", f"{file}:double", "--size=M=64", "--size=N=64", "--target=c:portable", "--threads=1"]
    for count, expected in ((0, "Interrupted."), (6, "stopped         interrupted")):
        monkeypatch.setattr(Table, "before", staticmethod(interrupt_at(count)))
        done = CliRunner().invoke(commands.poly, command)
        assert done.exit_code == 130
        assert expected in done.output
    monkeypatch.setattr(Table, "before", staticmethod(lambda point: None))
    done = CliRunner().invoke(commands.poly, command)
    assert done.exit_code == 0 and "6 of them from the records" in done.output


def test_a_crash_of_the_tuner_loses_only_the_trial_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def die(point: Point) -> None:
        if len(Table.measured) == 6:
            raise MemoryError

    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(Table, "before", staticmethod(die))
        tune()
    assert tune(trials=6).tuning.reused == 6
    assert len(Table.measured) == 6


def test_a_crash_after_resuming_leaves_the_record_as_it_was(monkeypatch: pytest.MonkeyPatch, made_up: Path) -> None:
    def die(point: Point) -> None:
        if len(Table.measured) == 11:
            raise MemoryError

    tune(trials=10)
    record = Store(made_up).records()[0]
    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(Table, "before", staticmethod(die))
        tune(strategy="random", trials=40)
    assert Store(made_up).records()[0] == record


def test_seconds_end_the_search_after_the_trial_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    time = iter(range(1000))
    monkeypatch.setattr(session, "monotonic", lambda: 0.01 * next(time))
    tuning = tune(seconds=0.2).tuning
    assert 1 <= tuning.trials == len(Table.measured) < 20
    assert tuning.stopped == "the budget of 0.2 s is spent"


def test_a_new_size_starts_from_its_neighbours() -> None:
    poly.tune(double.with_sizes({"M": 64, "N": 128}), target="c:portable", threads=1)
    Table.measured.clear()
    tuning = tune(trials=2).tuning
    assert Table.measured == [SPACE.choice, BEST]
    assert tuning.best == BEST


def test_from_the_origin_nothing_is_transferred() -> None:
    tune(trials=20)
    Table.measured.clear()
    tune(trials=1, start="origin", records=False)
    assert Table.measured == [SPACE.origin]


def test_a_better_record_from_elsewhere_is_judged_before_it_is_replaced(made_up: Path) -> None:
    tune()
    record = Store(made_up).records()[0]
    Store(made_up).drop_trials(record.key)
    tune(trials=2)
    assert Table.measured[-2:] == [SPACE.choice, BEST]
    assert Store(made_up).records()[0].point == point_text(SPACE, BEST)
    Store(made_up).drop_trials(record.key)
    tune(trials=1)
    assert Store(made_up).records()[0].point == point_text(SPACE, BEST), "it was not judged, and is faster"


def test_a_strategy_of_ones_own() -> None:
    def three(space: Space, start: Point, random: Random) -> Search:
        yield Ask((start, Point(0, (0, 0)), Point(0, (1, 1))))

    assert tune(strategy=three, start="origin").tuning.stopped == "the strategy has no more to ask"
    assert set(Table.measured) <= {SPACE.origin, Point(0, (1, 1))}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"trials": 0}, poly.SearchError, "trials=0 allows no search"),
        ({"trials": -3}, poly.SearchError, "trials=-3 allows no search"),
        ({"trials": 2.5}, poly.SearchError, "trials must be a whole number, not 2.5"),
        ({"seconds": 0}, poly.SearchError, "seconds=0 allows no search"),
        ({"seconds": "10"}, poly.SearchError, "seconds must be a number, not '10'"),
        ({"strategy": "dropplet"}, poly.SearchError, "did you mean 'droplet'"),
        ({"start": "middle"}, poly.SearchError, "not at 'middle'"),
        ({"threads": 0}, poly.ArgumentError, "threads must be an integer from 1 to 4096; got 0"),
        ({"target": "c:mmx"}, poly.TargetError, "unknown target 'c:mmx'"),
        ({"sizes": {"Q": 3}}, poly.SpecError, "no size Q"),
        ({"at": {"M": 3}}, poly.SpecError, "no size M that is still open"),
    ],
)
def test_bad_input_is_told_before_anything_is_measured(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        tune(**options)
    assert Table.measured == []


def test_a_space_without_a_point_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    none = replace(SPACE.structures[0], allows=lambda values: False)
    monkeypatch.undo()
    monkeypatch.setattr(session, "derive", lambda nest, **of_space: replace(SPACE, structures=(none,)))
    with pytest.raises(poly.SearchError, match="no schedule of its space is legal"):
        tune()


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({}, r"nothing says what M, N should be.*Fix them \(M=512, N=512\), or .* at=dict\(M=512, N=512\)"),
        ({"M": 8}, "nothing says what N should be"),
        ({"M": 0, "N": 8}, "no statement is ever run"),
    ],
)
def test_sizes_without_a_value_or_without_sense_are_told(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(poly.SearchError, match=message):
        poly.tune(double, target="c:portable", sizes=sizes)


def test_sizes_outside_of_what_the_nest_is_made_for_are_told() -> None:
    with pytest.raises(poly.SearchError, match=r"at M=2 the extent M - 4 of B is -2"):
        poly.tune(shortened, target="c:portable", M=2)


def test_without_records_a_strategy_measures_what_it_asks_for_and_nothing_else() -> None:
    tuning = tune(strategy="random", trials=5, records=False).tuning
    assert SPACE.choice not in Table.measured[:2] or tuning.choice_seconds is not None
    assert set(Table.measured) <= set(SPACE.sample(len(SPACE), Random(0))[:5])


def test_a_budget_is_what_was_not_used() -> None:
    left = Options(trials=10, seconds=5.0).budget(4, 2.0)
    assert left is not None and (left.trials, left.seconds, left.gain) == (6, 3.0, None)
    assert Options(trials=10).budget(10, 0.0) is None
    default = Options().budget(100, 100.0)
    assert default is not None and (default.trials, default.seconds) == (MOST - 100, None) and default.gain
    assert Options().budget(MOST, 0.0) is None
    timed = Options(seconds=5.0).budget(1000, 2.0)
    assert timed is not None and (timed.trials, timed.seconds, timed.gain) == (None, 3.0, None)
    overdrawn = Options(seconds=1.0).budget(0, 9.0)
    assert overdrawn is not None and overdrawn.seconds is not None and overdrawn.seconds > 0


def test_on_trial_gets_each_trial_after_it_is_stored(made_up: Path) -> None:
    seen: list[TrialReport] = []
    stored: list[int] = []

    def heard(report: TrialReport) -> None:
        seen.append(report)
        stored.append(stored_trials(made_up))

    tune(trials=4, on_trial=heard)
    assert [report.number for report in seen] == stored == [1, 2, 3, 4]
    first, last = seen[0], seen[-1]
    assert (
        first.seconds == pytest.approx(bowl_seconds(first), rel=0.01)
        and first.failure == ""
        and first.sizes == {"x": 7, "y": 7}
    )
    assert repr(first.schedule) == "schedule(double).tile(i=7, j=7)"
    assert str(first).startswith("trial 1: ") and "x 7, y 7" in str(first)
    assert last.best in [report.seconds for report in seen]
    tune(trials=6, on_trial=seen.append)
    assert [report.number for report in seen[4:]] == [5, 6]


def bowl_seconds(report: TrialReport) -> float:
    return SPACE.predict(report.trial.point).seconds


def test_an_error_in_on_trial_ends_the_tuning_and_loses_nothing(made_up: Path) -> None:
    def fails(report: TrialReport) -> None:
        if report.number == 3:
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="disk is full"):
        tune(trials=8, on_trial=fails)
    resumed = tune(trials=8)
    assert (resumed.tuning.reused, resumed.tuning.trials) == (3, 8)


def test_a_keyboard_interrupt_in_on_trial_keeps_the_best_so_far() -> None:
    def enough(report: TrialReport) -> None:
        if report.number == 2:
            raise KeyboardInterrupt

    with pytest.warns(poly.SearchWarning, match="interrupted"):
        assert tune(trials=8, on_trial=enough).tuning.trials == 2


def test_on_trial_must_be_a_function() -> None:
    with pytest.raises(poly.SearchError, match="on_trial must be a function of a TrialReport, not 3"):
        tune(on_trial=3)


def test_the_log_tells_the_beginning_each_trial_and_the_end(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="poly"):
        tune(trials=2)
    told = [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "poly.tune"]
    assert [level for level, _ in told] == ["INFO", "DEBUG", "DEBUG", "INFO"]
    assert "trial 2: " in told[2][1] and "best of 2 trials" in told[3][1]
    assert "poly.compile" in {record.name for record in caplog.records}
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("poly").handlers)


def stored_trials(store: Path) -> int:
    with closing(sqlite3.connect(store)) as database:
        return int(database.execute("SELECT count(*) FROM trials").fetchone()[0])


# Several nests


WIDE = double.with_sizes({"M": 64, "N": 128})


def tune_both(**more: Any) -> list[TunedKernel]:
    return poly.tune([NEST, (double, {"M": 64, "N": 128})], **{"target": "c:portable", "threads": 1} | more)


def test_two_nests_share_the_budget_and_give_kernels_in_order() -> None:
    first, second = tune_both(trials=21)
    assert (dict(first.nest.fixed), dict(second.nest.fixed)) == ({"M": 64, "N": 64}, {"M": 64, "N": 128})
    tunings = first.tuning, second.tuning
    assert sum(one.trials for one in tunings) == len(Table.measured) <= 21
    assert {one.stopped for one in tunings} == {"the budget of 21 trials is spent"}
    assert min(one.trials for one in tunings) >= 1
    assert poly.compile(WIDE, target="c:portable", threads=1).origin == "record"


def test_the_same_call_with_both_measures_nothing_and_a_larger_one_goes_on() -> None:
    before = [kernel.tuning for kernel in tune_both(trials=12)]
    spent = len(Table.measured)
    again = [kernel.tuning for kernel in tune_both(trials=spent)]
    assert len(Table.measured) == spent
    assert [one.best for one in again] == [one.best for one in before]
    more = [kernel.tuning for kernel in tune_both(trials=spent + 5)]
    assert sum(one.reused for one in more) == spent and len(Table.measured) > spent


def test_a_nest_without_a_trial_gets_one_where_the_records_hold_the_budget() -> None:
    tune(trials=6)
    first, second = (kernel.tuning for kernel in tune_both(trials=6))
    assert (first.trials, first.reused, first.stopped) == (6, 6, "the records hold 6 trials")
    assert second.trials >= 1 and second.reused == 0


def test_weights_are_calls_of_which_each_takes_its_time() -> None:
    seen: list[list[float]] = []

    def second(standings: Sequence[Standing]) -> int:
        seen.append([standing.seconds for standing in standings])
        return len(standings) - 1

    tasks = [problem(nest, "c:portable", 1, {}, None) for nest in (NEST, WIDE)]
    together.tuned(tasks, Options(trials=4), [1, 1000], allocation=second)
    before, after = seen[0]  # both are at the same point of the same space
    assert after / before == pytest.approx(1000)


def test_the_same_loops_twice_are_tuned_once() -> None:
    first, second = poly.tune([NEST, replace(NEST, name="other")], target="c:portable", threads=1, trials=3)
    assert len(Table.measured) == 3 and first.schedule.steps == second.schedule.steps
    assert (first.nest.name, second.nest.name) == ("double", "other")


def test_ctrl_c_keeps_the_best_of_all_and_the_same_call_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Table, "before", staticmethod(interrupt_at(6)))
        with pytest.warns(poly.SearchWarning, match=r"the best of 6 trials.*the same call again goes on"):
            kernels = tune_both()
    assert all(kernel.tuning.interrupted and kernel.tuning.trials >= 1 for kernel in kernels)
    again = [kernel.tuning for kernel in tune_both()]
    assert sum(one.reused for one in again) == 6 and not any(one.interrupted for one in again)


def test_ctrl_c_before_each_has_a_trial_loses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Table, "before", staticmethod(interrupt_at(1)))
        tune_both()
    assert sum(kernel.tuning.reused for kernel in tune_both(trials=4)) == 1


def test_a_nest_that_cannot_be_measured_does_not_cost_the_others(
    monkeypatch: pytest.MonkeyPatch, made_up: Path
) -> None:
    failed: list[Table] = []

    class Refusing(Table):
        def trials(self, ask: Ask) -> Any:
            if not Table.measured and not failed:
                failed.append(self)
                raise poly.SearchError("double cannot be measured: no arrays")
            return super().trials(ask)

    monkeypatch.setattr(session, "LiveMeasurer", Refusing)
    with pytest.raises(poly.SearchError, match="no arrays"):
        tune_both(trials=8)
    (record,) = Store(made_up).records()
    assert dict(record.key.sizes)["N"] == 128 and record.trials >= 7


def test_the_command_tunes_all_nests_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "loops.py"
    second = LOOPS[LOOPS.index("@poly") :].replace("double", "triple").replace("2 *", "3 *")
    file.write_text(LOOPS + "\n" + second)
    command = ["tune", str(file), "--size=M=64", "--size=N=64", "--target=c:portable", "--threads=1", "--trials=9"]
    done = CliRunner().invoke(commands.poly, command)
    assert done.exit_code == 0, done.output
    assert "double M=64 N=64" in done.output and "triple M=64 N=64" in done.output
    assert len(Table.measured) <= 9
    facts = json.loads(CliRunner().invoke(commands.poly, [*command, "--json", "--quiet"]).stdout)
    assert sum(one["trials"] for one in facts) == len(Table.measured) and len(facts) == 2


@pytest.mark.parametrize(
    ("nests", "options", "error", "message"),
    [
        ([], {}, poly.SpecError, "the list of nests to tune is empty"),
        ([NEST, 3], {}, poly.SpecError, "3 is no nest"),
        ([NEST, WIDE], {"trials": 1}, poly.SearchError, r"2 nests cannot share trials=1"),
        ([NEST, WIDE], {"weights": [1]}, poly.SearchError, "weights must be 2 numbers above 0"),
        ([NEST, WIDE], {"weights": [1, 0]}, poly.SearchError, "weights must be 2 numbers above 0"),
        (NEST, {"weights": [1]}, poly.SearchError, "weights are for a list of nests"),
        ([NEST, double], {}, poly.SearchError, "nothing says what M, N should be"),
        ([NEST, double], {"Q": 3}, poly.SpecError, "none of double, double has a size Q .*open sizes: M, N"),
        ([(double, {"Q": 3})], {}, poly.SpecError, "double has no size Q"),
        ([(double, 3)], {}, poly.SpecError, "sizes must be a dictionary"),
    ],
)
def test_bad_lists_are_told(nests: Any, options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        poly.tune(nests, target="c:portable", threads=1, **options)
    assert Table.measured == []


def test_one_kernel_cannot_be_tuned_at_two_sizes() -> None:
    tasks = [problem(double, "c:portable", 1, {}, {"M": 64, "N": n}) for n in (64, 128)]
    with pytest.raises(poly.SearchError, match="are one kernel"):
        together.tuned(tasks, Options(trials=4))
