"""What else the machine did: CPU time of others, told from ours by the process tree."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from poly.timing import load
from poly.timing.load import MachineLoad, Watch


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A system whose files the test writes, and a clock that a test sets."""
    monkeypatch.setattr(load, "PROC", tmp_path)
    monkeypatch.setattr(load, "_hertz", lambda: 100)
    return tmp_path


def machine(proc: Path, user: int, stolen: int = 0) -> None:
    (proc / "stat").write_text(f"cpu  {user} 0 0 900 0 0 0 {stolen} 0 0\ncpu0 1 2 3\n")


def process(proc: Path, number: int, parent: int, *ticks: int) -> None:
    (proc / str(number)).mkdir(exist_ok=True)
    (proc / str(number) / "stat").write_text(f"{number} (a b) c) R {parent} {'0 ' * 9}{' '.join(map(str, ticks))} 20 0")


def watched(proc: Path, monkeypatch: pytest.MonkeyPatch, seconds: float = 2.0) -> MachineLoad:
    """In two seconds all processes use three of CPU time: we a half, our child one, and its ended child a half."""
    times = iter((10.0, 10.0 + seconds))
    monkeypatch.setattr(load, "monotonic", lambda: next(times))
    machine(proc, 1000, 7)
    process(proc, os.getpid(), 1, 100, 0, 0, 0)
    process(proc, 77, os.getpid(), 50, 0, 0, 0)
    process(proc, 88, 1, 500, 0, 0, 0)
    watch = Watch.start()
    machine(proc, 1300, 27)
    process(proc, os.getpid(), 1, 140, 10, 0, 0)
    process(proc, 77, os.getpid(), 120, 30, 40, 10)
    process(proc, 88, 1, 600, 0, 0, 0)
    return watch.load()


def test_others_are_the_rest_of_the_busy_time(proc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = watched(proc, monkeypatch)
    assert found.others == pytest.approx((3.0 - 0.5 - 1.5) / 2)
    assert found.stolen == pytest.approx(0.1)
    assert found.busy


def test_a_moment_tells_nothing(proc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = watched(proc, monkeypatch, seconds=0.01)
    assert (found.others, found.stolen, found.busy) == (None, None, False)


def test_a_system_without_these_files_tells_nothing(proc: Path) -> None:
    found = Watch.start().load()
    assert (found.others, found.busy, found.text()) == (None, False, "")


def test_the_text_names_who_was_busy() -> None:
    quiet = MachineLoad(1.0, 4, 0.3, others=0.05, stolen=0.0)
    assert quiet.text() == "" and not quiet.busy
    busy = MachineLoad(1.0, 4, 1.3, others=1.0, stolen=0.5)
    assert busy.text() == (
        "the machine was busy: other processes used 1.0 of 4 CPUs and other virtual machines took 0.5 of 4 CPUs "
        "meanwhile (load average 1.3)"
    )
    assert busy.facts()["others"] == 1.0 and busy.facts()["busy"]
