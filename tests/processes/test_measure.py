"""Measuring real kernels: good ones are timed, bad ones are named by what they did, and the search goes on."""

from __future__ import annotations

import re

import artificial
import doc_nests
import pytest
from artificial import MATMUL, is_good, measure, point, spoil, tiled_space

from poly.measure.live import LiveMeasurer
from poly.search.events import Ask

ELEMENTS = 20 * 16


def test_a_trial_for_each_point_in_order() -> None:
    trials = measure(tiled_space(MATMUL, "i"), 2, 0, 1, 2, samples=3)
    assert [trial.point for trial in trials] == [point(2), point(0), point(1), point(2)]
    assert all(is_good(trial) and len(trial.samples) == 3 and not trial.rival for trial in trials)


def test_in_turn_with_the_incumbent() -> None:
    trials = measure(tiled_space(MATMUL, "i"), 1, 2, incumbent=0)
    assert all(is_good(trial) and len(trial.rival) == len(trial.samples) for trial in trials)


def test_the_incumbent_may_be_its_own_challenger() -> None:
    (trial,) = measure(tiled_space(MATMUL, "i"), 0, incumbent=0)
    assert is_good(trial)
    assert len(trial.rival) == len(trial.samples)


def test_a_new_incumbent_takes_the_place_of_the_old() -> None:
    with LiveMeasurer(tiled_space(MATMUL, "i")) as measurer:
        for incumbent, challenger in ((0, 1), (1, 2), (1, 3), (0, 2)):
            (trial,) = measurer.measure(Ask((point(challenger),), point(incumbent)))
            assert is_good(trial)
            assert trial.rival
        assert measurer.effort.trials == 4
        assert measurer.effort.timing > 0


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
    crash, good, wrong, better = measure(tiled_space(MATMUL, "i"), 1, 3, 2, 4, incumbent=0)
    assert crash.failure.startswith("crashed: ")
    assert wrong.failure.startswith("wrong result: ")
    assert crash.rival == wrong.rival == ()
    assert is_good(good)
    assert is_good(better)


def test_a_slow_challenger_gets_one_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(monkeypatch, {1: "for (volatile int n = 0; n < 3000000; n = n + 1);"})
    (trial,) = measure(tiled_space(MATMUL, "i"), 1, incumbent=0)
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


def test_a_incumbent_that_fails_is_no_win_for_the_challenger(monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(monkeypatch, {0: artificial.SEGFAULT, 1: "unknown words;"})
    for incumbent in (0, 1):
        (trial,) = measure(tiled_space(MATMUL, "i"), 2, incumbent=incumbent)
        assert trial.samples == ()
        assert trial.failure.startswith("the incumbent, to be timed in turn with it, failed: ")


def test_a_schedule_that_cannot_be_made() -> None:
    (trial,) = measure(tiled_space(MATMUL, "nowhere"), 0)
    assert trial.failure.startswith("ScheduleError: ")
    assert "nowhere" in trial.failure
