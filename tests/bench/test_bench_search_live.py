"""Tuning live, the peer that tunes beside us, and PolyDL's ranking."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from small_space import BEST, CASE, full_table, small_space

from benchmarks.contender import Failed, NotInstalled
from benchmarks.problems.convolution import Convolution
from benchmarks.runner import Rounds
from benchmarks.search import live, polydl, tvm_peer
from benchmarks.search.landscape import landscape
from benchmarks.search.scores import ranking
from benchmarks.search.table import key
from benchmarks.search.tvm_peer import Tvm
from poly.measure import process
from poly.working_sets import Placement

WORKER = """
import json, sys
import numpy as np
for line in sys.stdin:
    order = json.loads(line)
    if "tune" in order:
        folder = order["tune"]["folder"]
        a, b = (np.load(f"{folder}/{name}.npy") for name in "AB")
        np.save(f"{folder}/C.npy", a @ b)
        told = {"seconds": 7.5, "trials": order["tune"]["trials"], "version": "0.0"}
    else:
        told = {"seconds": 1e-3 * order["repeat"]}
    print(json.dumps(told), flush=True)
"""


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """The live run has one tiny product, and few rounds."""
    monkeypatch.setattr(live, "cases", lambda: [CASE])
    monkeypatch.setattr(live, "ROUNDS", Rounds(seconds=0.01, rounds=(2, 3)))


@pytest.fixture
def fake_tvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package named tvm that can be imported, and a worker that needs none."""
    (tmp_path / "tvm").mkdir()
    (tmp_path / "tvm" / "s_tir.py").touch()
    (tmp_path / "worker.py").write_text(WORKER)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(tvm_peer, "WORKER", tmp_path / "worker.py")


def test_what_was_tuned_is_checked_and_timed_in_turn(tiny: None) -> None:
    cpus = process.allowed()
    entrants = [live.StrategyKernel("model", "model", 1, cpus), live.StrategyKernel("random, 2", "random", 2, cpus)]
    told: list[str] = []
    results = live.run(entrants, 1, told.append)
    model, random = live.lines(results, entrants)
    assert (model["tuner"], model["trials"], model["of_the_model"]) == ("model", 1, 1.0)
    assert (random["trials"], random["right"]) == (2, True)
    assert random["tune_seconds"] > 0
    assert told[0] == "gemm gemm 8x8x8 f32: model"
    text = "\n".join(live.text(results, entrants))
    assert "of the model's" in text and "random, 2" in text and "WRONG" not in text


def test_a_tuning_that_fails_is_told(tiny: None) -> None:
    entrants = [live.StrategyKernel("guess", "guessing", 1, process.allowed())]
    results = live.run(entrants, 1, lambda text: None)
    assert "guess failed: SearchError: there is no strategy named 'guessing'" in "\n".join(live.text(results, entrants))


def test_tvm_is_an_entrant_like_all_others(fake_tvm: None) -> None:
    tvm = Tvm(16, process.allowed())
    entrant = tvm.enter(CASE, 1)
    assert tvm.efforts[CASE.title] == live.TuningEffort(7.5, 16)
    assert entrant.run(3) == pytest.approx(3e-3)
    arrays = CASE.problem.arrays(CASE.dtype)
    assert entrant.result() == pytest.approx(CASE.problem.expected(arrays), abs=1e-5)
    tvm.close()


def test_a_worker_that_ends_is_told(fake_tvm: None, tmp_path: Path) -> None:
    (tmp_path / "worker.py").write_text("")
    with pytest.raises(Failed, match="its process ended"):
        Tvm(16, process.allowed()).enter(CASE, 1)


def test_tvm_is_optional(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "tvm.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv(tvm_peer.PYTHON, sys.executable)
    with pytest.raises(NotInstalled, match="has no TVM; POLY_TVM_PYTHON may name one that has"):
        Tvm(16, process.allowed()).enter(CASE, 1)


def test_problems_as_tvm_takes_them() -> None:
    layer = replace(CASE, problem=Convolution(128, 64, 28, 3, 1, 1, "NHWC", zeros=True))
    assert (tvm_peer.kind(CASE), tvm_peer.sizes(CASE)) == ("gemm", [8, 8, 8])
    assert (tvm_peer.kind(layer), tvm_peer.sizes(layer)) == ("conv", [128, 64, 28, 3, 1])
    with pytest.raises(Failed, match="TVM is given no"):
        tvm_peer.sizes(replace(CASE, problem=replace(CASE.problem, transpose="TN")))


def test_the_live_cases() -> None:
    square, layer = live.cases()
    assert square.sizes == {"M": 512, "N": 512, "K": 512}
    assert (layer.problem.c, layer.problem.k, layer.problem.out) == (128, 128, 28)


def test_polydls_cost_weighs_levels_by_latency() -> None:
    assert polydl.cost(Placement(1, 0, 0, 0))[0] < polydl.cost(Placement(0, 1, 0, 0))[0]
    assert polydl.cost(Placement(1, 1, 1, 1))[0] == 4 + 14 + 60 + 84
    assert polydl.cost(Placement(192, 96, 16, 55))[1] == 4.0


def test_a_ranking_by_polydl_is_judged_as_the_models() -> None:
    space = small_space()
    table = full_table(space)
    some = {key(space, point) for point in list(space)[:2]} | {key(space, BEST)}
    land = landscape(replace(table, entries={p: e for p, e in table.entries.items() if p in some}), space)
    order = polydl.ranked(land)
    assert sorted(order) == sorted(land.space)
    choice, top = ranking(land, order)
    assert 0 < choice <= 1.05 and top == pytest.approx(choice)
