"""`poly bench --target opencl` and `poly bench opencl`: who takes part, who is right, what is told. No time counts."""

from __future__ import annotations

import ctypes.util
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from opencl_device import TARGET, device

from benchmarks import cli
from benchmarks.case import Case, Problem
from benchmarks.cli import bench
from benchmarks.contender import Failed, NotInstalled, Solver
from benchmarks.opencl import clblast_library, clblast_trial, cuda, goals, overhead, rates, threads
from benchmarks.opencl.clblast import ClBlast
from benchmarks.opencl.clblast_call import calls
from benchmarks.opencl.clblast_library import version
from benchmarks.opencl.clblast_seeds import SEEDS
from benchmarks.opencl.clblast_space import Parameters, allowed, neighbours
from benchmarks.opencl.clblast_tuning import DIRECT, SIZES, Search, Tuned, keep, search, tuned
from benchmarks.opencl.clblast_tuning import seconds as trial_seconds
from benchmarks.opencl.contest import PEERS, OpenCL, held, sweeps
from benchmarks.opencl.naive import Naive
from benchmarks.opencl.stage import CALLS, Stage, stage
from benchmarks.ours import NAME
from benchmarks.problems.contraction import ContractionProblem
from benchmarks.problems.convolution import Convolution
from benchmarks.problems.loops import LoopsProblem
from benchmarks.problems.matmul import Matmul
from benchmarks.problems.softmax import Softmax
from benchmarks.report import ResultLine
from benchmarks.runner import ContenderTiming, Result, Rounds, relative_error, tolerance
from benchmarks.workloads import bandwidth as memory_bound
from benchmarks.workloads import nests, stencil
from microkernels.dtypes import DType, f32, f64
from poly.machine.calibration import described

UNTUNED = Tuned({}, 0)

MATVEC = ContractionProblem("i", "ik", "k", (("i", 33), ("k", 41)))
PROBLEMS: list[Problem] = [
    Matmul(9, 17, 33, "NT"),
    Matmul(9, 17, 33, "TN"),
    Matmul(1, 40, 24),
    Matmul(4, 5, 6, batch=7),
    MATVEC,
    Convolution(3, 4, 8, 3, 1, 1, "NHWC", zeros=True),
    Convolution(3, 4, 9, 3, 2, 1, "NCHW", zeros=True),
    Convolution(5, 4, 6, 1, 1, 0, "NHWC", zeros=True),
    Softmax(5, 17),
    LoopsProblem("jacobi_2d", (("N", 12), ("T", 3))),
    LoopsProblem("heat_3d", (("N", 8), ("T", 2))),
    LoopsProblem("trsv", (("N", 20),)),
]


@pytest.fixture(scope="module")
def here() -> Stage:
    device()
    return stage(TARGET)


