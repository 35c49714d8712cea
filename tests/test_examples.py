"""Every numbered lesson runs, and prints the loops that it talks about."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from opencl_device import device

ROOT = Path(__file__).parent.parent
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


def test_the_opencl_example(tmp_path: Path) -> None:
    device()
    test_lesson_runs_and_prints_its_loops(OPENCL, tmp_path)
