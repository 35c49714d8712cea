"""docs/opencl.md from the top to the bottom: its Python and its commands run, and print what it shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from headers import GCC, need, succeed
from opencl_device import device
from pages import BLOCK
from scripts import with_poly

pytestmark = pytest.mark.slow

FILE = re.compile(r"(?:/\*|#) ([\w./]+\.\w+)")
"""A block's first line, where that names the file it is."""


def test_the_page_runs_as_shown(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need(GCC)
    device()
    environment = with_poly(project, tmp_path / "bin")
    folder = tmp_path / "page"
    folder.mkdir()
    namespace = {"__name__": "page"}
    printed = None
    for number, block in enumerate(BLOCK.finditer((project / "docs" / "opencl.md").read_text())):
        language, text = block[1], block[2]
        name = FILE.match(text)
        path = folder / (name[1] if name else f"block_{number}.py")
        if language == "text":
            assert printed == text, f"something else than the page shows:\n{printed}"
        elif language == "sh":
            printed = succeed(["sh", "-e", "-c", text], cwd=folder, env=environment)
        else:
            path.write_text(text)
        if language == "python":
            exec(compile(text, str(path), "exec"), namespace)
            printed = capsys.readouterr().out
