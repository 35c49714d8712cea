"""The peers that are installed give right results on small problems; those that are not are skipped."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from benchmarks.arrays import Array
from benchmarks.case import Case
from benchmarks.contender import Contender, Failed, NotInstalled
from benchmarks.contest import in_c, setting, within_avx2
from benchmarks.ours import Poly
from benchmarks.peers import PEERS, NamedPeer, mkl, package
from benchmarks.peers.package import Package, Packaged, missing, notice
from benchmarks.peers.torch_peer import printed
from benchmarks.problems.contraction import ContractionProblem
from benchmarks.problems.convolution import Convolution
from benchmarks.problems.loops import LoopsProblem
from benchmarks.problems.matmul import Matmul
from benchmarks.remote import Remote
from benchmarks.runner import SETTLE, relative_error, tolerance
from benchmarks.workloads import nests
from microkernels.dtypes import DType, f32, f64
from poly.machine import machine
from poly.machine.calibration import at_hand
from poly.measure import process

PROBLEMS = [
    Matmul(9, 17, 33),
    Matmul(9, 17, 33, "NT"),
    Matmul(9, 17, 33, "TN"),
    Matmul(9, 17, 33, "TT"),
    Matmul(1, 40, 24),
    Matmul(4, 5, 6, batch=7),
    ContractionProblem("cab", "adc", "bd", (("a", 4), ("b", 3), ("c", 5), ("d", 6))),
    Convolution(3, 4, 8, 3, 1, 1, "NHWC", zeros=True),
    Convolution(3, 4, 8, 3, 1, 1, "NCHW", zeros=True),
    Convolution(3, 4, 9, 1, 2, 0, "NHWC", zeros=True),
    Convolution(3, 4, 8, 3, 1, 1, "NHWC", 2),
    Convolution(3, 4, 8, 3, 2, 1, "NCHW", 2, "image"),
    Convolution(3, 4, 9, 1, 2, 0, "NHWC", 1, "weights"),
    Convolution(6, 4, 8, 3, 1, 1, "NHWC", groups=2),
    Convolution(3, 4, 8, 3, 2, 1, "NHWC", 2, axes=1),
    Convolution(2, 4, 5, 3, 1, 1, "NCHW", 2, "image", 2, 3),
    Convolution(3, 4, 5, 3, 1, 1, "NHWC", 2, axes=3),
    Convolution(3, 4, 9, 3, 1, 2, "NHWC", 2, dilation=2),
    Convolution(3, 4, 9, 3, 2, 1, "NCHW", 2, "image", dilation=2),
    LoopsProblem("jacobi_2d", (("N", 12), ("T", 3))),
    LoopsProblem("heat_3d", (("N", 8), ("T", 2))),
    LoopsProblem("seidel_2d", (("N", 12), ("T", 3))),
    LoopsProblem("trsv", (("N", 20),)),
    LoopsProblem("trsm", (("N", 12), ("M", 7))),
]


@dataclass(frozen=True)
class Mortal:
    """Dies of products of ones."""

    def __call__(self, case: Case, arrays: tuple[Array, ...], threads: int) -> Contender | None:
        if case.problem.flop == 2:
            os._exit(1)
        return None


def gemm(problem: Matmul) -> Case:
    sizes = {"M": problem.m, "N": problem.n, "K": problem.k}
    return Case("gemm", "small", f32, problem, partial(nests.make, "gemm_nn", f32), sizes)


@pytest.fixture(autouse=True)
def affinity() -> Iterator[None]:
    """Give back the CPUs that a test took from this process."""
    cpus = process.allowed()
    yield
    process.release(cpus)


@pytest.fixture(scope="module", params=PEERS)
def remote(request: pytest.FixtureRequest) -> Iterator[Remote]:
    with Remote(request.param, NamedPeer(request.param), process.allowed()) as peer:
        yield peer


@pytest.mark.parametrize("dtype", [f32, f64], ids=str)
def test_a_peer_is_right_on_all_that_it_takes(remote: Remote, dtype: DType) -> None:
    taken = 0
    for problem in PROBLEMS:
        case = Case("test", str(problem), dtype, problem, dict)
        try:
            contender = remote.enter(case, 1)
        except NotInstalled as error:
            pytest.skip(f"{remote.name}: {error}")
        if contender is not None:
            taken += 1
            expected = problem.expected(problem.arrays(dtype))
            assert relative_error(contender.result(), expected) <= tolerance(case), problem
            assert contender.run(2) > 0
            assert contender.version and contender.config
    assert taken or (remote.name == "onednn" and dtype is f64)


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise mkl.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(mkl.metadata, "files", absent)
    mkl.library.cache_clear()
    with pytest.raises(NotInstalled, match="PyPI package mkl"):
        PEERS["mkl"].prepare(Matmul(2, 2, 2), Matmul(2, 2, 2).arrays(f32), 1)
    mkl.library.cache_clear()


@dataclass(frozen=True)
class Absent(Packaged):
    """A peer whose package is not there."""

    name: str
    package: Package

    def find(self) -> object:
        raise NotInstalled("nothing")


BLAS = Package("apt", "libblas-some")


def test_missing_peers_are_listed_with_the_line_that_brings_each() -> None:
    wheel = Package("pip", "wheel-of==1.0")
    absent = missing([PEERS["numpy"], Absent("one", wheel), Absent("two", wheel), Absent("three", BLAS)])
    head, *rest = notice(absent)
    assert "one, two, three" in head and "weak bar" in head
    assert any(line.endswith("-m pip install wheel-of==1.0") and "one, two:" in line for line in rest)
    assert any(line.endswith("apt-get install -y libblas-some") for line in rest)
    assert list(notice({})) == []


def test_every_peer_says_which_package_brings_it_or_needs_none() -> None:
    assert {name for name, peer in PEERS.items() if not isinstance(peer, Packaged)} == {"numpy", "scipy", "gcc"}
    assert PEERS["torch"].package == PEERS["onednn"].package == Package("pip", "torch==2.13.0")


def test_what_can_be_had_is_installed_and_the_rest_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, ...]] = []

    def run(command: tuple[str, ...], check: bool) -> Any:
        ran.append(command)
        return subprocess.CompletedProcess(command, 0 if "good" in command else 1)

    monkeypatch.setattr(package.subprocess, "run", run)
    monkeypatch.setattr(package.os, "getuid", lambda: 1000)
    good, bad = Package("pip", "good"), Package("pip", "bad")
    told = list(package.install({good: ["one"], bad: ["two"], BLAS: ["three"]}))
    assert told[0] == "one: installed"
    assert told[1] == f"two: not installed; run: {bad.line}"
    assert told[2] == "three: not installed; run: sudo apt-get install -y libblas-some"
    assert ran == [good.command, bad.command]
    monkeypatch.setattr(package.os, "getuid", lambda: 0)
    monkeypatch.setattr(package.shutil, "which", lambda name: f"/usr/bin/{name}")
    package._refresh.cache_clear()
    list(package.install({BLAS: ["three"], Package("apt", "libblas-other"): ["four"]}))
    assert [command[1] for command in ran[2:]] == ["update", "install", "install"]


def test_what_a_library_prints_is_read_and_does_not_appear(capfd: pytest.CaptureFixture[str]) -> None:
    assert printed(lambda: os.write(1, b"kernels: some\n")) == "kernels: some\n"
    os.write(1, b"after")
    assert capfd.readouterr().out == "after"


def test_spinning_is_short_only_for_processes_started_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_THREAD_TIMEOUT", raising=False)
    monkeypatch.setenv("KMP_BLOCKTIME", "7")
    with setting({}):
        assert 2 ** int(os.environ["OPENBLAS_THREAD_TIMEOUT"]) / 1e9 < SETTLE
        assert int(os.environ["KMP_BLOCKTIME"]) / 1e3 < SETTLE
    assert "OPENBLAS_THREAD_TIMEOUT" not in os.environ
    assert os.environ["KMP_BLOCKTIME"] == "7"


def test_on_a_wider_cpu_the_libraries_are_held_to_the_instructions_of_the_target() -> None:
    held = within_avx2()
    assert not any(name.startswith("X86_V3") for name in held["NPY_DISABLE_CPU_FEATURES"].split())
    assert set(held) - set(process.CLEARED) == {"NPY_DISABLE_CPU_FEATURES"}, "else a user's own variables would hold"
    for target, values in (("c:avx2", held), ("c:portable", {})):
        with in_c(target, at_hand(machine())).setting():
            found = {name: os.environ[name] for name in held if name in os.environ}
        assert found == (values if machine().isa.name == "avx512" else {})


def test_ours_runs_through_the_c_function_in_a_process_of_its_own() -> None:
    case = gemm(Matmul(9, 17, 33))
    with Remote("poly", Poly(), process.allowed()) as ours:
        contender = ours.enter(case, 1)
        expected = case.problem.expected(case.problem.arrays(f32))
        assert relative_error(contender.result(), expected) <= tolerance(case)
        assert contender.run(3) > 0


def test_a_refusal_of_ours_is_told_in_its_own_words() -> None:
    case = gemm(Matmul(9, 17, 33))
    with Remote("poly", Poly("c:mmx"), process.allowed()) as ours, pytest.raises(Failed, match="TargetError: unknown"):
        ours.enter(case, 1)


def test_a_process_that_dies_is_a_failure_of_this_case_alone() -> None:
    with Remote("mortal", Mortal(), process.allowed()) as peer:
        with pytest.raises(Failed, match="its process died"):
            peer.enter(gemm(Matmul(1, 1, 1)), 1)
        assert peer.enter(gemm(Matmul(2, 2, 2)), 1) is None


def test_variables_that_hold_a_library_back_are_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    assert "OPENBLAS_CORETYPE" in process.clear_environment()
    assert process.clear_environment() == ()


def test_the_main_thread_and_the_others_get_cpus_of_their_own() -> None:
    assert process.choose((0, 1, 2, 3), 2) == (2, 3)
    assert process.choose((5,), 1) == (5,)
