"""Whole programs against compilers: the programs' results, their C text, the peers, and the table."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from polybench_results import RESULTS

import poly
from benchmarks.case import Case
from benchmarks.cli import bench
from benchmarks.clock import renewed
from benchmarks.contender import Contender, Failed, NotInstalled
from benchmarks.problems.c_text import c_text
from benchmarks.problems.program import Program
from benchmarks.programs import cli, compilers
from benchmarks.programs.compilers import TOOLCHAINS, CompilerPeer
from benchmarks.programs.goals import verdicts
from benchmarks.programs.line import ProgramLine, program_lines
from benchmarks.programs.polybench import KERNELS, cases
from benchmarks.programs.report import cells, text
from benchmarks.report import ResultLine
from benchmarks.runner import Rounds, measure, relative_error, tolerance
from poly import f32, f64, i32
from poly.machine.calibration import described

M, N = poly.sizes("M N")
SHORT = {"floyd-warshall": 17, "nussinov": 17}
"""Sizes of kernels for which the interpreter takes long."""


@cache
def mini(name: str) -> Case:
    return next(kernel.case("mini") for kernel in KERNELS if kernel.name == name)


def small(name: str) -> Case:
    case = mini(name)
    assert isinstance(case.problem, Program)
    sizes = {"N": SHORT[name]} if name in SHORT else case.sizes
    return replace(case, problem=replace(case.problem, sizes=sizes), sizes=sizes)


def program(case: Case) -> Program:
    assert isinstance(case.problem, Program)
    return case.problem


def names(case: Case) -> list[str]:
    return [array.name for array in program(case).fixed().arguments]


def test_the_suite_has_thirty_kernels_with_results_of_each() -> None:
    assert len(list(cases("mini"))) == 30 == len(KERNELS)
    assert RESULTS.keys() == {kernel.name for kernel in KERNELS}


@pytest.mark.parametrize("name", [kernel.name for kernel in KERNELS])
def test_a_kernel_computes_what_its_mathematics_say(name: str) -> None:
    case = small(name)
    arrays = case.problem.arrays(case.dtype)
    known = {**dict(zip(names(case), arrays, strict=True)), **case.sizes}
    expected = RESULTS[name](known)
    results = dict(zip((names(case)[n] for n in case.problem.written), case.problem.expected(arrays), strict=True))
    for array, values in expected.items():
        assert relative_error(results[array], np.asarray(values, np.float64)) < 1e-11, array


@pytest.mark.parametrize("name", ["adi", "correlation", "durbin", "ludcmp", "nussinov", "symm"])
def test_the_c_text_computes_bitwise_what_the_loops_do(name: str) -> None:
    case = small(name)
    arrays = case.problem.arrays(case.dtype)
    program(case).fixed().reference(*(a if a.ndim else a.item() for a in arrays))
    expected = case.problem.expected(case.problem.arrays(case.dtype))
    for one, other in zip(program(case).results(arrays), expected, strict=True):
        assert np.array_equal(one, other)


def test_locals_are_declared_in_the_smallest_block_around_their_uses() -> None:
    @poly.nest
    def loops(x: f64[M, N], y: f64[M], k: i32[M]):  # type: ignore[valid-type]
        scale: f64 = 0.5
        row: f64[N]  # type: ignore[valid-type]
        for i in range(M - 1, -1, -2):
            top = x[i, 0]
            for j in range(1, N):
                row[j] = x[i, j] * scale  # noqa: F821
                top = max(top, row[j], 0.0)  # noqa: F821
            if i > 2:
                half = top / 2
                y[i] = half**2 - i / 2
            else:
                y[i] = abs(f64(k[i])) if top < 1.0 else -top

    made = c_text(loops.with_sizes({"M": 5, "N": 7}))
    assert made[made.index("void") :] == (
        "void run(double x[restrict 5][7], double y[restrict 5], int32_t k[restrict 5])\n"
        "{\n"
        "#pragma scop\n"
        "    double scale = 0.5;\n"
        "    double row[7];\n"
        "    for (int i = (M - 1); i > (-1); i -= 2) {\n"
        "        double top = x[i][0];\n"
        "        for (int j = 1; j < N; j++) {\n"
        "            row[j] = (x[i][j] * scale);\n"
        "            top = MAX(MAX(top, row[j]), 0.0);\n"
        "        }\n"
        "        if ((i > 2)) {\n"
        "            double half = (top / 2);\n"
        "            y[i] = ((half * half) - ((double)i / 2));\n"
        "        } else {\n"
        "            y[i] = ((top < 1.0) ? fabs((double)(k[i])) : (-top));\n"
        "        }\n"
        "    }\n"
        "#pragma endscop\n"
        "}\n"
    )


def test_locals_before_the_loops_and_numbers_for_sizes() -> None:
    made = c_text(program(small("symm")).fixed(), locals_first=True, numbers=True)
    assert "{\n    double temp2;\n#pragma scop\n    for (int i = 0; i < 20; i++)" in made
    assert "            temp2 = 0.0;" in made


def test_numbers_and_functions_of_single_precision_are_floats() -> None:
    @poly.nest
    def loops(x: f32[N]):  # type: ignore[valid-type]
        for i in range(N):
            x[i] = sqrt(x[i]) * 0.1  # noqa: F821

    assert "x[i] = (sqrtf(x[i]) * 0.1f);" in c_text(loops.with_sizes({"N": 3}))


@pytest.mark.parametrize("kind", TOOLCHAINS)
def test_a_compiler_is_right_on_the_loops_as_written(kind: str) -> None:
    for name in ("durbin", "jacobi-2d", "nussinov"):
        case = small(name)
        arrays = case.arrays()
        try:
            contender = CompilerPeer(kind)(case, arrays, 1)
        except NotInstalled:
            pytest.skip(f"{kind} is not installed")  # not all builds of clang have Polly
        assert contender.run(1) > 0
        assert "-O3" in contender.config and contender.version
        expected = case.problem.expected(case.problem.arrays(case.dtype))
        assert relative_error(program(case).results(arrays), expected) <= tolerance(case), name


def polycc(folder: Path, script: str) -> None:
    (folder / "polycc").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "polycc").chmod(0o700)


def test_pluto_s_output_is_compiled_and_its_complaint_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script in its place doubles what the loops store, which shows in the results."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{compilers.os.environ['PATH']}")
    compilers.installed.cache_clear()
    case = small("gemm")
    polycc(tmp_path, "sed 's/ += / += 2 * /; s/for (int k/\\n#pragma ivdep\\n#pragma vector always\\n&/' $3 > $5")
    text = compilers.transformed(program(case).fixed(), tmp_path, 1)
    assert "#pragma GCC ivdep\n#pragma vector always\nfor (int k" in text
    arrays, twice = case.arrays(), [a.copy() for a in case.arrays()]
    CompilerPeer("pluto")(case, arrays, 1).run(1)
    known = dict(zip(names(case), twice, strict=True))
    expected = known["beta"] * known["C"] + 2 * known["alpha"] * known["A"] @ known["B"]
    assert relative_error(arrays[names(case).index("C")], expected) < 1e-12
    polycc(tmp_path, "grep -q 'i < M' $3 && exit 124; cp $3 $5")  # out of time with open sizes
    assert "for (int i = 0; i < 20; i++)" in compilers.transformed(program(small("symm")).fixed(), tmp_path, 1)
    polycc(tmp_path, "exit 124")
    with pytest.raises(Failed, match="polycc takes more than 30 seconds"):
        compilers.transformed(program(case).fixed(), tmp_path, 1)
    polycc(tmp_path, "echo 'no scop found' >&2; exit 1")
    with pytest.raises(Failed, match="polycc failed: no scop found"):
        CompilerPeer("pluto")(case, arrays, 1)
    compilers.installed.cache_clear()


def test_each_call_starts_from_the_same_data() -> None:
    array = np.arange(3.0)
    seen: list[list[float]] = []

    def call(times: int) -> float:
        seen.append(array.tolist())
        array[...] *= 2
        return 1.0

    assert renewed(call, [array])(3) == 3.0
    assert seen == [[0.0, 1.0, 2.0]] * 3
    assert array.tolist() == [0.0, 2.0, 4.0]


class Fake:
    """An entrant that takes so many seconds for a call, `first` for its first, and whose results are off by some."""

    def __init__(self, name: str, seconds: float, off: float = 0.0, first: float = 0.0) -> None:
        self.name, self.seconds, self.off, self.first, self.runs = name, seconds, off, first or seconds, 0

    def enter(self, case: Case, threads: int) -> Contender:
        results = tuple(one + self.off for one in case.problem.expected(case.problem.arrays(case.dtype)))
        return Contender(
            self.name, "1", "fake", self._run, lambda: results, building=0.25, workspace=2048, first=self.first
        )

    def _run(self, times: int) -> float:
        self.runs += times
        return self.seconds * times


def measured(*entrants: Fake, name: str = "gemm", threads: int = 1) -> ResultLine:
    budget = Rounds(0, (3, 3), sample=0, close=1.5, always=frozenset({"gcc"}))
    return ResultLine(measure(small(name), threads, entrants, lambda: 1e-6, budget), 1e-6 * threads, "poly", "c")


def lines(*entrants: Fake) -> list[ProgramLine]:
    return program_lines([measured(*entrants)], {1: 20.0})


def test_a_peer_with_a_wrong_result_is_shown_and_does_not_count() -> None:
    table = list(text(lines(Fake("poly", 2.0), Fake("gcc", 3.0), Fake("clang", 1.0), Fake("polly", 0.5, off=1e-3))))
    row = table[1].split()
    assert row[:8] == ["gemm", "1", "2000", "3000", "clang", "1000", "0.50", "0"]
    assert row[8] == "1.50" and row[-3:] == ["2", "KiB", "0.25"]
    assert "  of the best right peer, each ≥ 0.95: MISSED by 1 of 1: gemm 0.50" in table
    assert any("WRONG RESULT of polly" in line for line in table)


def test_a_baseline_with_a_wrong_result_is_no_baseline() -> None:
    (line,) = lines(Fake("poly", 2.0), Fake("gcc", 3.0, off=1.0), Fake("clang", 4.0))
    assert line.baseline_ratio is None and line.best is not None and line.best.name == "clang"
    assert cells(line)[3] == "3000 wrong"


def test_only_close_peers_and_the_baseline_take_part_in_the_rounds() -> None:
    mine, gcc, close, far = Fake("poly", 2.0), Fake("gcc", 9.0), Fake("clang", 1.0), Fake("polly", 1.6)
    (line,) = lines(mine, gcc, close, far)
    assert (mine.runs, gcc.runs, close.runs, far.runs) == (3, 3, 3, 0)
    timing = line.line.result.timing("polly")
    assert timing is not None and timing.samples == (1.6,)


def test_the_best_peer_is_one_that_took_part_in_the_rounds() -> None:
    (line,) = lines(Fake("poly", 2.0), Fake("clang", 4.0, first=1.0), Fake("polly", 1.6, first=1.6))
    assert line.best is not None and line.best.name == "clang" and line.ratio == 2.0


def test_goals_are_those_of_the_program_and_its_suite() -> None:
    (line,) = lines(Fake("poly", 2.0), Fake("gcc", 8.0), Fake("clang", 6.0))
    assert list(verdicts([line])) == [
        "of the best right peer, geometric mean ≥ 2.5: 3.00, met",
        "of gcc -O3 -march=native, geometric mean ≥ 5: 4.00, MISSED",
        "of the best right peer, each ≥ 0.95: met, worst: gemm 3.00",
        "products, of our plain GEMM, each ≥ 0.9: MISSED by 1 of 1: gemm 0.75",
        "workspace beyond the arrays, each ≤ 2 MB: met, worst: gemm 0.00",
        "from loops to a shared library, geometric mean ≤ 1 s: 0.25, met",
        "from loops to a shared library, each ≤ 5 s: met, worst: gemm 0.25",
    ]


def test_threads_are_judged_by_the_speed_on_one_and_by_what_the_machine_gains() -> None:
    """A machine of twice the bound on two threads, and a program that gains 1.6."""
    one, two = measured(Fake("poly", 1.6)), measured(Fake("poly", 1.0), threads=2)
    alone, both = program_lines([one, two], {1: 2.0, 2: 2.0})
    assert alone.gain is None and both.gain == pytest.approx(1.6) and both.gain_fraction == pytest.approx(0.8)
    found = [verdict for verdict in verdicts([both]) if verdict.startswith("threads")]
    assert found == [
        "threads, of the speed on one, each ≥ 1: met, worst: gemm 1.60",
        "threads, of the machine's gain, each ≥ 0.9: MISSED by 1 of 1: gemm 0.80",
    ]


def test_what_the_data_do_not_determine_is_not_compared() -> None:
    case = small("gramschmidt")
    arrays = case.problem.arrays(case.dtype)
    expected = case.problem.expected(tuple(a.copy() for a in arrays))
    shapes = {name: one.shape for name, one in zip("ARQ", expected, strict=True)}
    rows, columns = case.sizes["M"], case.sizes["N"]
    assert shapes == {"A": (rows, rows), "R": (rows, columns), "Q": (rows, rows)} and rows < columns


@pytest.mark.parametrize("name", ["seidel-2d", "heat-3d", "jacobi-2d"])
def test_the_data_of_a_stencil_show_a_step_too_few(name: str) -> None:
    case = small(name)
    fewer = replace(program(case), sizes={**case.sizes, "TSTEPS": case.sizes["TSTEPS"] - 1})
    error = relative_error(
        fewer.expected(fewer.arrays(case.dtype)), case.problem.expected(case.problem.arrays(case.dtype))
    )
    assert error > 1e3 * tolerance(case)


SUITE = """
#include <settings.h>
void kernel_atax(int m, int n, DATA_TYPE A[M][N], DATA_TYPE x[N], DATA_TYPE y[N], DATA_TYPE tmp[M])
{
#pragma scop
    for (int i = 0; i < n; i++)
        y[i] = 0;
    for (int i = 0; i < m; i++) {
        tmp[i] = 0;
        for (int j = 0; j < n; j++)
            tmp[i] += A[i][j] * x[j];
        for (int j = 0; j < n; j++)
            y[j] += A[i][j] * tmp[i];
    }
#pragma endscop
}
"""


def test_a_copy_of_the_suite_in_c_is_read(tmp_path: Path) -> None:
    (tmp_path / "kernels" / "atax").mkdir(parents=True)
    (tmp_path / "kernels" / "atax" / "atax.c").write_text(SUITE)
    (tmp_path / "utilities").mkdir()
    (tmp_path / "utilities" / "settings.h").write_text("#ifdef MINI_DATASET\n#define M 38\n#define N 42\n#endif\n"
                                                      "#define DATA_TYPE double\n")  # fmt: skip
    (case,) = cases("mini", tmp_path)
    assert case.sizes == {"m": 38, "n": 42}
    ours = mini("atax")
    expected = ours.problem.expected(ours.problem.arrays(f64))
    assert relative_error(case.problem.expected(case.problem.arrays(f64)), expected) < 1e-14


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "QUICK", Rounds(0, (3, 3), always=frozenset({"gcc"}), attempts=1))
    monkeypatch.setattr(cli, "at_hand", lambda here: described(here.isa.name, tuple(c.bytes for c in here.caches)))


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(bench, arguments)


@pytest.mark.parametrize(("command", "name"), [("polybench", "trisolv"), ("loops", "gotoh")])
def test_one_program_from_outside(command: str, name: str, tmp_path: Path, brief: None) -> None:
    rows = str(tmp_path / "r.json")
    done = invoke(command, "--quick", "--size", "mini", "--only", name, "--against", "gcc", "--json", rows)
    assert done.exit_code == 0, done.output
    assert name in done.output and "1 program, 1 thread, geometric means" in done.output
    assert Path(rows).read_text().count('"built_seconds"') == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "qr"], "unknown program 'qr': --only takes correlation, covariance,"),
        (["--against", "icc"], "unknown peer 'icc': --against takes gcc, gcc-fast, graphite,"),
        (["--threads", "1", "--threads", "4096"], "--threads 4096: this process may use"),
        (["--suite", "."], "no program is left to measure"),
    ],
)
def test_wrong_use_is_told(arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = invoke("polybench", *arguments)
    assert done.exit_code == 2 and message in done.output
