"""`poly bench FILE:NAME` from outside, what it must not change, and its contenders one by one."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from tuning_records import record

from benchmarks.cli import bench
from benchmarks.contender import Failed
from benchmarks.ours import Poly
from benchmarks.own import cli
from benchmarks.own.contenders import OtherNest, OwnFunction, contenders
from benchmarks.own.nest import own_case
from benchmarks.own.report import draw
from benchmarks.remote import Ready, Refusal, _prepare
from benchmarks.runner import relative_error, tolerance
from codegen.system.cache import put
from microkernels.isa import PORTABLE
from poly.errors import PolyError, SpecError
from poly.machine import calibration, machine
from poly.measure import process
from poly.records import Store

NESTS = """
import numpy as np
import poly
from poly import f32, f64, i32

M, N, K, T = poly.sizes("M N K T")

@poly.nest
def matmul(A: f32[M, K], B: f32[K, N], C: f32[M, N]):
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]

@poly.nest
def by_rows(X: f32[M, K], Y: f32[K, N], Z: f32[M, N]):
    for i in range(M):
        for k in range(K):
            for j in range(N):
                Z[i, j] += X[i, k] * Y[k, j]

@poly.nest
def relaxed(x: f64[N], y: f64[N], c: f64):
    for t in range(T):
        for i in range(1, N - 1):
            y[i] = c * (x[i - 1] + x[i + 1])
        for i in range(1, N - 1):
            x[i] = y[i]

@poly.nest
def looked_up(x: f32[N], idx: i32[M], y: f32[M]):
    for i in range(M):
        y[i] = x[idx[i]]

def in_place(A, B, C):
    C += A @ B

def returning(A, B, C):
    return C + A @ B

def half(A, B, C):
    C += 0.5 * (A @ B)

def two(A, B, C):
    return A, B

def small(A, B, C):
    return C[:2]

def raising(A, B, C):
    raise KeyError("nothing there")

constant = 3
"""
SIZES = ("--size", "M=24", "--size", "N=16", "--size", "K=20")


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "own.py"
    path.write_text(NESTS)
    return str(path)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@dataclass(frozen=True)
class Run:
    """What a run printed, and the cache directory before and after it."""

    done: Result
    before: dict[str, bytes]
    after: dict[str, bytes]
    cache: Path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One run on a machine that is not calibrated, where another nest was tuned."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "own.py").write_text(NESTS)
    cache = folder / "cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLY_CACHE_DIR", str(cache))
        patch.delenv("POLY_RECORDS", raising=False)
        patch.delenv(calibration.VARIABLE, raising=False)
        patch.setattr(cli, "SECONDS", 0.05)
        patch.setattr(cli, "ROUNDS", (6, 6))
        patch.setattr(
            calibration, "_rates_once", lambda here: calibration.described(here.isa.name, (32 << 10, 1 << 20))
        )
        Store.open().save(record())
        put(calibration._key(replace(machine(), isa=PORTABLE)), "{}")
        before = contents(cache)
        where = f"{folder / 'own.py'}:"
        arguments = [f"{where}matmul", *SIZES, "--against", f"{where}half", "--json", "-"]
        cpus = process.allowed()
        done = CliRunner().invoke(bench, arguments)
        process.release(cpus)
        assert calibration.VARIABLE not in os.environ, "the environment is as before"
        return Run(done, before, contents(cache), cache)


def test_a_run_shows_who_is_how_fast_and_who_is_wrong(run: Run) -> None:
    assert run.done.exit_code == 0, run.done.output
    (row,) = json.loads(run.done.stdout)["rows"]
    assert (row["workload"], row["size"], row["dtype"]) == ("matmul", "M=24 N=16 K=20", "f32")
    right = {name: peer["right"] for name, peer in row["peers"].items()}
    assert right == {"gcc": True, "half": False}
    assert row["best_peer"] == "gcc" and row["ratio_to_best_peer"] > 0
    assert row["gbs"] == pytest.approx(4 * (24 * 20 + 20 * 16 + 2 * 24 * 16) / row["seconds"] / 1e9)
    assert row["gflops"] == pytest.approx(2 * 24 * 16 * 20 / row["seconds"] / 1e9)
    assert len(row["samples"]) == 6 and row["interval"] is not None and row["date"]
    assert not {"trials", "tune_seconds"} & set(row)
    head, *table = run.done.stderr.splitlines()
    assert head == "matmul M=24 N=16 K=20, f32, 1 thread, c"
    assert table[1].startswith("poly ")
    assert {"gcc", "half"} == {line.split()[0] for line in table[2:4]}
    assert "half WRONG" in run.done.stderr and "this machine is not calibrated" in run.done.stderr


def test_a_run_changes_nothing_that_the_model_or_a_compilation_follows(run: Run) -> None:
    """Neither the records, nor calibrations that are there; nor is one made, now or by a process in the background."""
    assert "records.sqlite" in run.before
    assert {name: run.after[name] for name in run.before} == run.before
    assert not (run.cache / "locks").exists(), "what calibrates in the background locks first"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLY_CACHE_DIR", str(run.cache))
        assert calibration.kept(machine()) is None


def test_a_run_is_drawn(run: Run, tmp_path: Path) -> None:
    draw(json.loads(run.done.stdout)["rows"], tmp_path / "run.svg")
    text = (tmp_path / "run.svg").read_text()
    assert "half (wrong)" in text and "matmul M=24 N=16 K=20 f32, 1 thread" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([":matmul", "--size", "M=4"], "leaves the sizes K, N open"),
        ([":matmull", *SIZES], "Did you mean matmul?"),
        ([":matmul", *SIZES, "--size", "Q=3"], "has no size Q"),
        ([":matmul", *SIZES, "--against", "HERE:constant"], "is neither a function nor a nest, but 3"),
        ([":matmul", *SIZES, "--against", "HERE:in_plase"], "has no 'in_plase'. Did you mean in_place?"),
        (
            [":matmul", *SIZES, "--against", "numpy"],
            "'numpy' is neither FILE.py:NAME, a function or a nest, nor one of gcc",
        ),
        ([":matmul", *SIZES, "--threads", "4096"], "--threads 4096: this process may use"),
        ([":matmul", *SIZES, "--fail-if", "5%"], "add --compare OLD.json or --history"),
        ([":matmul", *SIZES, "--plot", "x.gif"], "the name must end in .png, .svg, .pdf"),
        ([], "is not of the form FILE.py:NAME"),
    ],
)
def test_wrong_use_is_told_before_anything_is_measured(file: str, arguments: list[str], message: str) -> None:
    first, *others = arguments or [""]
    done = CliRunner().invoke(bench, [file + first, *(text.replace("HERE", file) for text in others)])
    said = done.output if done.exit_code == 2 else str(done.exception)
    assert done.exit_code == 2 or isinstance(done.exception, PolyError)
    assert message in said


def answer(file: str, solver: object, name: str = "matmul", **sizes: int) -> Ready | Refusal:
    """What a worker answers with this solver: the nest's own result is checked against it elsewhere."""
    case = own_case(f"{file}:{name}", sizes or {"M": 7, "N": 5, "K": 6}, None)
    cpus = process.allowed()
    found, _ = _prepare(solver, case, 1, cpus)  # type: ignore[arg-type]
    process.release(cpus)
    if isinstance(found, Ready):
        error = relative_error(found.result, case.problem.expected(case.problem.arrays(case.dtype)))
        assert error <= tolerance(case)
    return found


