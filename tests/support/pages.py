"""Pages of Markdown: their code blocks, and the output that their Python prints when it is run in order."""

from __future__ import annotations

import os
import re
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

import pytest

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Lesson:
    """A Python block, and the output shown right after it (None if no output follows)."""

    code: str
    output: str | None
    end: int = 0
    """The position in the page where the output ends, or would begin."""


def lessons(markdown: str) -> list[Lesson]:
    """The Python blocks of a Markdown text, in order."""
    found = []
    blocks = list(BLOCK.finditer(markdown))
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        if block[1] != "python":
            continue
        if following and following[1] == "text" and not markdown[block.end() : following.start()].strip():
            found.append(Lesson(block[2], following[2], following.end(2)))
        else:
            found.append(Lesson(block[2], None, block.end()))
    return found


def played(markdown: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The page with the output that its Python blocks print now, for those whose output it shows.

    The blocks run in order in the folder and share their names; each is kept in a file, since a nest needs its source.
    """
    namespace = {"__name__": "page"}
    pieces, at = [], 0
    for number, lesson in enumerate(lessons(markdown), 1):
        with chdir(folder):
            name = f"block_{number}.py"
            Path(name).write_text(lesson.code)
            exec(compile(lesson.code, name, "exec"), namespace)
        printed = capsys.readouterr().out
        if lesson.output is not None:
            pieces += [markdown[at : lesson.end - len(lesson.output)], printed]
            at = lesson.end
    return "".join(pieces) + markdown[at:]


def check_page(path: Path, now: str) -> None:
    """Assert that the page shows `now`; with POLY_UPDATE_GOLDEN=1, write it."""
    if os.environ.get("POLY_UPDATE_GOLDEN"):
        path.write_text(now)
    assert now == path.read_text(), f"{path.name} is out of date; if it should change, run with POLY_UPDATE_GOLDEN=1"
