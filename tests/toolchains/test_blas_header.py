"""A header of BLAS routines as a file: wrong arguments, compilers, other machines, and what else is in the program."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blas_library import Blas, blas_header, matrix, vector
from click.testing import CliRunner
from headers import (
    AARCH64,
    CLANG,
    CLANGXX,
    GCC,
    GXX,
    HERE,
    INTEGERS,
    NATIVE,
    X86_32,
    Toolchain,
    archer,
    at_any_level,
    build,
    implementation,
    need_isa,
    need_tool,
    quick,
    run,
    succeed,
)

from poly.blas import ROUTINES, write_blas
from poly.commands import poly as command
from poly.errors import SpecError

GEMM = [101, 111, 111, 4, 5, 6, 1.0, "a", 6, "b", 5, 1.0, "c", 5]
GEMV = [101, 111, 4, 5, 1.0, "a", 5, "b", 1, 1.0, "c", 1]
SYRK = [101, 121, 111, 4, 6, 1.0, "a", 6, 1.0, "c", 4]

WRONG = [
    *(("gemm", GEMM, {at: value}) for at, value in ((1, 0), (2, 110), (3, 114), (4, -1), (5, -1), (6, -1))),
    *(("gemm", GEMM, {at: value}) for at, value in ((8, None), (9, 5), (10, None), (11, 4), (13, None), (14, 4))),
    *(
        ("gemm", GEMM, change)
        for change in ({9: 3, 2: 112}, {11: 5, 3: 112}, {9: 3, 1: 102, 14: 4}, {14: 3, 1: 102, 11: 6})
    ),
    *(("gemm", GEMM, {at: 0, size: 0}) for at, size in ((9, 6), (11, 5), (14, 5))),
    *(("gemv", GEMV, {at: value}) for at, value in ((1, 103), (2, 0), (3, -4), (4, -5), (6, None), (7, 4))),
    *(("gemv", GEMV, {at: value}) for at, value in ((8, None), (9, 0), (11, None), (12, 0))),
    *(("gemv", GEMV, change) for change in ({7: 3, 1: 102},)),
    *(("syrk", SYRK, {at: value}) for at, value in ((1, 0), (2, 0), (3, 0), (4, -1), (5, -1), (7, None), (8, 5))),
    *(("syrk", SYRK, {at: value}) for at, value in ((10, None), (11, 3))),
    *(("syrk", SYRK, change) for change in ({8: 3, 3: 112}, {8: 3, 1: 102})),
]
"""A routine, right arguments, and what is changed in them, by positions: the first is the wrong one."""


@pytest.fixture(scope="module")
def blas(tmp_path_factory: pytest.TempPathFactory) -> Blas:
    return Blas(tmp_path_factory.mktemp("blas"), isas=HERE)


def call(blas: Blas, letter: str, name: str, told: list[Any]) -> bytes:
    """Call with arrays of ones in the places of a, b and c; what c then holds."""
    kind = {"s": "float", "d": "double"}[letter]
    arrays = {array: blas.ffi.new(f"{kind}[64]", [1.0] * 64) for array in "abc"}
    arguments = [blas.ffi.NULL if value is None else arrays.get(value, value) for value in told]
    getattr(blas.lib, f"cblas_{letter}{name}")(*arguments)
    return bytes(blas.ffi.buffer(arrays["c"]))


@pytest.mark.parametrize("letter", ["s", "d"])
@pytest.mark.parametrize(("name", "right", "change"), WRONG, ids=str)
def test_wrong_arguments(blas: Blas, letter: str, name: str, right: list[Any], change: dict[int, Any]) -> None:
    ones = bytes(blas.ffi.buffer(blas.ffi.new({"s": "float[]", "d": "double[]"}[letter], [1.0] * 64)))
    assert call(blas, letter, name, right) != ones
    assert blas.trouble == (0, "")
    told = [change.get(at, value) for at, value in enumerate(right, start=1)]
    assert call(blas, letter, name, told) == ones
    assert blas.trouble == (next(iter(change)), f"cblas_{letter}{name}")


@pytest.mark.parametrize(
    ("name", "right", "change"),
    [
        ("gemm", GEMM, {4: 0, 8: None, 10: None, 13: None}),
        ("gemm", GEMM, {5: 0, 8: None, 10: None, 13: None}),
        ("gemm", GEMM, {6: 0, 8: None, 10: None}),
        ("gemm", GEMM, {7: 0.0, 8: None, 10: None}),
        ("gemv", GEMV, {3: 0, 6: None, 8: None, 11: None}),
        ("gemv", GEMV, {5: 0.0, 6: None, 8: None}),
        ("syrk", SYRK, {4: 0, 7: None, 10: None}),
        ("syrk", SYRK, {5: 0, 7: None}),
        ("syrk", SYRK, {6: 0.0, 7: None}),
    ],
    ids=str,
)
def test_nothing_is_asked_of_what_is_not_read(blas: Blas, name: str, right: list[Any], change: dict[int, Any]) -> None:
    told = [change.get(at, value) for at, value in enumerate(right, start=1)]
    call(blas, "d", name, told)
    assert blas.trouble == (0, "")


def test_a_wrong_argument_is_told_on_stderr(tmp_path: Path) -> None:
    blas_header(tmp_path, ["gemv"], isas=["portable"])
    text = implementation("blas") + (
        "int main(void)\n{\n  cblas_sgemv(CblasRowMajor, CblasNoTrans, 2, -1, 1, NULL, 1, NULL, 1, 1, NULL, 1);\n"
        "  return 0;\n}\n"
    )
    binary = build(GCC, text, tmp_path)
    assert succeed(["sh", "-c", f"{binary} 2>&1"]) == "Parameter 4 to routine cblas_sgemv was incorrect\n"


def with_fewer_calls(path: Path) -> Path:
    """A header whose self-test makes a third of the calls, for programs that are emulated or checked at each access."""
    text = path.read_text()
    assert "BLAS_TRIALS = 300" in text
    path.write_text(text.replace("BLAS_TRIALS = 300", "BLAS_TRIALS = 100"))
    return path


def selftest(toolchain: Toolchain, folder: Path, *flags: str, threads: Any = "none", **environment: str) -> str:
    """What the self-test prints; the C++ compilers are given the portable kernels alone, emulators no others twice."""
    isas: Any = (
        {"isas": ["neon" if toolchain is AARCH64 else "portable"]} if toolchain in (AARCH64, GXX, CLANGXX) else {}
    )
    path = at_any_level(blas_header(folder, threads=threads, **isas))
    if toolchain.runner:
        with_fewer_calls(path)
    return run(toolchain, build(toolchain, implementation("blas", "SELFTEST"), folder, *flags), **environment)


@pytest.mark.parametrize(
    ("toolchain", "flags"),
    [
        (GCC, ("-std=c99", *quick(GCC))),
        (GXX, ("-std=c++11", *quick(GXX))),
        (CLANGXX, ("-std=c++20", *quick(CLANGXX))),
        (X86_32[0], ("-msse2", *quick(X86_32[0]))),
        (AARCH64, quick(AARCH64)),
    ],
    ids=str,
)
def test_selftest(toolchain: Toolchain, flags: tuple[str, ...], tmp_path: Path) -> None:
    told = selftest(toolchain, tmp_path, *flags)
    assert told.endswith("\n0 failures\n")
    assert "WRONG" not in told
    for letter in "sd":
        for name in ROUTINES:
            assert f"portable cblas_{letter}{name}" in told
    if toolchain is AARCH64:
        assert "neon     cblas_sgemm" in told


@pytest.mark.parametrize(("isa", "names"), [("avx512", ["gemm"]), ("avx2", ["gemv", "syrk"])], ids=str)
def test_selftest_under_sanitizers(isa: str, names: list[str], tmp_path: Path) -> None:
    """clang's, and without optimisation: into kernels that are inlined, compilers take minutes to build them."""
    need_isa(isa)
    with_fewer_calls(blas_header(tmp_path, names, isas=[isa]))
    flags = ("-O0", "-g", "-fsanitize=address", *INTEGERS)
    told = run(CLANG, build(CLANG, implementation("blas", "SELFTEST"), tmp_path, *flags))
    assert told.endswith("\n0 failures\n")


