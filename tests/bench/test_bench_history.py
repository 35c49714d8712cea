"""Kept runs: apart from the tuning records, drawn, and compared with by `--fail-if`."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import click
import pytest
from click.testing import CliRunner
from tuning_records import key, record, trial

from benchmarks import history
from benchmarks.cli import bench
from benchmarks.ending import Ending
from poly.errors import RecordWarning
from poly.machine import machine
from poly.records import Store
from poly.records.runs import drop_rows, keep_rows, kept_rows

FLOP = 1e9


def row(slower: float = 1.0, day: int = 1, size: str = "M=8", busy: bool = False, **more: Any) -> dict[str, Any]:
    """A row whose samples scatter by half a percent around a millisecond times `slower`."""
    random = Random(f"{slower} {day} {size}")
    samples = [1e-3 * slower * random.gauss(1, 0.005) for _ in range(20)]
    return {
        "workload": "matmul", "size": size, "dtype": "f32", "target": "c", "threads": 1, "gflops": FLOP / 1e-3 / 1e9,
        "seconds": 1e-3 * slower, "samples": samples, "peaks": [1000.0] * 20, "peers": {}, "right": True,
        "date": f"2026-11-{day:02}T12:00:00+00:00", "poly": "0.1", "compiler": "gcc 12", "host": "a machine",
        "load": {"busy": busy}, **more,
    }  # fmt: skip


def scaled(slower: float, day: int = 2) -> dict[str, Any]:
    made = row(slower, day)
    return {**made, "gflops": made["gflops"] / slower}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("POLY_RECORDS", str(tmp_path / "records.sqlite"))
    return Store.open()


def test_runs_are_kept_beside_records_and_change_none(store: Store) -> None:
    store.save(record())
    store.add_trials(key(M=512), [trial(1)])
    keep_rows(store, [row(day=2), row(day=1)])
    keep_rows(store, [row(day=3, machine="unused")], machine="another one")
    assert store.records() == [record()] and store.trials(key(M=512)) == [trial(1)]
    assert [found["date"][:10] for found in kept_rows(store)] == ["2026-11-01", "2026-11-02"]
    assert kept_rows(store)[0] == row(day=1)
    assert drop_rows(store) == 2 and kept_rows(store) == []
    assert len(kept_rows(store, "another one")) == 1 and store.records() == [record()]
    store.clear()
    assert len(kept_rows(store, "another one")) == 1, "clearing records leaves runs"


def test_a_store_without_runs_has_none_and_stays_as_it_is(store: Store) -> None:
    assert kept_rows(store) == [] and drop_rows(store) == 0 and not store.exists()
    store.save(record())
    before = store.path.read_bytes()
    assert kept_rows(store) == [] and drop_rows(store) == 0
    assert store.path.read_bytes() == before


@pytest.mark.parametrize("facts", ["{", "[]", '{"workload": "x"}', json.dumps({**row(), "date": "yesterday"})])
def test_a_damaged_run_is_left_out_with_a_warning(store: Store, facts: str) -> None:
    keep_rows(store, [row(), row(day=2)])
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("UPDATE runs SET facts = ? WHERE made LIKE '2026-11-01%'", (facts,))
    with pytest.warns(RecordWarning, match="a kept run of a benchmark is damaged and left out"):
        assert kept_rows(store) == [row(day=2)]


def test_a_line_for_each_case(store: Store) -> None:
    rows = [
        row(day=1),
        row(1.5, day=2, compiler="gcc 13"),
        row(1.2, day=3, busy=True, compiler="gcc 13"),
        row(size="M=9"),
    ]
    head, *lines = history.text(history.of(rows, rows))
    assert head.startswith("history")
    assert lines[0] == (
        "  matmul M=8 f32, 1 thread: 3 runs, 2026-11-01 12:00 to 2026-11-03 12:00 (compiler gcc 12 to gcc 13)"
    )
    assert lines[1] == "    ▁█▄  1 ms, 1 ms, 1.2 ms; last 1.200 of the best, the last on a busy machine"
    assert lines[2:] == ["  matmul M=9 f32, 1 thread: 1 run, 2026-11-01 12:00",
                         "    ▁  1 ms, 1 ms, 1 ms; last 1.000 of the best"]  # fmt: skip


def test_a_line_shows_the_latest_runs_and_small_changes_as_level() -> None:
    assert history.sparkline([1.0] * 3) == "▁▁▁"
    assert history.sparkline([1.0, 1.001]) == "▁▁"
    assert history.sparkline([9.0, *[1.0] * history.WIDTH]) == "▁" * history.WIDTH
    assert history.sparkline([1.0, 2.0]) == "▁█"


def test_the_history_is_drawn(tmp_path: Path) -> None:
    rows = [row(day=1), row(1.1, day=2, busy=True), row(size="M=9")]
    history.draw(history.of(rows, rows), tmp_path / "history.svg")
    text = (tmp_path / "history.svg").read_text()
    assert "matmul M=8 f32, 1 thread (hollow: busy machine)" in text and "matmul M=9 f32, 1 thread" in text


def shown(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(bench, ["history", *arguments])
    return done.exit_code, done.output


def test_the_command_shows_chosen_cases_and_forgets_all(store: Store, tmp_path: Path) -> None:
    assert shown() == (0, "no kept runs yet: `poly bench --history` keeps them\n")
    keep_rows(store, [row(), row(size="M=9")])
    assert "M=8" in shown()[1] and "M=9" in shown()[1]
    assert "M=8" not in shown("M=9")[1]
    assert shown("M=10")[1].startswith("no kept runs of these cases")
    assert len(json.loads(shown("--json", "-")[1])["rows"]) == 2
    assert shown("--plot", str(tmp_path / "nowhere" / "x.png"))[0] == 2
    assert shown("--clear") == (0, "2 rows forgotten\n")
    assert kept_rows(store) == []


def ended(ending: Ending, made: dict[str, Any]) -> int:
    with open("/dev/null", "w") as nowhere:
        return ending.checked({}).end({"rows": [made]}, lambda rows, path: None, nowhere)


@pytest.mark.parametrize(
    ("slower", "limit", "status"), [(1.08, 0.05, 3), (1.03, 0.05, 0), (0.9, 0.05, 0), (1.08, 0.1, 0)]
)
def test_a_run_fails_by_more_than_the_limit_since_the_last_kept_one(
    store: Store, slower: float, limit: float, status: int
) -> None:
    keep_rows(store, [scaled(2.0, day=1), scaled(1.0, day=2)])
    assert ended(Ending(limit=limit, history=True), scaled(slower, day=3)) == status
    assert len(kept_rows(store)) == 3, "this run is kept, too"


def test_a_wrong_result_is_written_and_not_kept(store: Store, tmp_path: Path) -> None:
    wrong = {**scaled(1.0), "right": False}
    assert ended(Ending(json_file=str(tmp_path / "rows.json"), history=True), wrong) == 0
    assert json.loads((tmp_path / "rows.json").read_text())["rows"] == [wrong]
    assert kept_rows(store) == []


def test_without_a_limit_a_kept_run_fails_nothing(store: Store) -> None:
    keep_rows(store, [scaled(1.0)])
    assert ended(Ending(history=True), scaled(1.5, day=3)) == 0


def test_the_first_run_of_a_history_has_nothing_to_fail_by(store: Store) -> None:
    assert ended(Ending(limit=0.05, history=True), scaled(1.0)) == 0


def test_stored_runs_are_compared_with_a_limit(tmp_path: Path) -> None:
    here = {"cpu": machine().cpu, "isa": machine().isa.name, "cores": machine().cores}
    for name, slower in (("old", 1.0), ("new", 1.04)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"machine": here, "rows": [scaled(slower)]}))
    files = [str(tmp_path / "old.json"), str(tmp_path / "new.json")]
    plain = CliRunner().invoke(bench, ["compare", *files])
    assert plain.exit_code == 3 and "slower: matmul M=8 f32, 1 thread: 0.96" in plain.output
    within = CliRunner().invoke(bench, ["compare", *files, "--fail-if", "5%"])
    assert within.exit_code == 0 and "slower by more than 5 % beyond the noise: nothing" in within.output
    beyond = CliRunner().invoke(bench, ["compare", *files, "--fail-if", "2 %"])
    assert beyond.exit_code == 3 and "slower by more than 2 % beyond the noise: matmul M=8" in beyond.output


def test_a_limit_needs_a_run_to_compare_with() -> None:
    with pytest.raises(click.UsageError, match=r"add --compare OLD\.json or --history"):
        Ending(limit=0.05).checked({})