@pytest.fixture
def clblast(here: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """The device, with CLBlast as it comes: nothing is tuned."""
    try:
        clblast_library.library()
    except NotInstalled as error:
        pytest.skip(str(error))
    monkeypatch.setenv("POLY_CACHE_DIR", str(tmp_path))
    for dtype in (f32, f64):
        keep(here.device, dtype, UNTUNED)
    return here


def taken(solver: Solver, problem: Problem, dtype: DType) -> bool:
    """Whether the solver takes the problem; then its first result is right, and it can be repeated."""
    case = Case("test", str(problem), dtype, problem, dict)
    contender = solver(case, problem.arrays(dtype), 1)
    if contender is None:
        return False
    expected = problem.expected(problem.arrays(dtype))
    assert relative_error(contender.result(), expected) <= tolerance(case), problem
    assert contender.run(CALLS + 1) > 0
    assert contender.version and contender.config and not contender.pinned
    return True


def test_naive_kernels_are_right(here: Stage) -> None:
    refused = [problem for problem in PROBLEMS if not taken(Naive(TARGET), problem, f32)]
    assert refused == [PROBLEMS[-1]]


def test_naive_kernels_in_f64(here: Stage) -> None:
    assert taken(Naive(TARGET), Softmax(5, 17), f64)


def test_clblast_is_right_on_all_that_it_takes(clblast: Stage) -> None:
    tried = [problem for problem in PROBLEMS if getattr(problem, "batch", 1) == 1]  # batches take long to compile
    refused = [problem for problem in tried if not taken(ClBlast(TARGET), problem, f32)]
    assert [type(problem) for problem in refused] == [Convolution, Softmax, LoopsProblem, LoopsProblem, LoopsProblem]


def test_clblast_in_f64(clblast: Stage) -> None:
    assert taken(ClBlast(TARGET), MATVEC, f64)


@pytest.mark.parametrize("dtype", [f32, f64], ids=str)
def test_ours_is_right_by_the_devices_clock(here: Stage, dtype: DType) -> None:
    problem = Matmul(9, 17, 33)
    sizes = {"M": 9, "N": 17, "K": 33}
    case = Case("gemm", "small", dtype, problem, partial(nests.make, "gemm_nn", dtype), sizes)
    contender = OpenCL(TARGET)(case, problem.arrays(dtype), here.device.isa.units)
    assert relative_error(contender.result(), problem.expected(problem.arrays(dtype))) <= tolerance(case)
    assert contender.run(3) > 0
    assert contender.config.startswith("default schedule, ")


def test_a_failure_of_ours_is_told_in_its_own_words(here: Stage) -> None:
    case = Case("gemm", "small", f32, Matmul(2, 2, 2), partial(nests.make, "gemm_nn", f32), {"M": -1})
    with pytest.raises(Failed, match="Error: "):
        OpenCL(TARGET)(case, case.problem.arrays(f32), 1)


def test_the_devices_log_is_told(here: Stage) -> None:
    with pytest.raises(Failed, match=r"(?s)the device's compiler: .*nonsense"):
        here.build("__kernel void run() { nonsense; }")


def test_a_call_that_fails_does_not_leave_the_queue_closed(here: Stage) -> None:
    def broken() -> Any:
        raise ValueError("no launch")

    with pytest.raises(ValueError, match="no launch"):
        here.timed(broken)(1)
    here.queue.finish()
    assert taken(Naive(TARGET), MATVEC, f32)


def test_no_device_is_a_peer_that_is_missing() -> None:
    with pytest.raises(NotInstalled, match="no such device"):
        stage("opencl:no such device")


def test_clblast_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    clblast_library.library.cache_clear()
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None)
    with pytest.raises(NotInstalled, match="libclblast"):
        ClBlast(TARGET)(Case("test", "", f32, MATVEC, dict), MATVEC.arrays(f32), 1)
    clblast_library.library.cache_clear()


def test_cuda_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    class Torch:
        class cuda:
            @staticmethod
            def is_available() -> bool:
                return False

    cuda.loaded.cache_clear()
    monkeypatch.setattr(cuda, "torch_loaded", lambda: Torch)
    with pytest.raises(NotInstalled, match="no CUDA device"):
        cuda.Cuda()(Case("test", "", f32, MATVEC, dict), MATVEC.arrays(f32), 1)
    cuda.loaded.cache_clear()


def test_pytorchs_work_is_right_where_there_is_no_gpu_too() -> None:
    torch = pytest.importorskip("torch")
    taken = 0
    for problem in PROBLEMS:
        arrays = problem.arrays(f32)
        made = cuda.work(torch, problem, arrays, "cpu")
        if made is not None:
            taken += 1
            made[0]()
            error = relative_error(made[1](), problem.expected(problem.arrays(f32)))
            assert error <= tolerance(Case("test", "", f32, problem, dict)), problem
    assert taken == len(PROBLEMS) - 3


def test_seeds_and_their_neighbours_are_choices_that_clblast_allows() -> None:
    for kernel, kinds in SEEDS.items():
        for seed in (one for seeds in kinds.values() for one in seeds):
            assert allowed(kernel, seed), seed
            around = list(neighbours(kernel, seed))
            assert around and seed not in around
            assert all(allowed(kernel, one) for one in around)


@pytest.mark.parametrize("change", [{"VWM": 16}, {"KWG": 1}, {"MDIMC": 16, "NDIMC": 16}, {"GEMMK": 1}])
def test_choices_that_clblast_would_compute_wrongly_are_left_out(change: Parameters) -> None:
    assert not allowed("Xgemm", {**SEEDS["Xgemm"]["cpu"][0], **change})


def test_the_search_follows_better_neighbours_and_passes_failures_over() -> None:
    def trial(problem: str, size: int, parameters: Mapping[str, Parameters]) -> float:
        if problem == "product":
            return 1.0 if (parameters["GemmRoutine"][DIRECT] > 0) == (size < SIZES[2]) else 2.0
        choice = parameters["XgemvFast"]
        return float("inf") if choice["WGS2"] == 64 else 1.0 / (choice["WPT2"] * choice["VW2"])

    found = search("cpu", trial, [Search("XgemvFast", "columns", 64, 60)])
    best = found.parameters["XgemvFast"]
    assert (best["WPT2"], best["VW2"]) == (8, 8)
    assert found.parameters["GemmRoutine"] == {DIRECT: SIZES[2]}
    assert f"tuned here by {found.trials} trials: XgemvFast VW2=8 WGS2=" in str(found)
    assert str(found).endswith(f"GemmRoutine {DIRECT}={SIZES[2]}")


