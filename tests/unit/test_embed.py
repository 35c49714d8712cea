"""From kernels to a header: which kernels go together, what their functions are called, the command and its files."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from click.testing import CliRunner
from header_nests import narrow, without_arguments, without_results
from shared_nests import matmul
from tuning_records import record

import poly
from codegen.package.header.sections import level
from microkernels.isa import host
from poly import f32, f64
from poly.commands import poly as command
from poly.commands.nestfile import load_nest
from poly.embed.write import make
from poly.records import Store, key_for

M, N, K = poly.sizes("M N K")


@poly.nest
def rows(A: f64[M, N], s: f64[M]):
    for i in range(M):
        for j in range(N):
            s[i] += A[i, j]


NESTS = """
import poly
from beside import DTYPE

M, N = poly.sizes("M N")


@poly.nest
def twice(A: DTYPE[M, N], B: DTYPE[M, N]):
    for i in range(M):
        for j in range(N):
            B[i, j] = 2 * A[i, j]


total = poly.einsum("mn->m", dtype=DTYPE)
alias = twice
"""


def compiled(nest: poly.Nest, **sizes: int) -> poly.Kernel:
    return poly.compile(nest, threads=1, records=False, **sizes)


@pytest.fixture
def nests(tmp_path: Path) -> Path:
    (tmp_path / "beside.py").write_text("from poly import f32 as DTYPE\n")
    path = tmp_path / "my nests.py"
    path.write_text(NESTS)
    return path


def run(monkeypatch: pytest.MonkeyPatch, folder: Path, *arguments: object) -> str:
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(command, ["header", *map(str, arguments)], catch_exceptions=False)
    return f"{result.exit_code} {result.output}"


def test_kernels_of_one_nest_make_one_function() -> None:
    header = make("m", [compiled(matmul, M=8, N=8, K=8), compiled(matmul), compiled(matmul, M=9, N=8, K=7)])
    (routine,) = header.routines
    assert routine.name == header.prefix == "matmul"
    assert routine.sizes == ("M", "K", "N")
    assert routine.strides == ("A_ld", "B_ld", "C_ld")
    for isa in header.isas:
        served = [dict(v.sizes) for v in routine.variants if v.isa == isa]
        assert served == [{"M": 8, "K": 8, "N": 8}, {"M": 9, "K": 7, "N": 8}, {}]
        assert [v.dense for v in routine.variants if v.isa == isa] == [True, True, False]


def test_functions_are_named_after_the_nest_below_the_prefix() -> None:
    both = make("two files", [compiled(matmul), compiled(rows)])
    assert both.prefix == "two_files"
    assert [routine.name for routine in both.routines] == ["two_files_matmul", "two_files_rows"]
    own = make("x", [compiled(matmul), compiled(rows)], prefix="rows")
    assert [routine.name for routine in own.routines] == ["rows_matmul", "rows"]


def test_a_size_that_is_fixed_is_no_argument() -> None:
    (routine,) = make("m", [compiled(matmul, M=8, K=8)]).routines
    assert routine.sizes == ("N",)
    (dense,) = make("m", [compiled(matmul, M=8, N=8, K=8)], dense=True).routines
    assert not dense.signature.sizes


def test_loops_run_by_threads_only_where_kernels_have_some() -> None:
    assert make("m", [compiled(matmul)]).threads == "none"
    assert make("m", [poly.compile(matmul, threads=2, records=False)]).threads == "openmp"
    assert make("m", [compiled(matmul)], threads="pthreads").threads == "pthreads"


def test_a_schedule_that_was_given_is_followed_on_its_instruction_set() -> None:
    given = poly.schedule(matmul).tile(i=5, j=3)
    kernel = poly.compile(matmul, schedule=given, threads=1)
    (routine,) = make("m", [kernel]).routines
    own = next(v for v in routine.variants if v.isa == kernel.isa)
    assert "i_tile" in own.loops and "5*i_tile" in own.loops
    assert "a schedule that was given" in routine.notes[0]


def test_products_of_narrow_integers_have_kernels_for_cpus_with_more_than_the_instruction_set() -> None:
    """Also if this CPU is none; the other functions have none of their own for these."""
    header = make("m", [compiled(narrow), compiled(matmul)], isas=["avx512", "avx2"])
    assert [level(isa) for isa in header.isas] == ["avx512vnni", "avx512", "avx2vnni", "avx2", "portable"]
    names, others = ([level(variant.isa) for variant in routine.variants] for routine in header.routines)
    assert (names, others) == ([level(isa) for isa in header.isas], ["avx512", "avx2", "portable"])
    first, *rest = (variant.loops for variant in header.routines[0].variants)
    assert "microkernel gemm_i8_avx512" in first and "gemm_i8_avx512" not in rest[0]


@pytest.mark.parametrize(
    ("kernels", "message"),
    [
        (list, "at least one kernel"),
        (lambda: [compiled(matmul, M=8), compiled(matmul, N=8)], "don't go together"),
        (lambda: [compiled(matmul), compiled(matmul, M=8)], "fix all of them"),
        (lambda: [compiled(matmul, M=8, N=8, K=8), compiled(matmul, M=8, N=8, K=8)], "serve the same sizes"),
        (lambda: [matmul], "is no kernel"),
    ],
)
def test_kernels_that_do_not_go_together(tmp_path: Path, kernels, message) -> None:
    with pytest.raises(poly.SpecError, match=message):
        poly.write_header(tmp_path / "m.h", kernels())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("prefix", ["2mm", "a-b", "_x", "é", "a b"])
def test_a_prefix_is_a_c_name(tmp_path: Path, prefix: str) -> None:
    with pytest.raises(poly.SpecError, match="prefix is letters"):
        compiled(matmul).write_header(tmp_path / "m.h", prefix=prefix)


@pytest.mark.parametrize(
    ("names", "prefix", "message"),
    [
        (("rows", "matmul"), "double", None),
        (("exp",), None, "C has a function or word exp of its own: give a prefix"),
        (("exp",), "mine", None),
        (("status", "rows"), "m", "declare m_status twice"),
        (("rows", "rows_workspace_size"), "m", "declare m_rows_workspace_size twice"),
    ],
)
def test_names_that_are_taken(names: tuple[str, ...], prefix: str | None, message: str | None) -> None:
    kernels = [compiled(replace(matmul, name=name)) for name in names]
    if message is None:
        make("m", kernels, prefix=prefix, isas=["portable"])
        return
    with pytest.raises(poly.SpecError, match=message):
        make("m", kernels, prefix=prefix, isas=["portable"])


@pytest.mark.parametrize("prefix", ["A", "a", "N"])
def test_arguments_are_not_called_as_the_header_calls_its_own(prefix: str) -> None:
    A_ld, N_check = poly.sizes("A_ld N_check")

    @poly.nest
    def twice(A: f32[A_ld, N_check]):
        for i in range(A_ld):
            for j in range(N_check):
                A[i, j] = 2 * A[i, j]

    with pytest.raises(poly.SpecError, match="begins as the header's own names do"):
        make("m", [compiled(twice)], prefix=prefix)


@pytest.mark.parametrize("nest", [without_arguments, without_results])
@pytest.mark.parametrize("threads", ["none", "openmp"])
def test_a_nest_without_results_is_refused(nest: poly.Function, threads: Literal["none", "openmp"]) -> None:
    """Python runs it, which takes no time; a function in C would have no outputs to check, or not even arguments."""
    assert nest(*(np.zeros((3, 4), np.float32), 2.0)[: len(nest.arguments)]) is None
    with pytest.raises(poly.SpecError, match=f"{nest.name} writes none of its arguments.*Remedy: make an array"):
        make("m", [compiled(nest)], threads=threads)


def test_a_nest_without_results_is_refused_among_others() -> None:
    with pytest.raises(poly.SpecError, match="without_results writes none of its arguments"):
        make("m", [compiled(matmul), compiled(without_results)])


def test_an_unknown_instruction_set(tmp_path: Path) -> None:
    with pytest.raises(poly.TargetError, match="'sse9'"):
        compiled(matmul).write_header(tmp_path / "m.h", isas=["sse9"])


def test_the_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "m.h"
    path.write_text("mine")
    path.chmod(0o640)
    kernel = compiled(matmul)
    assert kernel.write_header(path, isas=["portable"]) == path
    first = path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o640
    kernel.write_header(path, isas=["portable"])
    assert path.read_bytes() == first
    with pytest.raises(OSError):
        kernel.write_header(tmp_path / "none" / "m.h")
    assert [p.name for p in tmp_path.iterdir()] == ["m.h"]


def test_every_nest_in_a_file(monkeypatch: pytest.MonkeyPatch, nests: Path) -> None:
    output = run(monkeypatch, nests.parent, nests, "--isa", "portable", "--threads", "none", "-MD", "-o", "all.h")
    assert output == "0 "
    text = (nests.parent / "all.h").read_text()
    assert "all_status all_twice(" in text and "all_status all_total(" in text and "alias" not in text
    rules = (nests.parent / "all.d").read_text()
    assert rules.startswith("all.h: ") and "my\\ nests.py" in rules and "beside.py" in rules


def test_one_nest_with_sizes_of_its_own(monkeypatch: pytest.MonkeyPatch, nests: Path) -> None:
    special = ["--special", "M=4,N=5", "--special", "M=6,N=7"]
    output = run(monkeypatch, nests.parent, f"{nests}:twice", *special, "--isa", "portable", "-MF", "d", "-o", "t.h")
    assert output == "0 "
    text = (nests.parent / "t.h").read_text()
    assert "if (M == 4 && N == 5" in text and "if (M == 6 && N == 7" in text
    assert (nests.parent / "d").read_text().startswith("t.h: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--isa", "sse9"], "'sse9' is none of"),
        (["--special", "M"], "not of the form M=512"),
        (["--special", "M=4"], "fix all of them"),
        (["--special", "M=4,X=2"], "no size X"),
        (["--size", "X=4"], "no size X"),
        (["--prefix", "1"], "prefix is letters"),
        (["--threads", "many"], "is not one of"),
    ],
)
def test_wrong_use_of_the_command(
    monkeypatch: pytest.MonkeyPatch, nests: Path, arguments: list[str], message: str
) -> None:
    output = run(monkeypatch, nests.parent, f"{nests}:twice", *arguments, "-o", "t.h")
    assert output.startswith("2 ") and message in output
    assert not (nests.parent / "t.h").exists()


def test_sizes_that_were_tuned_get_kernels(monkeypatch: pytest.MonkeyPatch, nests: Path) -> None:
    monkeypatch.setenv("POLY_CACHE_DIR", str(nests.parent / "cache"))
    monkeypatch.delenv("POLY_RECORDS", raising=False)
    nest = load_nest(f"{nests}:twice").with_sizes({"M": 12, "N": 34})
    schedule = '[{"step": "split", "args": [], "kwargs": {"i": 3}}]'
    Store.open().save(record(key_for(nest, host(), 1), schedule=schedule))
    output = run(monkeypatch, nests.parent, f"{nests}:twice", "--tuned", "--threads", "none", "-o", "t.h")
    assert output == "0 "
    text = (nests.parent / "t.h").read_text()
    assert "if (M == 12 && N == 34" in text and "i_tile in range(4)" in text
    assert "For M = 12, N = 34: tuned on 2026-11-20 by 12 measurements, 107.5 GFLOP/s, for" in text


def test_a_folder_that_is_not_there(monkeypatch: pytest.MonkeyPatch, nests: Path) -> None:
    output = run(monkeypatch, nests.parent, f"{nests}:twice", "--isa", "portable", "-o", "none/t.h")
    assert output.startswith("2 ") and "none/t.h" in output