@pytest.mark.parametrize("threads", ["openmp", "pthreads"])
def test_threads_do_not_race(threads: Any, tmp_path: Path) -> None:
    blas_header(tmp_path, ["gemm", "syrk"], isas=HERE[:1], threads=threads)
    text = "#define BLAS_THREADS 2\n" + implementation("blas") + LARGE_PRODUCTS
    flags = ("-O0", "-g", "-fsanitize=thread", *["-fopenmp"] * (threads == "openmp"))
    binary = build(CLANG, text, tmp_path, *flags)
    run(CLANG, binary, **(archer() if threads == "openmp" else {}))


LARGE_PRODUCTS = """enum { N = 171 };
static float a[N * N], b[N * N], c[N * N];

int main(void)
{
  for (int i = 0; i < N * N; i++)
    a[i] = b[i] = 1;
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, N, N, N, 1, a, N, b, N, 0, c, N);
  cblas_sgemm(CblasColMajor, CblasTrans, CblasNoTrans, N, N, N, 1, a, N, b, N, 1, c, N);
  cblas_ssyrk(CblasRowMajor, CblasUpper, CblasTrans, N, N, 1, a, N, 1, c, N);
  return c[0] > 3 * N - 1 && c[N] < 2 * N + 1 ? 0 : 1;
}
"""


