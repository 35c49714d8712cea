"""`poly records`: what each command prints and does, and its mistakes in plain words."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from tuning_records import key, record, trial

from poly import commands
from poly.records import Store


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("POLY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("POLY_RECORDS")
    return Store.open()


@pytest.fixture
def filled(store: Store) -> Store:
    store.offer(
        [
            record(key("matmul", M=512, N=64)),
            record(key("stencil", target="avx512", threads=2), gflops=None, finished=False, at=(("N", 4000),)),
            record(key("matmul", M=1, machine="Intel 486")),
            record(key("matmul", M=2, engine="0.0.1"), seconds=2.5e-6),
        ]
    )
    store.add_trials(key("matmul", M=512, N=64), [trial(1), trial(2, samples=(), failure="crash")])
    return store


def poly(*arguments: str, answer: str = "") -> tuple[int, str, str]:
    done = CliRunner().invoke(commands.poly, ["records", *arguments], input=answer)
    return done.exit_code, done.stdout, done.stderr


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_list_of_nothing(store: Store) -> None:
    assert poly("list") == (0, "no records yet.\n", "")
    assert poly("list", "--json") == (0, "[]\n", "")
    assert not store.exists()


def test_list(filled: Store) -> None:
    status, out, _ = poly("list")
    head, *lines = rows(out)
    assert status == 0
    assert head[:6] == ["nest", "id", "sizes", "dtype", "target", "time"]
    assert [line[:2] for line in lines] == [["matmul", "1"], ["stencil", "2"], ["matmul", "4"]]
    assert "M=512 N=64" in out and "1 ms" in out and "107.5" in out
    assert "any (N=4000)" in out and "avx512 x 2" in out and "droplet (unfinished)" in out and "2.5 µs" in out
    assert "2026-11-20 12:00" in out
    assert "Intel" not in out


def test_list_of_all_machines_names_them(filled: Store) -> None:
    _, out, _ = poly("list", "--all-machines")
    assert [line[1] for line in rows(out)[1:]] == ["1", "2", "3", "4"]
    assert "Intel 486" in out and filled.record(1).key.machine.partition(", L1")[0] in out


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (["--nest", "matmul"], ["1", "4"]),
        (["--nest", "matmul", "--all-machines"], ["1", "3", "4"]),
        (["--target", "avx512"], ["2"]),
        (["--target", "c:avx512"], ["2"]),
    ],
)
def test_filters(filled: Store, filters: list[str], found: list[str]) -> None:
    _, out, _ = poly("list", *filters)
    assert [line[1] for line in rows(out)[1:]] == found


def test_list_says_that_there_are_others(filled: Store) -> None:
    _, out, _ = poly("list", "--nest", "conv")
    assert out == "no records that match. There are 4 others: see poly records list --all-machines.\n"


def test_list_as_json(filled: Store) -> None:
    _, out, _ = poly("list", "--json", "--all-machines")
    found = json.loads(out)
    assert [facts["id"] for facts in found] == [1, 2, 3, 4]
    assert found[2]["key"]["machine"] == "Intel 486"
    assert found[0]["key"]["sizes"] == {"M": 512, "N": 64}


def test_show(filled: Store) -> None:
    status, out, _ = poly("show", "1")
    assert status == 0
    for expected in (
        "record 1",
        "matmul (f32, f32, f32)",
        "M=512 N=64",
        "avx2, 1 thread",
        "gcc 12.2.0",
        "poly 0.1.0",
        "1 ms ± 10 µs, 107.5 GFLOP/s",
        "droplet, 12 trials in 3.2 s",
        "2026-11-20 12:00:00 UTC",
        "2 trials, 1 of them failed",
        "order rows inside",
        "depth 256, columns uncut",
        ".split(m=6)",
    ):
        assert expected in out
    assert "not finished" in poly("show", "2")[1]


def test_show_as_json(filled: Store) -> None:
    _, out, _ = poly("show", "1", "--json")
    assert json.loads(out) == {"id": 1, **json.loads(json.dumps(record(key("matmul", M=512, N=64)).facts()))}


def test_export_and_import(filled: Store, tmp_path: Path) -> None:
    file = str(tmp_path / "out.jsonl")
    assert poly("export", file)[1] == f"3 records written to {file}\n"
    assert poly("export", file, "--nest", "stencil")[1] == f"1 record written to {file}\n"
    assert poly("export", file, "--all-machines")[1] == f"4 records written to {file}\n"
    filled.clear()
    status, out, _ = poly("import", file)
    assert status == 0
    assert out.splitlines() == [
        "4 new, 0 in place of worse ones, 0 left out: no better than what is here",
        "1 of another machine: kept and listed (--all-machines), but not used here",
    ]
    assert len(filled.records()) == 4


def test_merge_a_store(store: Store, tmp_path: Path) -> None:
    other = Store.open(tmp_path / "other.sqlite")
    other.offer([record(seconds=1e-4, minutes=1), record(key(M=9))])
    store.save(record())
    status, out, _ = poly("merge", str(other.path))
    assert (status, out) == (0, "1 new, 1 in place of worse ones, 0 left out: no better than what is here\n")
    assert store.records() == [record(seconds=1e-4, minutes=1), record(key(M=9))]


def test_clear_asks(filled: Store) -> None:
    status, out, _ = poly("clear", answer="n\n")
    assert status == 1
    assert "Remove 3 records and 2 trials? [y/N]" in out
    assert len(filled.records()) == 4
    status, out, _ = poly("clear", answer="y\n")
    assert status == 0
    assert "removed 3 records and 2 trials" in out
    assert [found.id for found in filled.records()] == [3]


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (["--id", "1"], [2, 3, 4]),
        (["--nest", "matmul"], [2, 3]),
        (["--nest", "matmul", "--all-machines"], [2]),
        (["--outdated"], [1, 2, 3]),
        (["--all-machines"], []),
    ],
)
def test_clear_what_is_meant(filled: Store, arguments: list[str], left: list[int]) -> None:
    assert poly("clear", "--yes", *arguments)[0] == 0
    assert [found.id for found in filled.records()] == left


def test_clear_nothing(filled: Store) -> None:
    assert poly("clear", "--nest", "conv") == (0, "there is nothing to remove\n", "")


def test_clear_by_number_reaches_other_machines(filled: Store) -> None:
    assert poly("clear", "--yes", "--id", "3")[1] == "removed 1 record and 0 trials\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "9"], "Error: there is no record 9"),
        (["show", "first"], "'first' is not a valid integer"),
        (["import", "absent.jsonl"], "'absent.jsonl' does not exist"),
        (["merge", "."], "is a directory"),
        (["export", "/nowhere/out.jsonl"], "Error: FILE /nowhere/out.jsonl: there is no such folder"),
        (["paint"], "No such command 'paint'"),
    ],
)
def test_mistakes(filled: Store, arguments: list[str], message: str) -> None:
    status, _, err = poly(*arguments)
    assert status == 2
    assert message in err
    assert "Traceback" not in err


def test_a_damaged_store_is_told_once_and_in_plain_words(filled: Store) -> None:
    filled.path.write_text("damage" * 1000)
    assert poly("export", "out.jsonl")[2].startswith(f"Error: the tuning records {filled.path} are not sound: ")
    status, out, err = poly("list")
    assert (status, out) == (0, "no records yet.\n")
    assert err.startswith(f"Warning: the tuning records {filled.path} are damaged (")
    assert err.count("\n") == 1
    assert poly("list") == (0, "no records yet.\n", "")


def test_a_record_that_cannot_be_read_can_be_removed(store: Store) -> None:
    store.offer([record(key(M=1)), replace(record(key(M=2)), schedule="[{")])
    status, out, err = poly("list")
    assert status == 0 and len(rows(out)) == 2
    assert "record 2 cannot be read" in err and "poly records clear --id 2" in err
    assert poly("clear", "--yes", "--id", "2")[0] == 0
    assert poly("list")[2] == ""
