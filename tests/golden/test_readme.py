"""The README's Python blocks run, in order, and print what the text block after them shows."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from pages import Lesson, check_page, lessons, played


@pytest.mark.slow
def test_readme_code_runs_as_shown(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = project / "README.md"
    assert len(lessons(path.read_text())) > 4
    check_page(path, played(path.read_text(), tmp_path, capsys))


def sources(project: Path) -> list[Path]:
    """The Python, C, OpenCL and JSON files of the four layers."""
    layers = (project / layer for layer in ("microkernels", "codegen", "poly", "benchmarks"))
    kinds = (".py", ".c", ".h", ".cl", ".json")
    return [file for layer in layers for file in sorted(layer.rglob("*")) if file.suffix in kinds]


def test_each_folder_is_described(project: Path) -> None:
    page = (project / "docs" / "architecture.md").read_text()
    described = re.findall(r"^(?:\| |\*\*)`([\w/]+)/`", page, re.MULTILINE)
    folders = {str(file.parent.relative_to(project)) for file in sources(project)}
    assert sorted(described) == sorted(folders), "docs/architecture.md has one sentence per folder"


def test_each_module_has_a_docstring(project: Path) -> None:
    modules = [file for file in sources(project) if file.suffix == ".py" and file.read_text().strip()]
    undocumented = [file for file in modules if not ast.get_docstring(ast.parse(file.read_text()))]
    assert [str(file.relative_to(project)) for file in undocumented] == []


def test_blocks_are_found_with_their_output() -> None:
    markdown = "```python\na\n```\n\n```text\n1\n```\n\n```sh\nls\n```\n\n```python\nb\n```\nwords\n\n```text\n2\n```\n"
    first, second = lessons(markdown)
    assert (first, second) == (Lesson("a\n", "1\n", first.end), Lesson("b\n", None, second.end))
    assert markdown[: first.end].endswith("```text\n1\n")
    assert markdown[: second.end].endswith("```python\nb\n```")


def test_a_page_that_shows_something_else_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    markdown = "```python\nx = 1\n```\n\n```python\nprint(x + 1)\n```\n\n```text\n{}\n```\nend\n"
    assert played(markdown.format(2), tmp_path, capsys) == markdown.format(2)
    assert played(markdown.format(3), tmp_path, capsys) == markdown.format(2)
