"""docs/errors.md and docs/schedules.md run as they show, and leave nothing public out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from opencl_device import device
from pages import check_page, played

import poly


def page(project: Path, name: str) -> Path:
    return project / "docs" / f"{name}.md"


def test_errors_are_as_shown(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    device()
    monkeypatch.setenv("POLY_RECORDS", "unused.sqlite")  # the page changes both, and they are put back
    monkeypatch.delenv("POLY_CC", raising=False)
    path = page(project, "errors")
    check_page(path, played(path.read_text(), tmp_path, capsys))


def test_each_error_and_warning_has_a_section_with_an_example(project: Path) -> None:
    public = {name for name in poly.__all__ if isinstance(getattr(poly, name), type)}
    kinds = {name for name in public if issubclass(getattr(poly, name), (poly.PolyError, Warning))}
    sections = re.split(r"^## ", page(project, "errors").read_text(), flags=re.MULTILINE)[1:]
    examples = {title: text for title, _, text in (section.partition("\n") for section in sections)}
    assert examples.keys() == kinds - {"PolyError"}
    for name, text in examples.items():
        assert re.search(rf"^```text\n(?:.*\n)*?{name}: ", text, re.MULTILINE), name
        assert "*What to do:*" in text, name
