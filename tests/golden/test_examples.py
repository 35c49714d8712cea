"""Every numbered lesson runs, and prints the loops that it talks about."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from opencl_device import device
from pages import lessons

from poly import commands
from poly.commands.nestfile import open_nests

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
LESSONS = sorted((ROOT / "examples").glob("[0-9][0-9]_*.py"))
OPENCL = ROOT / "examples" / "opencl_matmul.py"


def test_lessons_are_numbered_without_gaps() -> None:
    assert [int(path.name[:2]) for path in LESSONS] == list(range(1, len(LESSONS) + 1))


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_lesson_runs_and_prints_its_loops(lesson: Path, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, lesson], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search(r"\bfor\b.*[:{;]", done.stdout), "a lesson shows the loops"
    assert not list(tmp_path.iterdir()), "a lesson leaves no files behind"


@pytest.mark.parametrize("lesson", [*LESSONS, OPENCL], ids=lambda path: path.stem)
def test_showing_a_nest_does_not_run_the_lesson(lesson: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if lesson == OPENCL:
        pytest.importorskip("pyopencl")
    nests = open_nests(str(lesson)).nests
    assert nests
    assert capsys.readouterr().out == ""
    for nest in nests:
        shown = CliRunner().invoke(commands.poly, ["show", f"{lesson}:{nest.name}", "--schedule"])
        assert (shown.exit_code, shown.stderr) == (0, "")
        assert shown.stdout.startswith("for ")


def test_the_first_lesson_is_about_the_first_nest_of_the_readme() -> None:
    nest = re.compile(r"^@poly\.nest\n(?:.+\n)+", re.MULTILINE)
    first, *_ = lessons((ROOT / "README.md").read_text())
    assert nest.findall(first.code) == nest.findall(LESSONS[0].read_text())


def test_the_opencl_example(tmp_path: Path) -> None:
    device()
    test_lesson_runs_and_prints_its_loops(OPENCL, tmp_path)
