"""`poly doctor`: what is broken is told with a remedy and by the exit status, and nothing is changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner

from poly import commands, diagnosis
from poly.commands import doctor
from poly.diagnosis import CHECKS, Diagnosis
from poly.machine import machine
from poly.machine.topology import Cache, CoreKind, MemoryNode


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.delenv("POLY_RECORDS", raising=False)
    monkeypatch.setenv("POLY_CACHE_DIR", str(folder))
    return folder


def tried(name: str) -> list[Diagnosis]:
    return list(CHECKS[name](name))


def run(monkeypatch: pytest.MonkeyPatch, *names: str) -> tuple[int, str]:
    """The exit status and output of a run that tries these alone."""
    monkeypatch.setattr(diagnosis, "CHECKS", {name: CHECKS[name] for name in names})
    monkeypatch.setattr(doctor, "PEERS", "no_such_module")
    done = CliRunner().invoke(commands.poly, ["doctor"])
    return done.exit_code, done.output


def test_what_works_is_told_in_a_table_and_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    status, told = run(monkeypatch, "Python", "compiler", "OpenMP", "cache", "records")
    assert status == 0, told
    assert told.endswith("\neverything that poly needs works\n")
    assert "ok      compiler     " in told and "ok      OpenMP       threads start and join" in told
    assert "note    peers        the benchmarks are not installed\n                     -> pip install" in told
    done = CliRunner().invoke(commands.poly, ["doctor", "--json"])
    found = json.loads(done.stdout)
    assert done.exit_code == 0 and found["ok"]
    names = [check["name"] for check in found["checks"]]
    assert names == ["Python", "packages", "compiler", "OpenMP", "cache", "records", "peers"]
    assert all(check.keys() == {"name", "state", "text", "remedy"} for check in found["checks"])


def test_nothing_that_was_tried_is_left_in_the_cache(own_cache: Path) -> None:
    tried("compiler")
    assert list((own_cache / "kernels").iterdir()) == []


@pytest.mark.parametrize("text", ["exit 1", "exit 0"])
def test_a_compiler_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    fake = tmp_path / "fake-cc"
    fake.write_text(f"#!/bin/sh\n{text}\n")
    fake.chmod(0o755)
    monkeypatch.setenv("POLY_CC", str(fake))
    status, told = run(monkeypatch, "compiler", "cache")
    assert status == 1
    assert "broken  compiler" in told and "POLY_CC" in told and "ok      cache" in told
    assert told.endswith("\nbroken: compiler\n")


def test_a_cache_that_others_can_write_to_is_told(own_cache: Path) -> None:
    (own_cache / "kept").mkdir(parents=True)
    (own_cache / "kept").chmod(0o777)
    (found,) = tried("cache")
    assert found.state == "broken"
    assert f"others can write to {own_cache / 'kept'}" in found.text
    assert found.remedy == "set POLY_CACHE_DIR to a directory that is yours alone"


def test_damaged_records_are_told_and_left(own_cache: Path) -> None:
    own_cache.mkdir(mode=0o700)
    file = own_cache / "records.sqlite"
    file.write_bytes(b"no database" * 100)
    (found,) = tried("records")
    assert found.state == "broken" and "not sound" in found.text
    assert found.remedy == f"move {file} away, or set POLY_RECORDS to another file"
    assert file.read_bytes() == b"no database" * 100 and len(list(own_cache.iterdir())) == 1


def test_files_that_hide_a_package_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "mine"
    (folder / "benchmarks").mkdir(parents=True)
    (folder / "benchmarks" / "__init__.py").touch()
    (folder / "poly.py").touch()
    monkeypatch.chdir(folder)
    found = tried("names")
    assert [one.state for one in found] == ["note", "note"]
    assert (
        found[0].text == f"{folder / 'poly.py'} hides poly's package 'poly' from a Python that is started in {folder}"
    )
    assert found[1].text.startswith(f"{folder / 'benchmarks' / '__init__.py'} hides poly's package 'benchmarks'")
    monkeypatch.chdir(tmp_path)
    assert [one.state for one in tried("names")] == ["ok"]


def test_missing_packages_are_told_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["numpy>=2.0", "no-such-package-here>=3", "absent-too; extra == 'cluster'", "rich>=13; extra == 'shown'"]
    monkeypatch.setattr(metadata, "requires", lambda name: lines)
    _, found = tried("Python")
    assert (found.state, found.remedy) == ("broken", "pip install 'no-such-package-here>=3'")
    monkeypatch.setattr(metadata, "version", lambda name: {"numpy": "1.26.4", "rich": "13.10"}[name])
    monkeypatch.setattr(metadata, "requires", lambda name: ["numpy>=2.0", "rich>=13.7"])
    _, found = tried("Python")
    assert (found.state, found.text) == ("broken", "missing or too old: numpy>=2.0")
    monkeypatch.undo()
    monkeypatch.setattr(metadata, "requires", lambda name: lines)

    class Extras:
        def get_all(self, name: str) -> list[str]:
            return ["cluster", "shown", "dev"]

    monkeypatch.setattr(metadata, "metadata", lambda name: Extras())
    assert tried("extras") == [
        Diagnosis("extras", "note", "cluster: absent-too is not installed", "pip install 'poly-loops[cluster]'"),
        Diagnosis("extras", "ok", "shown: installed"),
    ]


def test_cores_of_several_kinds_and_memory_nodes_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = Cache(1, 32 << 10, 8, 64, 1), Cache(1, 48 << 10, 12, 64, 1)
    kinds = (CoreKind((0, 1, 2, 3), (large,)), CoreKind((4, 6), (small,)))
    nodes = (MemoryNode(0, (0, 1, 2, 3)), MemoryNode(1, (4, 6)))
    monkeypatch.setattr(diagnosis, "machine", lambda: replace(machine(), kinds=kinds, nodes=nodes))
    _, cores, memory, calibration = tried("machine")
    assert cores.text.startswith("cores of 2 kinds: CPUs 0-3: L1 48 KiB; CPUs 4,6: L1 32 KiB")
    assert cores.remedy == "for one kind alone, start programs with taskset -c 0-3"
    assert memory.remedy == "for one node alone, numactl --membind=0 --physcpubind=0-3"
    assert (calibration.state, calibration.remedy) == ("note", "poly machine --calibrate, on a quiet machine")


def test_a_fault_in_one_check_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(name: str) -> Iterator[Diagnosis]:
        yield Diagnosis(name, "ok", "half of it")
        raise ZeroDivisionError("by zero")

    monkeypatch.setitem(CHECKS, "compiler", failing)
    status, told = run(monkeypatch, "compiler", "records")
    assert status == 1
    assert "broken  compiler     ZeroDivisionError: by zero" in told and "ok      records" in told


def test_no_path_is_broken_at_a_line_end() -> None:
    path = "/a-folder/" + "with-a-long-name/" * 6
    one = Diagnosis(
        "cache", "broken", f"{path} cannot be used at all, for a reason that takes some words", f"use {path}"
    )
    told = list(doctor.lines(one, 80))
    assert sum(path in line for line in told) == 2
    assert all(len(line) <= 80 for line in told if path not in line)
