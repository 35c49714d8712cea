"""The parts of the tuner that measure nothing: rates, what is shown, and schedules carried to another size."""

from __future__ import annotations

from random import Random

import pytest
from shared_nests import matmul
from tuning_fakes import grid_space, two_structures

import poly
from poly import f32, i32
from poly.analysis.work import Work, work
from poly.autoschedule.spaces.space import Point, Space
from poly.display import time_text
from poly.ir.nest import Nest
from poly.machine import Bandwidth, Cache, Machine, Measured, Peak, machine
from poly.search.events import Ask, Search, Trial
from poly.timing.yardstick import Yardstick, yardstick
from poly.tuning import display, history
from poly.tuning.display import Status
from poly.tuning.outcome import Failure, counted, point_words

M, N, K = poly.sizes("M N K")
RATES = Measured((Peak("f32", 1, 100.0),), (Bandwidth("L1", 1, 200.0, 150.0), Bandwidth("memory", 1, 10.0, 12.0)))
HERE = Machine("a CPU", machine().isa, 1, (Cache(1, 32768, 8, 64, 1),))


@poly.nest
def below(A: f32[M, M], B: f32[M, M]):
    for i in range(M):
        for j in range(i):
            B[i, j] = -A[i, j]


@poly.nest
def count(A: i32[M], s: i32[1]):
    for i in range(M):
        s[0] += A[i] + i


@pytest.mark.parametrize(
    ("nest", "sizes", "expected"),
    [
        (matmul, {"M": 8, "N": 16, "K": 4}, Work(2 * 8 * 16 * 4, 4 * (8 * 4 + 4 * 16 + 2 * 8 * 16))),
        (below, {"M": 10}, Work(45, 4 * 200)),
        (count, {"M": 10}, Work(20, 4 * (10 + 2))),
        (matmul, {"M": 0, "N": 16, "K": 4}, Work(0, 4 * 64)),
    ],
)
def test_work_counts_operations_and_bytes(nest: Nest, sizes: dict[str, int], expected: Work) -> None:
    assert work(nest.with_sizes(sizes)) == expected


def test_work_that_takes_too_long_to_count_is_unknown() -> None:
    assert work(below.with_sizes({"M": 10**7})) is None


def test_the_unit_is_what_binds() -> None:
    assert yardstick(Work(10**6, 10**4), HERE, RATES, "f32", 1) == Yardstick("GFLOP/s", 10**6, 100.0)
    assert yardstick(Work(10**6, 10**6), HERE, RATES, "f32", 1) == Yardstick("GB/s", 10**6, 12.0)
    assert yardstick(Work(10**6, 10**4), HERE, RATES, "i32", 1).unit == "GB/s"
    assert Yardstick("GFLOP/s", 5e8, 100.0).text(0.01) == "50 GFLOP/s (50 % of peak)"
    assert Yardstick("GB/s", 5e8).text(0.01) == "50 GB/s"


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.5, "2.5 s"), (0.0123, "12.3 ms"), (4.5e-6, "4.5 µs"), (3e-8, "30 ns")]
)
def test_times_are_readable(seconds: float, text: str) -> None:
    assert time_text(seconds) == text


def test_progress_tells_best_tried_failed_and_time() -> None:
    status = Status(
        "matmul",
        tried=12,
        reused=3,
        failures=(Failure("crash", 2, "crash"), Failure("wrong result", 1, "wrong result: C[0] is 1")),
        best=0.01,
        choice=0.012,
        where="left in place",
        elapsed=3.25,
        trials=40,
        seconds=10,
        yardstick=Yardstick("GFLOP/s", 5e8, 100.0),
    )
    assert status.rows() == [
        ("best so far", "50 GFLOP/s (50 % of peak), 1.20 times the model's choice"),
        ("schedule", "left in place"),
        ("tried", "12 of 40 (3 from the records)"),
        ("failed", "3: crash (2), wrong result (1)"),
        ("time", "3.2 s of 10 s, 6.8 s left"),
    ]
    line = status.line()
    assert line.startswith("matmul: 12 of 40 (3 from the records) tried, 3 failed, 3.2 s of 10 s, 6.8 s left; best 50")


