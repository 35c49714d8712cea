"""docs/reliability.md: its Python runs and prints what it shows, what it names exists, its counts are the tests'."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from blas_library import LEVELS
from fuzz.cli import command as fuzz
from header_builds import BUILDS, covering
from pages import BLOCK, lessons

from microkernels.isa import ISAS


@pytest.fixture
def page(project: Path) -> str:
    return (project / "docs" / "reliability.md").read_text()


def commands(page: str) -> Iterator[str]:
    for block in BLOCK.finditer(page):
        if block[1] == "sh":
            yield from block[2].splitlines()


def test_its_python_runs_as_shown(page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (lesson,) = lessons(page)
    path = tmp_path / "page.py"
    path.write_text(lesson.code)
    exec(compile(lesson.code, str(path), "exec"), {"__name__": "page"})
    assert capsys.readouterr().out == lesson.output


def test_its_command_has_these_options(page: str) -> None:
    known = {option for parameter in fuzz.params for option in parameter.opts}
    told = [line for line in commands(page) if line.startswith("poly fuzz ")]
    assert told
    assert set(re.findall(r"--\w+", "".join(told))) <= known


def test_the_files_that_it_names_exist(page: str, project: Path) -> None:
    named = re.findall(r"`(?:tests/)?(\w+/test_\w+\.py|fuzz/)`", page) + re.findall(r" tests/(\w+/\w+\.py)", page)
    assert len(named) > 40
    assert [name for name in named if not (project / "tests" / name).exists()] == []
    linked = re.findall(r"\]\(([\w/.]+)\)", page)
    assert [name for name in linked if not (project / "docs" / name).exists()] == []


def test_its_settings_are_read(page: str, project: Path) -> None:
    """By the file that the command runs."""
    command = re.compile(r"(POLY_\w+)=\w+ python -m pytest (?:-n 2 )?(tests/\w+/\w+\.py)")
    found = [command.match(line) for line in commands(page)]
    settings = [(match[1], match[2]) for match in found if match]
    assert len(settings) == 3
    assert [name for name, path in settings if f'environ.get("{name}"' not in (project / path).read_text()] == []


def test_the_testers_make_as_many_calls(page: str) -> None:
    told = {
        name: int(calls.replace(" ", "")) for name, calls in re.findall(r"^\| (\w+) \| ([\d ]+) \| 0 \|$", page, re.M)
    }
    assert told == {name: 2 * calls for level in LEVELS for name, calls in level.calls.items()}
    x86 = [name for name in ISAS if name != "neon"]
    assert f"{2 * len(x86) * sum(told.values()):,}".replace(",", " ") + " calls" in page


def test_the_matrix_has_as_many_builds(page: str) -> None:
    assert f"take {len(covering(BUILDS))} builds" in page
    assert f"combined are {len(BUILDS)} " in page