def test_where_every_choice_fails_clblast_stays_as_it_comes() -> None:
    found = search("cpu", lambda *what: float("inf"), [Search("XgemvFast", "columns", 64, 0)])
    assert found.parameters.keys() == {"GemmRoutine"} and found.trials == 1


def test_parameters_are_kept(clblast: Stage) -> None:
    found = Tuned({"XgemvFast": {"VW2": 1, "WGS2": 64, "WPT2": 1}}, 7)
    keep(clblast.device, f32, found)
    assert tuned(TARGET, clblast.device, f32) == found
    assert version()[0].isdigit()


def test_a_wrong_result_of_clblast_is_no_choice(clblast: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = clblast_trial.PROBLEMS["rows"](24)
    assert 0 < clblast_trial.seconds(TARGET, problem, f32, {}) < float("inf")
    original = calls

    def twice(*arguments: Any) -> Callable[[], Any]:
        enqueue = original(*arguments)
        assert enqueue is not None
        return lambda: (enqueue(), enqueue())[1]

    monkeypatch.setattr(clblast_trial, "calls", twice)
    assert clblast_trial.seconds(TARGET, problem, f32, {}) == float("inf")


def test_a_choice_that_clblast_refuses_costs_nothing_but_itself(clblast: Stage) -> None:
    assert trial_seconds(TARGET, f32, "rows", 24, {"NoKernel": {"X": 1}}) == float("inf")
    assert trial_seconds(TARGET, f32, "no such problem", 24, {}) == float("inf")


def test_rates_of_a_device(here: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "LARGEST", 1 << 20)
    rates.bandwidth.cache_clear()
    assert rates.bandwidth(TARGET) > 0
    rates.bandwidth.cache_clear()
    assert rates.DevicePeak(TARGET, f32)() > 0


def test_a_stencil_moves_its_arrays_each_sweep() -> None:
    jacobi = next(stencil.cases(f32))
    vector = Case("test", "", f32, MATVEC, dict)
    assert sweeps(jacobi) == 50 and held(jacobi) == 2 * 4 * 2000**2
    assert sweeps(vector) == 1 and held(vector) == MATVEC.traffic(f32)


def test_pocl_keeps_its_threads_in_processes_that_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(threads.VARIABLE, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: len(os.sched_getaffinity(0)))
    with threads.kept():
        assert os.environ[threads.VARIABLE] == "1"
    assert threads.VARIABLE not in os.environ
    monkeypatch.setattr(os, "cpu_count", lambda: 1000)
    with threads.kept():
        assert threads.VARIABLE not in os.environ


def test_the_command_on_one_case(clblast: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "QUICK", Rounds(0, (3, 3), attempts=1))
    monkeypatch.setattr(cli, "at_hand", lambda here: described(here.isa.name, tuple(c.bytes for c in here.caches)))
    monkeypatch.setattr(memory_bound, "ORDER", 512)
    file = tmp_path / "rows.json"
    arguments = ["bandwidth", "--target", TARGET, "--only", "matvec 512", "--quick", "--json", str(file)]
    done = CliRunner().invoke(bench, arguments)
    assert done.exit_code == 0, done.output
    told = json.loads(file.read_text())
    (row,) = told["rows"]
    assert told["machine"]["driver"] == clblast.device.driver
    assert row["target"] == clblast.device.label and row["threads"] == clblast.device.isa.units
    assert {"c", "clblast", "naive"} <= set(row["peers"])
    assert row["peers"]["clblast"]["config"] == str(UNTUNED)
    assert row["gflops"] > 0 and row["peak_fraction"] > 0 and row["max_error"] < 1e-4
    assert "cuda: not installed (" in done.output or "cuda" in row["peers"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "opencl:no such device"], "--target opencl:no such device: no usable OpenCL device"),
        (["--target", TARGET, "--against", "numpy"], f"unknown peer 'numpy': --against takes {', '.join(PEERS)}"),
        (["--target", TARGET, "--threads", "1000"], "--threads 1000: "),
        (["opencl", "--target", "c"], "--target c: expected 'opencl'"),
        (["opencl", "--only", "speed"], "unknown goal 'speed': --only takes peak, clblast,"),
    ],
)
def test_wrong_use_is_told_in_one_message(here: Stage, arguments: list[str], message: str) -> None:
    done = CliRunner().invoke(bench, arguments)
    assert done.exit_code == 2
    assert message in done.output


