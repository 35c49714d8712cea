"""`poly bench header` on tiny problems, and where something is missing. Nothing is timed in earnest."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import toolchain
from benchmarks.case import Case
from benchmarks.cli import bench
from benchmarks.contender import Failed
from benchmarks.header import cli, cost, dispatch, openblas, program, report, speed
from benchmarks.header.embedded import build, write
from benchmarks.header.finding import CLANG, CODE, DISPATCH, GOALS, NO_CLANG, OPENBLAS, SPEED, GoalFigure
from benchmarks.header.setting import Setting
from benchmarks.header.workloads import Workload, convolution, jacobi, matrix_vector, product, softmax, workloads
from benchmarks.problems.matmul import Matmul
from benchmarks.runner import Rounds
from benchmarks.workloads import nests
from codegen.package.header import sections
from microkernels.dtypes import DType, f32
from microkernels.isa import PORTABLE, host
from poly.measure import process

SHORT = Rounds(seconds=0, rounds=(2, 2), sample=1e-6)

BLAS = """
char *openblas_get_corename(void) { return "Fake"; }
char *openblas_get_config(void) { return "OpenBLAS 0.0"; }
void openblas_set_num_threads(int threads) { (void)threads; }
void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b,
                 int ldb, float beta, float *c, int ldc)
{
    const int row = ta == 112 ? 1 : lda, column = ta == 112 ? lda : 1;
    const int down = tb == 112 ? 1 : ldb, right = tb == 112 ? ldb : 1;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            for (int l = 0; l < k; l++) c[i * ldc + j] += a[i * row + l * column] * b[l * down + j * right];
}
void cblas_sgemv(int order, int ta, int m, int n, float alpha, const float *a, int lda, const float *x, int incx,
                 float beta, float *y, int incy)
{
    for (int l = 0; l < m; l++)
        for (int j = 0; j < n; j++) y[j] += a[l * lda + j] * x[l];
}
"""
"""OpenBLAS as far as the program calls it: row-major, alpha = beta = 1."""


@pytest.fixture
def setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Setting]:
    """Headers are built in half of the time: how fast they are is not asked here."""
    monkeypatch.setattr(sections, "GCC_OPTIONS", sections.GCC_OPTIONS.replace('"O3", ', ""))
    monkeypatch.setattr(toolchain, "FLAGS", ("-Og", "-fipa-cp", "-std=c99"))
    cpus = process.allowed()
    host_compiler = toolchain.host()
    isas = tuple(dict.fromkeys((host().name, PORTABLE.name)))
    yield Setting(host_compiler, None, SHORT, True, tmp_path, cpus, lambda _: None, isas)
    process.release(cpus)


def rectangle(m: int, n: int, k: int, transpose: str = "NN", batch: int = 1) -> Case:
    name = "gemm_batched" if batch > 1 else f"gemm_{transpose.lower()}"
    sizes = {"M": m, "N": n, "K": k, **({"B": batch} if batch > 1 else {})}
    size = f"{batch} x {m}x{n}x{k} {transpose}"
    return Case("gemm", size, f32, Matmul(m, n, k, transpose, batch), partial(nests.make, name, f32), sizes)


def test_a_goal_is_reached_from_above_or_below() -> None:
    assert GoalFigure(SPEED, "", 0.98).met and not GoalFigure(SPEED, "", 0.97).met
    assert GoalFigure(DISPATCH, "", 5.0).met and not GoalFigure(DISPATCH, "", 5.1).met
    assert GoalFigure(SPEED, "", None).met is None and GoalFigure(SPEED, "", 0.1, judged=False).met is None
    assert GoalFigure(SPEED, "", 2.0, wrong=True).met is False


def test_the_table_names_each_goal_once_and_sums_up() -> None:
    found = [
        GoalFigure(SPEED, "small", 0.9, 0.011, "slow"),
        GoalFigure(SPEED, "large", 1.1),
        GoalFigure(SPEED, "aside", 0.1, judged=False),
        GoalFigure(CLANG, "all", None, note=NO_CLANG),
        GoalFigure(CODE, "16", 1.5),
    ]
    lines = list(report.text(found))
    assert lines[1].split() == [*SPEED.title.split(), "≥", "0.98", "small", "0.900", "1.1", "MISSED", "slow"]
    assert lines[2].split() == ["large", "1.100", "met"]
    assert lines[3].split() == ["aside", "0.100"]
    assert lines[4].split() == [*CLANG.title.split(), "≥", "0.95", "all", "-", *NO_CLANG.split()]
    assert lines[-2:] == [
        f"{SPEED.title}, ≥ 0.98: 1 of 2 MISSED, mean 0.995, worst 0.900 (small)",
        f"{CODE.title}, ≤ 4 KB: met, worst 1.500 (16)",
    ]


def test_the_object_has_every_goal_and_finding() -> None:
    found = [GoalFigure(OPENBLAS, "64", 1.1, 0.02, "fast", details=(("gflops", 200.0),))]
    told = json.loads(json.dumps(report.document(found, GOALS.values(), {"cpu": "some"}, {"gcc": "12"})))
    assert [goal["name"] for goal in told["goals"]] == list(GOALS)
    assert told["findings"] == [
        {
            "goal": "openblas", "what": "64", "found": 1.1, "unit": "", "wanted": 1.03, "at_least": True, "met": True,
            "spread": 0.02, "note": "fast", "gflops": 200.0,
        }
    ]  # fmt: skip


def test_every_workload_stands_in_a_header_of_its_own() -> None:
    for quick in (False, True):
        prefixes = [workload.prefix for workload in workloads(quick)]
        assert len(set(prefixes)) == len(prefixes)
    titles = [workload.title(case) for workload in workloads(False) for case in workload.cases]
    assert {"gemm 1024 f32", "gemm 1024 f32 symbolic", "softmax 256x1000 f32"} <= set(titles)
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("symbolic", [False, True])
def test_the_headers_function_is_right_and_timed(setting: Setting, symbolic: bool) -> None:
    workload = Workload("tiny", (product(5, f32), product(16, f32)), symbolic)
    found = list(speed.findings(list(speed.compare(workload, setting)), clang=False))
    judged = [one.what for one in found if one.judged and one.goal == SPEED]
    assert judged == [workload.title(case) for case in workload.cases]
    assert all(one.value and not one.wrong and "GFLOP/s" in one.note for one in found[:-1])
    assert (found[-1].goal, found[-1].note) == (CLANG, NO_CLANG)


def test_two_compilers_side_by_side(setting: Setting) -> None:
    both = replace(setting, clang=setting.host)
    compared = list(speed.compare(Workload("pair", (product(8, f32),), False), both))
    found = [one for one in speed.findings(compared, clang=True) if one.goal == CLANG]
    assert [one.what for one in found] == ["gemm 8 f32"] and found[0].value


@pytest.mark.parametrize("make", [convolution, jacobi, softmax, matrix_vector])
def test_other_nests_have_right_results(setting: Setting, make: Callable[[DType], Case]) -> None:
    (compared,) = speed.compare(Workload("other", (make(f32),), False), setting)
    assert not compared.result.failed and not compared.result.wrong


def test_a_lesser_instruction_set_by_force(setting: Setting) -> None:
    workload = Workload("lesser", (product(8, f32),), True, PORTABLE)
    (compared,) = speed.compare(workload, setting)
    assert compared.title == ("gemm 8 f32 symbolic" if host() == PORTABLE else "gemm 8 f32 symbolic portable")
    assert not compared.result.failed and not compared.result.wrong


def test_a_call_that_is_refused_is_told(setting: Setting) -> None:
    case = product(8, f32)
    embedded = write([speed.compiled(case, {})], "refused", setting.folder)
    built = build(embedded, setting.host, host())
    arrays = case.problem.arrays(f32)
    with pytest.raises(Failed, match="refused_gemm returns status 3"):
        built.call(arrays, {"M": -1, "N": 8, "K": 8}, allocate=True)


def test_a_compiler_that_fails_is_quoted(setting: Setting, tmp_path: Path) -> None:
    (tmp_path / "bad.c").write_text("int main(void) { return nothing; }\n")
    with pytest.raises(Failed, match=r"error: .*nothing"):
        setting.host.object(tmp_path / "bad.c", tmp_path / "bad.o")


def test_the_cost_of_the_choice(setting: Setting) -> None:
    found = list(dispatch.cost(setting))
    assert [(one.what, one.judged) for one in found] == [
        ("choice", True), ("checks, allocating", False), ("checks, with a workspace", False), ("kernel", False),
    ]  # fmt: skip
    assert all(one.value is not None and abs(one.value) < 1e6 for one in found)


def test_the_code_of_a_small_kernel(setting: Setting) -> None:
    (found,) = cost.code(setting)
    assert found.value and 0.1 < found.value < 100
    assert f"_{host().name}" in found.note


def test_bytes_and_seconds_of_a_header(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = partial(cost.tuned, product(8, f32))
    monkeypatch.setattr(cost, "tuned", lambda case, setting: tiny(setting))
    monkeypatch.setattr(cost, "ROUNDS", {True: 1})
    (size,) = cost.size(setting)
    assert size.value and size.note == f"{(setting.folder / 'gemm.h').stat().st_size} bytes"
    times, family = list(cost.compile_time(setting)), setting.host.family
    assert [one.what for one in times] == [f"tuned product, {family}", f"tuned convolution, {family}", "by clang"]
    assert all(one.value for one in times[:2]) and times[2].value is None


def test_what_a_program_says() -> None:
    told = program.read("core Zen\nshape 512 NT\nerror special 1e-6\ntimes special 1e-3 2e-3\n")
    assert told.words == {"core": "Zen"}
    assert told.shapes == [program.ShapeResult("512 NT", {"special": [1e-3, 2e-3]}, {"special": 1e-6})]


def test_a_program_that_fails_is_told(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="false ended with status 1"):
        program.run(Path("/bin/false"), [])


def test_openblas_beside_the_header(setting: Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [rectangle(13, 7, 9, "TT"), rectangle(4, 4, 4, "TT"), rectangle(4, 4, 4, batch=3)]
    monkeypatch.setattr(openblas.gemm, "cases", lambda dtype: iter(cases))
    monkeypatch.setattr(openblas, "CORES", ("", "Zen"))
    monkeypatch.setattr(openblas, "TRIAL", SHORT)
    monkeypatch.setattr(openblas, "find", lambda setting: fake_library(tmp_path, setting))
    found = list(openblas.against(setting))
    assert [one.what for one in found[:4]] == [*(f"special {case.size}" for case in cases), "special, geometric mean"]
    assert [one.what for one in found if one.judged] == ["special, geometric mean"]
    assert not any(one.wrong or "WRONG" in one.note for one in found)
    assert found[3].note.startswith("Fake kernels (OPENBLAS_CORETYPE=") and found[3].note.endswith("OpenBLAS 0.0")


def test_a_wrong_product_is_found(setting: Setting, tmp_path: Path) -> None:
    case = rectangle(1, 20, 30)
    library = fake_library(tmp_path, setting, BLAS.replace("+= a[l * lda", "-= a[l * lda"))
    made = openblas.made([case], library, setting)
    (shape,) = program.run(made, ["openblas", *program.words(SHORT)], openblas.environment("")).shapes
    assert shape.errors["openblas"] > 0.1


def fake_library(folder: Path, setting: Setting, text: str = BLAS) -> Path:
    (folder / "fake.c").write_text(text)
    setting.host.object(folder / "fake.c", folder / "fake.o")
    subprocess.run(["ar", "rc", str(folder / "libfake.a"), str(folder / "fake.o")], check=True)
    return folder / "libfake.a"


def test_openblas_is_optional(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openblas, "LIBRARY", "libnowhere.a")
    found = list(cli.findings({OPENBLAS.name}, setting))
    assert [(one.goal, one.value) for one in found] == [(OPENBLAS, None)]
    assert found[0].note == "the static library libnowhere.a is not installed (Debian: libopenblas-dev)"


def test_settings_of_openblas_are_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_L2_SIZE", "512")
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    ours = {name: value for name, value in openblas.environment("Zen").items() if name.startswith("OPENBLAS")}
    assert ours == {"OPENBLAS_NUM_THREADS": "1", "OPENBLAS_CORETYPE": "Zen"}
    assert "OPENBLAS_CORETYPE" not in openblas.environment("")


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "QUICK", SHORT)
    done = CliRunner().invoke(bench, ["header", "--quick", "--only", "code", "--json", str(tmp_path / "found.json")])
    assert done.exit_code == 0, done.output
    assert "16x16x16" in done.output
    told = json.loads((tmp_path / "found.json").read_text())
    assert [one["goal"] for one in told["findings"]] == ["code"]
    assert told["tools"] and told["machine"]


def test_goals_by_name() -> None:
    done = CliRunner().invoke(bench, ["header", "--only", "beauty"])
    assert done.exit_code == 2 and "unknown goal 'beauty': --only takes speed, dispatch, compile" in done.output
