"""Measuring real kernels: good ones are timed, bad ones are named by what they did, and the search goes on."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import artificial
import classic_nests
import doc_nests
import islpy as isl
import pytest
from artificial import default_space, point, spoil, tiled_space
from contractions import Contraction

import poly
from codegen.affine import Affine
from poly import f32
from poly.errors import SearchError
from poly.measure import LiveMeasurer, trusted
from poly.measure.child import Child
from poly.measure.place import workplace
from poly.nest import Nest
from poly.search.trial import Ask, Trial
from poly.spaces.space import Space

MATMUL = doc_nests.matmul.with_sizes({"M": 20, "N": 16, "K": 12})
ELEMENTS = 20 * 16


def measure(space: Space, *numbers: int, champion: int | None = None, **how: object) -> list[Trial]:
    with LiveMeasurer(space, **how) as measurer:
        return measurer.measure(Ask(tuple(map(point, numbers)), None if champion is None else point(champion)))


def is_good(trial: Trial) -> bool:
    return not trial.failure and all(seconds > 0 for seconds in trial.samples) and len(trial.samples) > 0


def test_a_trial_for_each_point_in_order() -> None:
    trials = measure(tiled_space(MATMUL, "i"), 2, 0, 1, 2, samples=3)
    assert [trial.point for trial in trials] == [point(2), point(0), point(1), point(2)]
    assert all(is_good(trial) and len(trial.samples) == 3 and not trial.rival for trial in trials)


def test_in_turn_with_the_champion() -> None:
    trials = measure(tiled_space(MATMUL, "i"), 1, 2, champion=0)
    assert all(is_good(trial) and len(trial.rival) == len(trial.samples) for trial in trials)


def test_the_champion_may_be_its_own_challenger() -> None:
    (trial,) = measure(tiled_space(MATMUL, "i"), 0, champion=0)
    assert is_good(trial)
    assert len(trial.rival) == len(trial.samples)


def test_a_new_champion_takes_the_place_of_the_old() -> None:
    with LiveMeasurer(tiled_space(MATMUL, "i")) as measurer:
        for champion, challenger in ((0, 1), (1, 2), (1, 3), (0, 2)):
            (trial,) = measurer.measure(Ask((point(challenger),), point(champion)))
            assert is_good(trial)
            assert trial.rival
        assert measurer.effort.trials == 4
        assert measurer.effort.seconds_per_trial > 0


WRONG = {
    1: (artificial.SEGFAULT, r"^crashed: Segmentation fault \(SIGSEGV\)"),
    2: (artificial.TRAP, r"^crashed: \w.* \(SIG(ILL|TRAP)\)"),
    3: (artificial.EXIT, r"^ended with exit status 3"),
    4: (artificial.HANG, r"^hangs: it was stopped after \S+ seconds"),
    5: ("C[7] += 1;", r"^wrong result: C\[0, 7\] is -?\d+\.\d+, not -?\d+\.\d+$"),
    6: ("C[7] = 0/0.;", r"^wrong result: C\[0, 7\] is -?nan, not -?\d+\.\d+$"),
    7: (f"C[{ELEMENTS}] = 0;", r"^wrote beside the array C$"),
    8: ("C[-1] = 0;", r"^wrote beside the array C$"),
    9: ("unknown words;", r"^does not compile: the C compiler failed(.|\n)*error: .*unknown"),
}
"""What a kernel begins with, and what is said of it then."""


def test_what_candidates_do_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """The failure says so, and those that come next are measured."""
    spoil(monkeypatch, {number: code for number, (code, _) in WRONG.items()})
    numbers = [number for bad in WRONG for number in (bad, 0)]
    trials = measure(tiled_space(MATMUL, "i"), *numbers, samples=2, patience=2.5)
    for (_, reason), bad, good in zip(WRONG.values(), trials[::2], trials[1::2], strict=True):
        assert re.search(reason, bad.failure), bad.failure
        assert bad.samples == bad.rival == ()
        assert is_good(good), good.failure


def test_what_challengers_do_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(monkeypatch, {1: artificial.SEGFAULT, 2: "C[7] += 1;"})
    crash, good, wrong, better = measure(tiled_space(MATMUL, "i"), 1, 3, 2, 4, champion=0)
    assert crash.failure.startswith("crashed: ")
    assert wrong.failure.startswith("wrong result: ")
    assert crash.rival == wrong.rival == ()
    assert is_good(good)
    assert is_good(better)


def test_a_slow_challenger_gets_one_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(monkeypatch, {1: "for (volatile int n = 0; n < 3000000; n = n + 1);"})
    (trial,) = measure(tiled_space(MATMUL, "i"), 1, champion=0)
    assert len(trial.samples) == len(trial.rival) == 1
    assert trial.samples > trial.rival


def test_out_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(monkeypatch, {1: artificial.GREEDY}, "_workspace")
    bad, good = measure(tiled_space(MATMUL, "i"), 1, 2)
    assert bad.failure == "out of memory"
    assert is_good(good)


def test_what_is_left_out_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the nest assigns, results of the candidate before are not there any more."""
    spoil(monkeypatch, {1: "return 0;"})
    good, bad = measure(tiled_space(doc_nests.copy.with_sizes({"M": 6, "N": 8}), "i"), 0, 1)
    assert is_good(good)
    assert bad.failure.startswith("wrong result: B[0, 0] is nan")


