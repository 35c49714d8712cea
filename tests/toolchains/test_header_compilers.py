"""Each compiler takes a header without a warning, in every standard, and what it builds computes right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from header_nests import axpy, row_sums
from header_programs import ALLOCATIONS, CLIMB, program
from headers import (
    CLANG,
    CLANGXX,
    GCC,
    GXX,
    HERE,
    NATIVE,
    STANDARDS,
    Toolchain,
    at_any_level,
    build,
    header,
    implementation,
    need_tool,
    quick,
    run,
    succeed,
)
from shared_nests import matmul

CASES = [
    pytest.param(toolchain, standard, id=f"{toolchain}-{standard}")
    for toolchain in NATIVE
    for standard in STANDARDS[toolchain.language]
]


@pytest.mark.parametrize(
    ("toolchain", "level", "openmp"),
    [(GCC, "-O0", "-fopenmp"), (GXX, "-O2", ""), (CLANG, "-O0", "-fopenmp"), (CLANGXX, "-O2", "")],
    ids=str,
)
def test_products_are_right(toolchain: Toolchain, level: str, openmp: str, tmp_path: Path) -> None:
    """With OpenMP, and as everybody builds it who has never heard of that; test_header_targets.py has C so.

    There each instruction set is built and run; here the one that is run.
    """
    header(tmp_path, matmul, isas=HERE[:1])
    text = implementation("matmul") + program(CLIMB, "openmp")
    binary = build(toolchain, text, tmp_path, f"-std={STANDARDS[toolchain.language][0]}", level, *openmp.split())
    assert ", 0 failures" in run(toolchain, binary, OMP_NUM_THREADS="2")


@pytest.mark.parametrize(("toolchain", "standard"), CASES)
def test_declarations_alone_define_nothing(toolchain: Toolchain, standard: str, tmp_path: Path) -> None:
    path = header(tmp_path, matmul)
    text = '#include "matmul.h"\n#include "matmul.h"\nint unused(void);\nint unused(void) { return MATMUL_OK; }\n'
    made = build(toolchain, text, tmp_path, f"-std={standard}", "-c")
    assert [name for name in symbols(made) if "matmul" in name.lower()] == []
    assert path.exists()


@pytest.mark.parametrize(
    ("toolchain", "flags"),
    [
        (GCC, "-Os"),
        (GCC, "-O3 -ffast-math -march=native"),
        (GCC, "-O2 -flto -fPIC -fvisibility=hidden"),
        (CLANGXX, "-O3 -ffast-math"),
        (CLANGXX, "-Og -g3"),
    ],
    ids=str,
)
def test_flags_of_a_users_own_change_nothing(toolchain: Toolchain, flags: str, tmp_path: Path) -> None:
    """The kernels that run here, and no others beside them."""
    header(tmp_path, matmul, isas=HERE[:1])
    text = implementation("matmul") + program(CLIMB, "openmp")
    binary = build(toolchain, text, tmp_path, *flags.split())
    assert ", 0 failures" in run(toolchain, binary)


@pytest.mark.parametrize("toolchain", [GXX, CLANG], ids=str)
def test_two_headers_in_one_file(toolchain: Toolchain, tmp_path: Path) -> None:
    """Nothing of one is in the other's way: no type, macro or helper."""
    for nest in (matmul, row_sums):
        at_any_level(header(tmp_path, nest, isas=HERE[:1]))
    both = implementation("row_sums") + implementation("matmul")
    binary = build(toolchain, both + program(CLIMB, "openmp"), tmp_path, *quick(toolchain))
    assert ", 0 failures" in run(toolchain, binary)


def test_c_and_cpp_files_share_one_implementation(tmp_path: Path) -> None:
    at_any_level(header(tmp_path, matmul))
    kernels = build(GCC, implementation("matmul"), tmp_path, *quick(GCC), "-std=c99", "-c", name="kernels")
    caller = build(CLANGXX, program(CLIMB, "openmp"), tmp_path, "-O1", "-c", name="caller")
    succeed(["g++", caller, kernels, "-o", tmp_path / "both", "-lm"])
    assert ", 0 failures" in run(GCC, tmp_path / "both")


@pytest.mark.parametrize("toolchain", [GCC, CLANGXX], ids=str)
def test_the_implementation_may_follow_the_declarations(toolchain: Toolchain, tmp_path: Path) -> None:
    header(tmp_path, axpy)
    text = f'#include "axpy.h"\n{implementation("axpy")}#include "axpy.h"\n'
    text += "int main(void) { double x[1] = {2}, y[1] = {3}; return axpy(1, 2, x, y, 1) != AXPY_OK || y[0] != 7; }\n"
    run(toolchain, build(toolchain, text, tmp_path))


@pytest.mark.parametrize("threads", ["openmp", "pthreads", "none"])
def test_every_symbol_has_the_prefix(threads: str, tmp_path: Path) -> None:
    need_tool("nm")
    header(tmp_path, matmul, axpy, name="own", threads=threads)
    made = build(CLANG, implementation("own"), tmp_path, "-O0", "-c", *["-fopenmp"] * (threads == "openmp"))
    assert [name for name in symbols(made) if not name.startswith("own")] == []


def test_every_macro_has_the_prefix(tmp_path: Path) -> None:
    path = header(tmp_path, matmul, axpy, name="own")
    text = implementation("own", "DEBUG") + '#include "own.h"\n'
    included = sorted(set(re.findall(r"#include <(?!arm_)[\w./]+>", path.read_text())))
    ours = macros(text, tmp_path) - macros("\n".join(included) + "\n", tmp_path)
    assert [name for name in sorted(ours) if not name.startswith("OWN_")] == []


@pytest.mark.parametrize("threads", ["openmp", "pthreads", "none"])
def test_memory_is_taken_where_it_is_asked_for(threads: str, tmp_path: Path) -> None:
    """The call that takes a workspace allocates nothing; the other one frees what it took."""
    at_any_level(header(tmp_path, matmul, threads=threads, isas=HERE[:1]))
    own = "#include <stddef.h>\nvoid *counted(size_t bytes);\nvoid counted_free(void *memory);\n"
    own += "#define MATMUL_MALLOC counted\n#define MATMUL_FREE counted_free\n"
    text = own + implementation("matmul") + program(ALLOCATIONS, threads)
    assert "0 failures" in run(GCC, build(GCC, text, tmp_path, *quick(GCC)))


def symbols(made: Path) -> list[str]:
    """Everything that an object file defines, static functions too."""
    lines = [line.split() for line in succeed(["nm", "--defined-only", made]).splitlines()]
    return [name for *_, kind, name in lines if kind not in "nN" and not name.startswith((".", "__odr_asan"))]


def macros(text: str, folder: Path) -> set[str]:
    """The names that a text and what it includes define."""
    printed = succeed(["gcc", "-dM", "-E", "-fopenmp", "-I", folder, "-x", "c", "-"], input=text)
    return {re.split(r"[ (]", line, maxsplit=2)[1] for line in printed.splitlines()}
