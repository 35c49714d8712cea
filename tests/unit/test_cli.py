"""The command line: what it shows, and that a user's mistake gives one message and status 2."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from microkernels import plugins
from poly import commands
from poly.machine import Bandwidth, Measured, Peak

NEST = """import poly
from poly import f32

M, N = poly.sizes("M N")

@poly.nest
def double(A: f32[M, N], B: f32[M, N]):
    for i in range(M):
        for j in range(N):
            B[i, j] = 2 * A[i, j]
"""
RATES = Measured((Peak("f32", 1, 100.0),), (Bandwidth("L1", 1, 200.0, 150.0),))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "loops.py"
    path.write_text(NEST)
    return path


def poly(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(commands.poly, list(arguments))
    return done.exit_code, done.stdout, done.stderr


def test_show_prints_nest_dependences_loops_and_source(file: Path) -> None:
    status, out, _ = poly("show", f"{file}:double", "--size", "M=8")
    assert status == 0
    for expected in (
        "nest",
        "B[i, j] = 2 * A[i, j]",
        "dependences",
        "no dependences",
        "schedule",
        "for i in range(8)",
        "source",
        "int32_t double",
    ):
        assert expected in out


@pytest.mark.parametrize(
    ("flag", "expected", "absent"),
    [
        ("--dependences", "no dependences", "int32_t"),
        ("--schedule", "for i in range", "int32_t"),
        ("--source", "int32_t double", "no dependences"),
    ],
)
def test_show_prints_one_part_alone(file: Path, flag: str, expected: str, absent: str) -> None:
    status, out, _ = poly("show", f"{file}:double", flag)
    assert status == 0
    assert expected in out
    assert absent not in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "loops.py"], "'loops.py' is not of the form FILE.py:NAME"),
        (["show", "absent.py:double"], "there is no file absent.py"),
        (["show", "{file}:duble"], "has no nest 'duble'; it has double. Did you mean double?"),
        (["show", "{file}:double", "--size", "Q=3"], "no size Q"),
        (["show", "{file}:double", "--size", "M"], "'M' is not of the form M=512"),
        (["show", "{file}:double", "--target", "c:mmx"], "unknown target 'c:mmx'"),
        (["paint"], "No such command 'paint'"),
    ],
)
def test_a_mistake_gives_one_message_and_status_two(file: Path, arguments: list[str], message: str) -> None:
    status, _, err = poly(*(argument.format(file=file) for argument in arguments))
    assert status == 2
    assert message in err
    assert "Traceback" not in err


def test_a_file_that_fails_is_told_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import no_such_module\n")
    status, _, err = poly("show", f"{tmp_path / 'broken.py'}:nest")
    assert status == 2
    assert "cannot be run: ModuleNotFoundError: No module named 'no_such_module'" in err


def test_machine_as_table_and_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands.machine, "measured", lambda machine, anew: RATES)
    status, out, _ = poly("machine")
    assert status == 0
    assert "FMA peak" in out and "100.0" in out
    status, out, _ = poly("machine", "--json")
    assert json.loads(out)["peaks"] == [{"dtype": "f32", "threads": 1, "gflops": 100.0}]


def test_commands_of_other_packages_come_by_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def paint() -> None:
        click.echo("painted")

    class Entry(metadata.EntryPoint):
        def load(self) -> click.Command:
            return paint

    entry = Entry("paint", "somewhere:paint", commands.GROUP)
    monkeypatch.setattr(plugins, "entry_points", lambda **wanted: metadata.EntryPoints([entry]).select(**wanted))
    _, out, _ = poly("--help")
    assert "paint" in out and "machine" in out and "show" in out
    assert poly("paint")[:2] == (0, "painted\n")
