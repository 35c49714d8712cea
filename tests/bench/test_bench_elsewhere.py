"""`poly bench FILE:NAME --workers`: what a worker gets, and what it does with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.own.elsewhere import Errand, carried_out, errand
from poly import commands
from poly.errors import SpecError


def test_a_worker_gets_the_files_and_their_names(tmp_path: Path) -> None:
    nest, other = tmp_path / "a.py", tmp_path / "b.c"
    nest.write_text("one")
    other.write_text("two")
    made = errand([f"{nest}:f", "clang", f"{nest}:g", f"{other}:h"], ["--threads=1"])
    assert made.arguments == ("a.py:f", "clang", "a.py:g", "b.c:h", "--threads=1")
    assert made.files == {"a.py": b"one", "b.c": b"two"}


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.py").write_text("")
    with pytest.raises(SpecError, match=r"in one folder, and two are called a\.py"):
        errand([f"{tmp_path}/one/a.py:f", f"{tmp_path}/two/a.py:f"], [])


def test_the_command_runs_in_the_folder_of_the_files() -> None:
    reply = carried_out(Errand(("a.py:nothing",), {"a.py": b"import poly\n"}))
    assert reply.status == 2 and "a.py" in reply.text and "nothing" in reply.text


def test_what_is_written_here_does_not_go_with_workers(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import poly\n")
    command = ["bench", f"{tmp_path}/a.py:f", "--workers", "tcp://127.0.0.1:1", "--json", "-"]
    done = CliRunner().invoke(commands.poly, command)
    assert done.exit_code == 2 and "leave out what is written, kept or compared" in done.output
