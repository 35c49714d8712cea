"""The command line: what it shows, and that a user's mistake gives one message and status 2."""

from __future__ import annotations

import json
import sys
from importlib import metadata
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from microkernels import plugins
from poly import commands
from poly.commands import header, show
from poly.commands import machine as machine_command
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
    monkeypatch.setattr(machine_command, "measured", lambda machine, anew: RATES)
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


def test_each_command_is_one_whole_line_of_the_help() -> None:
    """Click ends a line that is too long for 80 columns with dots."""
    own = {command.name: command for command in commands.OWN}
    _, out, _ = poly("--help")
    _, _, listed = out.partition("Commands:")
    assert len(listed.splitlines()) > len(own)
    assert [line for line in listed.splitlines() if line.endswith("...")] == []
    for name, command in own.items():
        assert name == command.load().name
        assert f"{command.help}\n" in out


def test_without_the_benchmarks_their_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "benchmarks.cli", None)
    monkeypatch.setattr(commands, "HOME", tmp_path)
    status, _, err = poly("bench", "gemm")
    assert status == 2
    assert "the benchmarks are not installed: pip install 'poly-loops[bench]'" in err


def test_what_hides_the_benchmarks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "__init__.py").write_text("")
    for name in [name for name in sys.modules if name.split(".")[0] == "benchmarks"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    status, _, err = poly("bench", "gemm")
    assert status == 2
    assert f"{tmp_path / 'benchmarks' / '__init__.py'} hides poly's package 'benchmarks'" in err
    assert "rename it" in err


STEPS = [{"step": "tile", "args": [], "kwargs": {"i": 4}}]
RECORD = {"key": {"sizes": {"M": 8}}, "schedule": json.dumps(STEPS)}


@pytest.mark.parametrize(
    ("given", "sizes"),
    [
        (STEPS, {}),
        ({"steps": STEPS, "sizes": {"M": 8}, "schedule": "schedule(double).tile(i=4)"}, {"M": 8}),
        ({"steps": json.dumps(STEPS)}, {}),
        (RECORD, {"M": 8}),
        ([RECORD], {"M": 8}),
    ],
)
@pytest.mark.parametrize("way", ["text", "file", "stdin"])
def test_steps_come_from_what_other_commands_print(file: Path, given: object, sizes: dict[str, int], way: str) -> None:
    text = json.dumps(given)
    stored = file.with_name("steps.json")
    stored.write_text(text)
    option = {"text": text, "file": str(stored), "stdin": "-"}[way]
    done = CliRunner().invoke(commands.poly, ["show", f"{file}:double", "--schedule", "--steps", option], input=text)
    first = "for i_tile in range(2):" if sizes else "for i_tile in range((M + 3) // 4):"
    assert done.stdout.splitlines()[0].partition(":")[0] + ":" == first


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("none.json", "'none.json': this is neither JSON nor a file of it"),
        ("[1", "this is neither JSON nor a file of it"),
        ("/dev/zero", "this is neither JSON nor a file of it"),
        ('{"a": 1}', "has no steps"),
        (json.dumps([RECORD, RECORD]), "or several schedules"),
        ('[{"step": "paint", "args": [], "kwargs": {}}]', "paint"),
    ],
)
def test_what_is_no_steps(file: Path, given: str, message: str) -> None:
    status, _, err = poly("show", f"{file}:double", "--steps", given)
    assert status == 2 and message in err and "Error: " in err


def test_the_steps_of_one_nest_are_for_no_other(file: Path, tmp_path: Path) -> None:
    file.write_text(
        f"{NEST}\n{NEST.partition('@')[2].replace('double', 'twice').replace('poly.nest', '@poly.nest', 1)}"
    )
    status, _, err = poly("header", str(file), "-o", str(tmp_path / "a.h"), "--steps", json.dumps(STEPS))
    assert status == 2 and "has several nests (double, twice)" in err and not (tmp_path / "a.h").exists()
    assert (
        poly("header", f"{file}:twice", "-o", str(tmp_path / "a.h"), "--steps", json.dumps(STEPS), "--isa", "portable")[
            0
        ]
        == 0
    )
    assert "i_tile" in (tmp_path / "a.h").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["header", "{file}:double", "-o", "{folder}/none/a.h"], "-o {folder}/none/a.h: there is no such folder"),
        (["header", "{file}:double", "-o", "{folder}"], "-o {folder}: this is a folder; name a file in it"),
        (["show", "{file}:double", "--model", "--plot", "{folder}/a.gif"], "the name must end in .png, .svg, .pdf"),
        (["show", "{file}:double", "--model", "--plot", "{folder}/none/a.png"], "there is no such folder"),
        (["records", "export", "{folder}"], "FILE {folder}: this is a folder; name a file in it"),
    ],
)
def test_outputs_are_checked_before_the_work(
    file: Path, tmp_path: Path, arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (show, header):
        monkeypatch.setattr(module, "compile_nest", lambda *_, **__: pytest.fail("the work began"))
    status, _, err = poly(*(argument.format(file=file, folder=tmp_path) for argument in arguments))
    assert status == 2 and message.format(folder=tmp_path) in err


def test_an_interrupted_command_says_so(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(show, "compile_nest", interrupted)
    status, _, err = poly("show", f"{file}:double")
    assert status == 130 and err == "Interrupted.\n"


def test_why_not_is_shown(file: Path) -> None:
    status, out, _ = poly("show", f"{file}:double", "--size", "M=8", "--why-not", "--threads", "1")
    assert status == 0 and "not parallel" in out and "the schedule is for one thread" in out
    assert "\nwhy not\n" in poly("show", f"{file}:double")[1]
