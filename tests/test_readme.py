"""The README's Python blocks run, in order, and print what the text block after them shows."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Lesson:
    """A Python block, and the output shown right after it (None where none is)."""

    code: str
    output: str | None


def lessons(markdown: str) -> list[Lesson]:
    """The Python blocks of a Markdown text, in order."""
    found = []
    blocks = list(BLOCK.finditer(markdown))
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        if block[1] != "python":
            continue
        adjacent = (
            following is not None and following[1] == "text" and not markdown[block.end() : following.start()].strip()
        )
        found.append(Lesson(block[2], following[2] if adjacent else None))
    return found


def test_readme_code_runs_as_shown(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = lessons((project / "README.md").read_text())
    assert found
    namespace = {"__name__": "readme"}
    for number, lesson in enumerate(found, 1):
        path = tmp_path / f"readme_{number}.py"
        path.write_text(lesson.code)
        exec(compile(lesson.code, str(path), "exec"), namespace)
        printed = capsys.readouterr().out
        if lesson.output is not None:
            assert printed == lesson.output, f"block {number} printed something else than the README shows"


def sources(project: Path) -> list[Path]:
    """The Python, C and OpenCL files of the four layers."""
    layers = (project / layer for layer in ("microkernels", "codegen", "poly", "benchmarks"))
    return [file for layer in layers for file in sorted(layer.rglob("*")) if file.suffix in (".py", ".c", ".h", ".cl")]


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
    assert lessons(markdown) == [Lesson("a\n", "1\n"), Lesson("b\n", None)]


def test_readme_commands_exist(project: Path) -> None:
    """Each `make` target and `poly` command that the README names."""
    readme = (project / "README.md").read_text()
    shell = "\n".join(block[2] for block in BLOCK.finditer(readme) if block[1] == "sh")
    targets = set(re.findall(r"^(\w+):", (project / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"^make (\w+)", shell, re.MULTILINE)) <= targets
    for command in re.findall(r"^poly (\w+)", shell, re.MULTILINE):
        done = subprocess.run([sys.executable, "-m", "poly.cli", command, "--help"], capture_output=True, cwd=project)
        assert done.returncode == 0 or command == "bench", done.stderr