@pytest.mark.parametrize("threads", ["openmp", "pthreads"])
def test_threads(threads: Any, tmp_path: Path) -> None:
    """A product that is large enough is shared, and is the same."""
    blas = Blas(tmp_path, ["gemm"], optimised=False, isas=HERE[:1], threads=threads)
    rng = np.random.default_rng(0)
    for ta, tb in ("NN", "NT", "TN"):
        a, b, c = rng.integers(-4, 5, (3, 300, 300)).astype("f4")
        held = matrix(c, "rows", 1)
        blas.gemm("rows", ta, tb, 1.0, matrix(a, "rows", 2), matrix(b, "rows", 0), 1.0, held)
        held.only()
        np.testing.assert_array_equal(held.values, (a if ta == "N" else a.T) @ (b if tb == "N" else b.T) + c)


def test_only_what_was_asked_for(tmp_path: Path) -> None:
    for name in ROUTINES:
        blas_header(tmp_path, [name], isas=["portable"])
        library = build(CLANG, implementation("blas"), tmp_path, "-c", "-O0")
        defined = re.findall(r" T (\w+)", succeed(["nm", library]))
        assert [symbol for symbol in defined if symbol.startswith("cblas_")] == [f"cblas_d{name}", f"cblas_s{name}"]


def test_links_nothing_but_libc_and_libm(tmp_path: Path) -> None:
    need_tool("nm")
    at_any_level(blas_header(tmp_path, isas=HERE[:1]))
    library = build(GCC, implementation("blas"), tmp_path, "-c", "-O0")
    wanted = set(re.findall(r" U (\w+)", succeed(["nm", library])))
    assert wanted <= {"malloc", "free", "stderr", "fprintf", "fwrite", "memset", "memcpy", "__stack_chk_fail"} | {
        "_GLOBAL_OFFSET_TABLE_",
        "__cpu_model",
        "__cpu_indicator_init",
    }


@pytest.mark.parametrize("toolchain", NATIVE, ids=str)
def test_stands_beside_another_cblas(toolchain: Toolchain, tmp_path: Path) -> None:
    """Another library's header comes first, with its own types; ours has other names and is called with them."""
    (tmp_path / "cblas.h").write_text(OTHER)
    blas_header(tmp_path, ["gemv"], isas=["portable"])
    text = (
        f'#include "cblas.h"\n#define BLAS_CBLAS(name) own_##name\n{implementation("blas")}'
        "int main(void)\n{\n  const float a[1] = {2}, x[1] = {3};\n  float y[1] = {1};\n"
        "  own_sgemv(CblasRowMajor, CblasNoTrans, 1, 1, 1, a, 1, x, 1, 1, y, 1);\n  return y[0] > 6.5f ? 0 : 1;\n}\n"
    )
    run(toolchain, build(toolchain, text, tmp_path))


