"""On a machine, a measurement runs alone; builds run side by side."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Event, Thread

import pytest

from poly.cluster.turns import alone, beside

MOMENT = 0.2
Turn = Callable[[], AbstractContextManager[None]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def taken(turn: Turn) -> tuple[Thread, Event]:
    """A thread that takes a turn, and whether it has had it."""
    had = Event()

    def run() -> None:
        with turn():
            had.set()

    thread = Thread(target=run)
    thread.start()
    return thread, had


@pytest.mark.parametrize(("first", "second"), [(alone, alone), (alone, beside), (beside, alone)])
def test_nothing_runs_beside_a_measurement(first: Turn, second: Turn) -> None:
    with first():
        thread, had = taken(second)
        assert not had.wait(MOMENT)
    thread.join(10)
    assert had.is_set()


def test_builds_run_side_by_side() -> None:
    with beside():
        thread, had = taken(beside)
        thread.join(10)
        assert had.is_set()


def test_who_waits_to_measure_holds_back_later_builds() -> None:
    with beside():
        measuring, measured = taken(alone)
        assert not measured.wait(MOMENT)
        building, built = taken(beside)
        assert not built.wait(MOMENT)
    for thread in (measuring, building):
        thread.join(10)
    assert measured.is_set() and built.is_set()