def test_a_champion_that_fails_is_no_win_for_the_challenger(monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(monkeypatch, {0: artificial.SEGFAULT, 1: "unknown words;"})
    for champion in (0, 1):
        (trial,) = measure(tiled_space(MATMUL, "i"), 2, champion=champion)
        assert trial.samples == ()
        assert trial.failure.startswith("the champion, to be timed in turn with it, failed: ")


def test_a_process_that_is_killed() -> None:
    with LiveMeasurer(tiled_space(MATMUL, "i")) as measurer:
        measurer.measure(Ask((point(0),)))
        (child,) = children()
        os.kill(int(child), signal.SIGKILL)
        killed, good = measurer.measure(Ask((point(1), point(2))))
        assert killed.failure == "crashed: Killed (SIGKILL), as where memory runs out"
        assert is_good(good)


def test_a_schedule_that_cannot_be_made() -> None:
    (trial,) = measure(tiled_space(MATMUL, "nowhere"), 0)
    assert trial.failure.startswith("ScheduleError: ")
    assert "nowhere" in trial.failure


def test_no_process_is_left_behind() -> None:
    with LiveMeasurer(tiled_space(MATMUL, "i")) as measurer:
        measurer.measure(Ask((point(0),)))
        assert children()
    assert not children()


def children() -> list[str]:
    """The processes that this one has started and that still live."""
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


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
        from poly.measure import LiveMeasurer
        from poly.search.trial import Ask
        print("started", flush=True)
        nest = doc_nests.matmul.with_sizes({"M": 20, "N": 16, "K": 12})
        artificial.spoil(pytest.MonkeyPatch(), {1: artificial.HANG})
        measurer = LiveMeasurer(artificial.tiled_space(nest, "i"), patience=1.5)
        measurer.measure(Ask((artificial.point(0),)))
        print(measurer._child._process.pid, flush=True)
        measurer.measure(Ask((artificial.point(1),)))
    """)
    )
    paths = os.pathsep.join((str(project), str(project / "tests")))
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


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_threads_and_caches(threads: int, cold: bool) -> None:
    for trial in measure(tiled_space(MATMUL, "i", threads=threads), 0, 1, champion=0, cold=cold):
        assert is_good(trial)


def test_open_sizes() -> None:
    """Kernels of a symbolic nest are measured at the sizes that the space names."""
    (trial,) = measure(tiled_space(doc_nests.matmul, "i", M=20, N=16, K=12), 1, champion=0)
    assert is_good(trial)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("gemm", {"M": 21, "N": 18, "K": 9}),
        ("cholesky", {"N": 40}),
        ("lu", {"N": 40}),
        ("floyd", {"N": 20}),
        ("jacobi1d", {"N": 60, "T": 9}),
        ("softmax", {"M": 12, "N": 30}),
        ("trisolve", {"N": 200}),
        ("prefix", {"N": 50}),
        ("covariance", {"N": 20, "M": 10}),
        ("strided", {"N": 20, "M": 6}),
        ("ints", {"M": 12, "N": 30}),
        ("tanhs", {"M": 12, "N": 30}),
        ("prod", {"N": 3000}),
        ("dot", {"N": 3000}),
    ],
)
def test_the_default_schedule_of_every_nest_is_right(name: str, sizes: dict[str, int]) -> None:
    """Also where a nest divides, takes roots, multiplies up, or is summed in another order than written."""
    (trial,) = measure(default_space(getattr(classic_nests, name).with_sizes(sizes)), 0)
    assert is_good(trial), trial.failure


@pytest.mark.parametrize(("form", "spec"), [("+=", "ik,kj->ij"), ("=", "ik,kj->ij"), ("=", "bik,bkj->bij")])
def test_a_large_result_is_vouched_for_by_some_rows(form: str, spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loops as written compute these rows alone; where they don't agree, nothing is measured."""
    monkeypatch.setattr(trusted, "PLAIN", 20_000)
    contraction = Contraction(spec, f32, form)
    space = default_space(contraction.nest().with_sizes(contraction.sizes({"b": 3, "i": 50, "j": 40, "k": 30})))
    (trial,) = measure(space, 0)
    assert is_good(trial), trial.failure
    monkeypatch.setattr(trusted, "default_schedule", lambda nest, *rest: poly.schedule(without_last_term(nest)))
    with pytest.raises(SearchError, match=r"cannot be measured: .* wrong result: some rows of C\["):
        measure(space, 0)


def without_last_term(nest: Nest) -> Nest:
    """The nest with a sum that lacks one term."""
    *others, last = nest.statements
    shorter = last.domain.intersect(isl.Set(f"{{ {last.name}[{', '.join(last.iterators)}] : k < 29 }}"))
    return replace(nest, statements=(*others, replace(last, domain=shorter)))


def test_a_nest_whose_loops_cannot_be_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLY_CC", "/bin/false")
    with pytest.raises(SearchError, match=r"^matmul cannot be measured: .*the C compiler failed"):
        measure(tiled_space(MATMUL, "i"), 0)


def test_a_nest_that_leaves_its_arrays() -> None:
    nest = replace(MATMUL, arrays=tuple(replace(a, shape=(Affine.of(11), *a.shape[1:])) for a in MATMUL.arrays))
    with pytest.raises(poly.SpecError, match="outside"):
        measure(tiled_space(nest, "i"), 0)