def line(ours: float | None, wrong: bool = False, **peers: float) -> ResultLine:
    """A product that takes us, and some peers, so many seconds a call."""
    timings = [] if ours is None else [ContenderTiming(NAME, "1", "", (ours, ours), 0, not wrong)]
    timings += [ContenderTiming(name, "1", "", (taken, taken), 1, taken > 0.1) for name, taken in peers.items()]
    result = Result(goals.product(512), 2, tuple(timings), (1.0, 1.0), (("cuda", "no CUDA device"),), ())
    return ResultLine(result, 0.5, NAME, TARGET)


def test_goals_of_a_product() -> None:
    flop = 2 * 512**3
    found = list(goals.products_found(line(flop / 0.9e9, c=flop / 1e9, clblast=flop / 0.2e9)))
    assert [one.goal for one in found] == [goals.PEAK, goals.CLBLAST, goals.PRODUCT]
    assert [one.value for one in found] == pytest.approx([0.9, 4.5, 0.9])
    assert [one.met for one in found] == [True, True, False]
    assert found[1].note == "0.9 GFLOP/s, clblast 0.2 GFLOP/s"


def test_what_is_absent_or_wrong_is_told() -> None:
    _, cublas = goals.large_product(line(1.0, clblast=2.0))
    assert cublas.value is None and cublas.note == "no cuda: no CUDA device" and cublas.met is None
    assert goals.against(goals.CLBLAST, line(1.0), "clblast").note == "no clblast: it takes no such case"
    spoilt = goals.against(goals.CLBLAST, line(1.0, clblast=0.01), "clblast")
    assert spoilt.value is None and spoilt.note.startswith("WRONG RESULT of clblast")
    assert all(one.wrong and one.met is False for one in goals.products_found(line(1.0, True, c=1.0, clblast=1.0)))
    assert goals.against(goals.PRODUCT, line(None, c=1.0), "c").wrong


def test_goals_of_layers_and_bandwidth() -> None:
    layers = [one for ours in (1.0, 4.0) for one in goals.layers_found(line(ours, c=2.0))]
    assert [one.met for one in layers] == [None, None]
    assert goals.mean(layers).value == pytest.approx(1.0) and goals.mean(layers).what == "2 layers"
    flop = 2 * 512**3
    (found,) = goals.bound_found(line(flop / 0.3e9, c=flop / 0.6e9))
    assert found.value == pytest.approx(0.6) and found.note == "0.60 of the bound, 0.50 of C"


def test_every_goal_is_measured(here: Stage) -> None:
    asked: list[tuple[int, tuple[str, ...]]] = []

    def measure(cases: Any, peers: Any) -> list[ResultLine]:
        asked.append((len(cases), tuple(peers)))
        return [line(1.0, c=1.0, clblast=2.0) for _ in cases]

    names = set(goals.GOALS) - {goals.OVERHEAD.name}
    cpu = replace(here.device, isa=replace(here.device.isa, kind="cpu"))
    found = list(goals.findings(names, cpu, False, measure))
    assert asked == [(3, ("c", "clblast")), (19, ("c",)), (3, ("c",))]
    assert {one.goal.name for one in found} == names - {goals.CUBLAS.name}


def test_goals_of_a_gpu_are_beside_cublas(here: Stage) -> None:
    gpu = replace(here.device, isa=replace(here.device.isa, kind="gpu"))
    products, streams = goals.parts(gpu, False)
    assert products.goals == (goals.CLBLAST, goals.CUBLAS) and products.cases[0].size == "4096"
    assert streams.goals == (goals.BOUND,)


def test_the_cost_of_a_call(here: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overhead, "ROUNDS", 3)
    empty, ours = overhead.rounds(TARGET, waiting=True)
    assert len(empty) == len(ours) == 3 and min(*empty, *ours) > 0
    (found, _) = goals.overheads("opencl:no such device")
    assert found.value is None and "no such device" in found.note


def test_goals_from_the_command_line(here: Stage, tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    arguments = ["opencl", "--quick", "--only", "overhead", "--target", TARGET, "--json", str(file)]
    done = CliRunner().invoke(bench, arguments)
    assert done.exit_code == 0, done.output
    told = json.loads(file.read_text())
    assert [goal["name"] for goal in told["goals"]] == ["overhead"]
    assert [one["what"] for one in told["findings"]] == ["call returns", "call is done"]
    assert told["tools"]["device"] == here.device.name
    assert np.isfinite(told["findings"][0]["found"])