@pytest.mark.parametrize("function", ["in_place", "returning"])
def test_a_function_updates_in_place_or_returns(file: str, function: str) -> None:
    found = answer(file, OwnFunction(f"{file}:{function}"))
    assert isinstance(found, Ready) and not found.in_c
    assert found.config.startswith("Python function on NumPy arrays, text ") and found.version.startswith("numpy ")


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("two", "it returned 2 values, and the nest writes 1 arrays"),
        ("small", "it returned an array of shape (2, 5), not (7, 5)"),
        ("raising", "raising raised KeyError: 'nothing there'"),
    ],
)
def test_what_a_function_does_wrong_is_said(file: str, function: str, reason: str) -> None:
    found = answer(file, OwnFunction(f"{file}:{function}"))
    assert isinstance(found, Refusal) and reason in found.reason


def test_another_nest_gets_the_same_arrays_by_position(file: str) -> None:
    assert isinstance(answer(file, OtherNest(f"{file}:by_rows", None, Poly())), Ready)
    refused = answer(file, OtherNest(f"{file}:relaxed", None, Poly()))
    assert isinstance(refused, Refusal) and "does not take the same arguments" in refused.reason


@pytest.mark.parametrize(("name", "sizes"), [("relaxed", {"N": 30, "T": 3}), ("looked_up", {"M": 9, "N": 5})])
def test_scalars_time_steps_and_indices_have_data(file: str, name: str, sizes: dict[str, int]) -> None:
    assert isinstance(answer(file, Poly(), name, **sizes), Ready)


def test_data_are_the_same_each_time_and_another_type_is_taken(file: str) -> None:
    case = own_case(f"{file}:matmul", {"M": 4, "N": 4, "K": 4}, "f64")
    first, second = (case.problem.arrays(case.dtype) for _ in range(2))
    assert case.dtype.name == "f64" and {array.dtype for array in first} == {np.dtype(np.float64)}
    assert all((a == b).all() for a, b in zip(first, second, strict=True))
    assert np.abs(first[2]).sum() > 0, "an array that is updated has values"


def test_names_in_the_table_are_told_apart(file: str) -> None:
    other = str(Path(file).parent / "." / "copy.py")
    Path(other).write_text(NESTS)
    texts = ["gcc", f"{file}:matmul", f"{file}:in_place", f"{other}:in_place"]
    assert list(contenders(texts, {"gcc": Poly()}, None, Poly())) == ["gcc", "matmul", "in_place", f"{other}:in_place"]
    with pytest.raises(SpecError, match="is neither"):
        contenders([f"{file}:constant"], {}, None, Poly())


def test_a_result_that_rows_do_not_confirm_is_no_reference(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from poly.measure import trusted

    monkeypatch.setattr(trusted, "PLAIN", 20)
    case = own_case(f"{file}:matmul", {"M": 12, "N": 5, "K": 6}, None)
    case.problem.expected(case.problem.arrays(case.dtype))
    monkeypatch.setattr("benchmarks.own.nest.difference", lambda *values: "C[0, 0] is 1, not 2")
    with pytest.raises(Failed, match=r"the result to compare with is wrong: C\[0, 0\] is 1, not 2"):
        case.problem.expected(case.problem.arrays(case.dtype))