OTHER = """#ifndef CBLAS_H
#define CBLAS_H
typedef enum CBLAS_ORDER { CblasRowMajor = 101, CblasColMajor = 102 } CBLAS_ORDER;
typedef enum CBLAS_TRANSPOSE { CblasNoTrans = 111, CblasTrans = 112, CblasConjTrans = 113 } CBLAS_TRANSPOSE;
typedef enum CBLAS_UPLO { CblasUpper = 121, CblasLower = 122 } CBLAS_UPLO;
typedef CBLAS_ORDER CBLAS_LAYOUT;
#ifdef __cplusplus
extern "C" {
#endif
void cblas_sgemv(CBLAS_ORDER order, CBLAS_TRANSPOSE trans, int m, int n, float alpha, const float *a, int lda,
                 const float *x, int incx, float beta, float *y, int incy);
#ifdef __cplusplus
}
#endif
#endif
"""


def test_the_same_bytes(tmp_path: Path) -> None:
    made = [
        write_blas(tmp_path / name, ["gemv"], prefix="own", isas=["portable"]).read_bytes() for name in ("a.h", "b.h")
    ]
    assert made[0] == made[1]


@pytest.mark.parametrize("names", [[], ["gemm", "axpy"]])
def test_unknown_routines(names: list[str], tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"BLAS routines to choose from are gemm, gemv, syrk, not (none|axpy)\."):
        write_blas(tmp_path / "blas.h", names)


def test_vectors_may_lie_in_reverse(blas: Blas) -> None:
    x, y = vector(np.arange(3.0), -2), vector(np.zeros(2), -1)
    blas.gemv("rows", "N", 1.0, matrix(np.array([[1.0, 0, 0], [0, 0, 1]]), "rows", 0), x, 0.0, y)
    np.testing.assert_array_equal(y.values, [0, 2])


def test_command(tmp_path: Path) -> None:
    told = invoke(
        "header", "--blas", "syrk, gemm", "--isa", "portable", "--threads", "none", "-o", str(tmp_path / "a.h")
    )
    assert (told.exit_code, told.output) == (0, "")
    assert "void A_CBLAS(dsyrk)(" in (tmp_path / "a.h").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--blas", "axpy"], "BLAS routines to choose from are gemm, gemv, syrk, not axpy."),
        (["--blas", "gemm", "--dense"], "--blas goes with -o, --isa, --threads and --prefix alone."),
        (["--blas", "gemm", "nests.py"], "--blas goes with -o, --isa, --threads and --prefix alone."),
        ([], "give a file with nests, or --blas."),
    ],
    ids=str,
)
def test_command_refuses(arguments: list[str], message: str, tmp_path: Path) -> None:
    told = invoke("header", *arguments, "-o", str(tmp_path / "a.h"))
    assert told.exit_code == 2
    assert message in told.output
    assert not (tmp_path / "a.h").exists()


def test_the_page_runs(project: Path, tmp_path: Path) -> None:
    program = re.search(r"```c\n(.*?)```", (project / "docs" / "blas.md").read_text(), re.DOTALL)
    assert program
    at_any_level(blas_header(tmp_path, isas=["portable"], threads="openmp"))
    run(GCC, build(GCC, program[1].split("\n", 1)[1], tmp_path, *quick(GCC)))


def test_command_cannot_write(tmp_path: Path) -> None:
    told = invoke("header", "--blas", "gemv", "--isa", "portable", "-o", str(tmp_path / "none" / "a.h"))
    assert told.exit_code == 2
    assert "there is no such folder" in told.output


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(command, arguments)
