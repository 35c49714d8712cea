"""docs/why_not.md runs as it shows, and names every cause of a reason."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from pages import check_page, played

from poly.explanation import explained
from poly.explanation.reasons import Cause
from poly.machine import Bandwidth, Measured, Peak
from poly.model.rates import from_machine

RATES = Measured(
    (Peak("f32", 1, 100.0),), tuple(Bandwidth(level, 1, 50.0, 50.0) for level in ("L1", "L2", "L3", "memory"))
)


def test_reasons_are_as_shown(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(explained, "measured", lambda machine: RATES)
    monkeypatch.setattr(explained, "rates", lambda isa, threads: from_machine(RATES, isa, threads))
    monkeypatch.setenv("POLY_RECORDS", str(tmp_path / "records.sqlite"))
    page = project / "docs" / "why_not.md"
    check_page(page, played(page.read_text(), tmp_path, capsys))


def test_every_cause_is_described(project: Path) -> None:
    rows = re.findall(r"^\| (`.*?) \|", (project / "docs" / "why_not.md").read_text(), re.MULTILINE)
    assert sorted(re.findall(r"`([\w ]+)`", " ".join(rows))) == sorted(get_args(Cause))