def test_lines_are_printed_for_a_new_best_and_after_a_pause(capsys: pytest.CaptureFixture[str]) -> None:
    lines = display.ProgressLines()
    for best, elapsed in ((2.0, 0.1), (2.0, 0.2), (1.0, 0.3), (1.0, 0.3 + display.PAUSE)):
        lines.update(Status("matmul", best=best, elapsed=elapsed))
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 3


def test_the_live_table_holds_all_rows(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with display.Live() as live:
        live.update(Status("matmul M=8", tried=7, best=1e-3, where="order rows inside"))
    err = capsys.readouterr().err
    assert all(text in err for text in ("matmul M=8", "7", "1 ms", "order rows inside"))


def test_display_is_quiet_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert type(display.display(None)) is display.Silent
    assert type(display.display(False)) is display.Silent
    assert type(display.display(True)) is display.ProgressLines


def test_a_schedule_lands_on_the_structure_with_its_traits_and_the_nearest_sizes() -> None:
    space = two_structures()
    assert history.placed(space, (("left", "panels"),), {"rows": 70, "depth": None}) == Point(1, (2, 3))
    assert history.placed(space, (("left", "panels"),), {"rows": 40, "depth": 500}) == Point(1, (1, 2))
    assert history.placed(space, (("left", "in place"),), {"rows": 1, "depth": 16}) == Point(0, (0, 0))


def test_an_unknown_structure_lands_on_the_most_alike() -> None:
    space = two_structures()
    assert history.placed(space, (("left", "panels"), ("gone", "yes")), {"rows": 16, "depth": 16}) == Point(1, (0, 0))


def test_transferred_points_are_different_few_and_not_the_models_choice() -> None:
    space = grid_space()
    found = [((), {"x": x, "y": 4}) for x in (4, 5, 5, 6, 7, 8)]
    assert history.transferred(space, found, 2) == (Point(0, (4, 3)), Point(0, (5, 3)))
    chosen = space.values(space.choice)
    assert history.transferred(space, [((), chosen)], 3) == ()


def test_a_seeded_search_measures_the_seeds_first_and_starts_at_the_best() -> None:
    begun: list[Point] = []

    def strategy(space: Space, start: Point, random: Random) -> Search:
        begun.append(start)
        yield Ask((start,))

    space, seeds = grid_space(), (Point(0, (1, 1)), Point(0, (2, 2)), Point(0, (0, 0)))
    search = history.seeded(strategy, seeds)(space, Point(0, (0, 0)), Random(0))
    ask = next(search)
    assert ask == Ask((Point(0, (0, 0)), Point(0, (1, 1)), Point(0, (2, 2))))
    times = {Point(0, (0, 0)): (3.0, 3.1), Point(0, (1, 1)): (1.0, 1.1)}
    trials = [Trial(p, times.get(p, ()), failure="" if p in times else "crash") for p in ask.points]
    assert search.send(trials) == Ask((Point(0, (1, 1)),))
    assert begun == [Point(0, (1, 1))]


def test_a_seeded_search_whose_seeds_all_fail_starts_where_it_was_told() -> None:
    def strategy(space: Space, start: Point, random: Random) -> Search:
        yield Ask((start,))

    search = history.seeded(strategy, (Point(0, (1, 1)),))(grid_space(), Point(0, (0, 0)), Random(0))
    ask = next(search)
    assert search.send([Trial(p, (), failure="crash") for p in ask.points]) == Ask((Point(0, (0, 0)),))


def test_a_point_in_words() -> None:
    assert point_words(two_structures(), Point(1, (0, 3))) == "left panels; rows 16, depth uncut"
    assert point_words(grid_space(), Point(0, (0, 1))) == "as written; x 1, y 2"


def test_failures_are_counted_by_kind() -> None:
    reasons = [
        "hangs: it was stopped",
        "crashed: SIGSEGV (at 0x1)",
        "\n",
        "crashed: SIGILL",
        "wrote beside the array C\nmore",
    ]
    crashed, *others = counted(reasons)
    assert crashed == Failure("crashed", 2, "crashed: SIGSEGV (at 0x1)")
    assert [failure.kind for failure in others] == ["hangs", "no reason given", "wrote beside the array C"]
    assert counted([]) == ()
