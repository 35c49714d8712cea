"""docs/embedding.md from the top to the bottom: its files are written, its commands run, and print what it shows.

The compiler optimises less than the page says, and the portable kernels alone: other tests build headers at each level
and for each instruction set.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from headers import GCC, need, need_tool, quick, succeed
from pages import BLOCK
from scripts import quick_poly, script, with_poly

pytestmark = pytest.mark.slow

FILE = re.compile(r"(?:/\*|//|#) ([\w.]+)")
"""A block's first line, where that names the file it is."""


def test_the_page_runs_as_shown(project: Path, tmp_path: Path) -> None:
    need(GCC)
    need_tool("make")
    environment = with_poly(project, tmp_path / "bin")
    quick_poly(tmp_path / "bin" / "poly")
    script(tmp_path / "bin" / "cc", f'"{shutil.which("cc")}" "$@" {" ".join(quick(GCC))}')
    folder = tmp_path / "page"
    folder.mkdir()
    printed = None
    for block in BLOCK.finditer((project / "docs" / "embedding.md").read_text()):
        language, text = block[1], block[2]
        if language == "sh":
            printed = succeed(["sh", "-e", "-c", text], cwd=folder, env=environment)
        elif language == "text":
            assert printed == text, f"something else than the page shows:\n{printed}"
        else:
            name = FILE.match(text)
            assert name, f"what file is this?\n{text}"
            (folder / name[1]).write_text(text)


def test_the_page_lists_each_status(project: Path) -> None:
    from codegen.package.header.status import STATUSES

    page = (project / "docs" / "embedding.md").read_text()
    told = dict(re.findall(r"^\| `MATMUL_(\w+)` \| (.*) \|$", page, re.MULTILINE))
    assert {name: text.replace("`", "").replace("MATMUL_", "PFX_") for name, text in told.items()} == STATUSES
