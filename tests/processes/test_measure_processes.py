"""What measuring leaves behind: no process, no file, and no answer to a question that was given up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import artificial
import pytest
from artificial import MATMUL, is_good, point, spoil, tiled_space

from poly.measure.child import Child
from poly.measure.live import LiveMeasurer, workplace
from poly.search.events import Ask


def test_a_process_that_is_killed() -> None:
    others = children()
    with LiveMeasurer(tiled_space(MATMUL, "i")) as measurer:
        measurer.measure(Ask((point(0),)))
        (child,) = children() - others
        os.kill(int(child), signal.SIGKILL)
        killed, good = measurer.measure(Ask((point(1), point(2))))
        assert killed.failure == "crashed: Killed (SIGKILL), as happens when memory runs out"
        assert is_good(good)


def test_no_process_is_left_behind() -> None:
    others = children()
    with LiveMeasurer(tiled_space(MATMUL, "i")) as measurer:
        measurer.measure(Ask((point(0),)))
        assert children() - others
    assert not children() - others


def children() -> set[str]:
    """The processes that this one has started and that still live; other tests may have left some."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def test_nothing_is_left_on_the_disk() -> None:
    with LiveMeasurer(tiled_space(MATMUL, "i")) as measurer:
        folder = measurer._folder
        measurer.measure(Ask((point(0), point(1))))
        measurer.measure(Ask((point(2),), point(1)))
        libraries = {built.path for built in measurer._built.values()}
        assert libraries <= set(folder.glob("*.so"))
        assert len(libraries) == 2
    assert not folder.exists()


def test_what_a_killed_search_left_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLY_CACHE_DIR", str(tmp_path))
    old, young = workplace() / "old", workplace() / "young"
    for folder in (old, young):
        folder.mkdir()
        (folder / "kernel.so").write_text("")
    os.utime(old, (0, 0))
    workplace()
    assert not old.exists()
    assert young.exists()


def test_an_interrupt_leaves_it_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer that nobody waited for is not taken for the next one's."""
    ask = Child.ask

    def interrupted(self: Child, order: object, seconds: float) -> object:
        monkeypatch.setattr(Child, "ask", ask)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        return ask(self, order, seconds)

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    spoil(monkeypatch, {1: artificial.HANG})
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with LiveMeasurer(tiled_space(MATMUL, "i")) as measurer:
            measurer.measure(Ask((point(0),)))
            monkeypatch.setattr(Child, "ask", interrupted)
            with pytest.raises(KeyboardInterrupt):
                measurer.measure(Ask((point(1),)))
            (trial,) = measurer.measure(Ask((point(2),)))
            assert is_good(trial)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_script_without_a_main_guard_that_is_killed(tmp_path: Path, project: Path) -> None:
    """Its child does not start the script again, and ends by itself though a candidate hangs."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import os, signal, pytest, artificial, doc_nests
        from poly.measure.live import LiveMeasurer
        from poly.search.events import Ask
        print("started", flush=True)
        nest = doc_nests.matmul.with_sizes({"M": 20, "N": 16, "K": 12})
        artificial.spoil(pytest.MonkeyPatch(), {1: artificial.HANG})
        measurer = LiveMeasurer(artificial.tiled_space(nest, "i"), patience=1.5)
        measurer.measure(Ask((artificial.point(0),)))
        print(measurer._station._child._process.pid, flush=True)
        measurer.measure(Ask((artificial.point(1),)))
    """)
    )
    paths = os.pathsep.join((str(project), str(project / "tests" / "support")))
    environment = {**os.environ, "PYTHONPATH": paths, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, str(script)], env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        child = int(process.stdout.readline())
        time.sleep(0.5)
        process.kill()
        assert process.stdout.read() == ""
    deadline = time.monotonic() + 20
    while Path(f"/proc/{child}/cmdline").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not Path(f"/proc/{child}/cmdline").exists()
