"""Assertions before each statement of a header: right programs never break one, wrong programs do."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import classic_nests
import numpy as np
import pytest
from contractions import Contraction
from programs import N, i, matmul, scaled_copy, single, softmax
from shared_nests import jacobi, transpose

import poly
from codegen.c import functions, link_flags, source
from codegen.calls.guard import declarations
from codegen.ir.expr import Load
from codegen.ir.program import Buffer, Program
from codegen.ir.signature import Signature
from codegen.names import function_name
from codegen.package.header.macros import BOUNDS
from codegen.toolchain.build import load
from microkernels.dtypes import f32
from microkernels.isa import host
from poly.analysis.bounds import check
from poly.compiled import followed
from poly.ir.nest import Nest
from poly.lowering.lower import lower
from poly.schedules.schedule import Schedule

COUNTING = """#include <stdint.h>
static int64_t asked, broken;
int64_t told_asked(void) { return asked; }
int64_t told_broken(void) { return broken; }
#define PFX_IN(index, extent) (asked++, broken += !((index) >= 0 && (index) < (extent)))
"""
"""An assertion that counts."""
TOLD = "int64_t told_asked(void); int64_t told_broken(void);"
ROOM = 1 << 16


def counted(program: Program, sizes: Mapping[str, int]) -> tuple[int, int]:
    """How many assertions a call makes for sizes, and how many of them are broken; all arrays are far larger."""
    text, name = source(program, bounds=True), function_name(program.name)
    assert "PFX_IN(" in text
    flags = ("-O1", *host().flags, *link_flags(program))
    library = load(f"{COUNTING}{text}", declarations(Signature.of(program)) + TOLD, flags)
    values: list[Any] = [sizes[size] for size in program.sizes]
    arrays = [np.ones(2 * ROOM, buffer.dtype.numpy_name) for buffer in Signature.of(program).buffers]
    for buffer, array in zip(Signature.of(program).buffers, arrays, strict=True):
        middle = library.ffi.cast(f"{buffer.dtype.c_name} *", library.ffi.from_buffer(array)) + ROOM
        values.append(1 if buffer.kind == "scalar" else middle)
    memory = np.zeros(getattr(library.lib, f"{name}_workspace")(*values[: len(program.sizes)], 1) + 64, np.uint8)
    at = library.ffi.from_buffer(memory)
    aligned = library.ffi.cast("char *", at) + -int(library.ffi.cast("intptr_t", at)) % 64
    getattr(library.lib, name)(*values, 1, aligned)
    return library.lib.told_asked(), library.lib.told_broken()


def program_of(nest: Nest, schedule: Schedule | None = None) -> Program:
    chosen = schedule or followed(nest, host(), 1, None)
    return lower(chosen.nest, chosen.tree, host())


CLASSIC = ("softmax", "cholesky", "seidel", "covariance", "strided", "cond", "backsolve", "two_mm")


@pytest.mark.parametrize("name", CLASSIC)
def test_right_nests(name: str) -> None:
    nest = getattr(classic_nests, name)
    asked, broken = counted(program_of(check(nest)), classic_nests.SIZES[nest])
    assert asked > 0 and broken == 0


@pytest.mark.parametrize("known", [True, False], ids=["known", "symbolic"])
@pytest.mark.parametrize("spec", ["ik,kj->ij", "ki,jk->ij", "dbea,ec->abcd", "abk,ckd->acbd", "ik,k->i", "k,kj->j"])
def test_right_contractions(spec: str, known: bool) -> None:
    """Operands in place and in panels, gathered and scattered, with fused loops."""
    contraction = Contraction(spec)
    extents = dict(zip("abcdeijk", (13, 6, 7, 11, 5, 70, 67, 33), strict=True))
    sizes, nest = contraction.sizes(extents), contraction.nest()
    asked, broken = counted(program_of(nest.with_sizes(sizes) if known else nest), sizes)
    assert asked > 0 and broken == 0


@pytest.mark.parametrize("nest", [jacobi, transpose], ids=lambda nest: nest.name)
def test_right_boxes(nest: Nest) -> None:
    schedule = poly.schedule(nest).tile(i=8, j=8).pack("A", at="j_tile")
    program = program_of(nest, schedule)
    for m, n in ((5, 9), (17, 8), (3, 3), (40, 23)):
        asked, broken = counted(program, {"M": m, "N": n})
        assert asked > 0 and broken == 0
    assert [workspace.name for workspace in program.workspaces] == ["A_box"]


@pytest.mark.parametrize(
    ("spec", "array"),
    [("ik,kj->ij", "A"), ("ik,kj->ij", "B"), ("ik,kj->ij", "C"), ("dbea,ec->abcd", "A"), ("ik,k->i", "C")],
)
def test_an_array_that_is_too_small(spec: str, array: str) -> None:
    """The last element along the first dimension is missing."""
    contraction = Contraction(spec)
    nest = contraction.nest()
    arrays = tuple(replace(a, shape=(a.shape[0] - 1, *a.shape[1:])) if a.name == array else a for a in nest.arrays)
    sizes = contraction.sizes(dict(zip("abcdeijk", (13, 6, 7, 11, 5, 70, 67, 33), strict=True)))
    asked, broken = counted(program_of(replace(nest, arrays=arrays)), sizes)
    assert 0 < broken < asked


def test_a_statement_that_leaves_its_array() -> None:
    x, y = Buffer("x", f32, (N,), "in"), Buffer("y", f32, (N,), "out")
    for index, wrong in ((i, 0), (i + 1, 1), (i - 3, 3), (i * 2, 9), (-i, 18)):
        assert counted(single(Load("x", (index,)), [x, y]), {"N": 19}) == (19 * (1 + (index != i)), wrong)


def test_a_local_array_that_is_too_small() -> None:
    program = softmax()
    short = tuple(replace(b, shape=(b.shape[0] - 1,)) if b.kind == "local" else b for b in program.buffers)
    assert counted(program, {"M": 5, "N": 7})[1] == 0
    assert counted(replace(program, buffers=short), {"M": 5, "N": 7})[1] > 0


def test_off_they_are_not_there() -> None:
    for program in (matmul(), scaled_copy(), softmax(), program_of(Contraction("ik,kj->ij").nest())):
        assert "PFX_IN" not in functions(program)


MAIN = """
int main(int argc, char **argv)
{
  float x[40] = {0}, y[40] = {0};
  (void)argv;
  return single(argc > 1 ? 19 : 0, x, y, 1, NULL);
}
"""


def build(folder: Path, *flags: str) -> Path:
    """A program that reads one element too far where it is given an argument."""
    wrong = single(Load("x", (i + 1,)), [Buffer("x", f32, (N,), "in"), Buffer("y", f32, (N,), "out")])
    path, program = folder / "main.c", folder / "main"
    path.write_text(f"#include <stddef.h>\n#include <stdint.h>\n{BOUNDS}\n{source(wrong, bounds=True)}\n{MAIN}")
    strict = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")
    subprocess.run(["gcc", *strict, *flags, path, "-o", program, "-lm"], check=True)
    return program


def test_a_broken_assertion_ends_the_program_and_says_where(tmp_path: Path) -> None:
    program = build(tmp_path, "-DPFX_DEBUG")
    assert subprocess.run([program], check=False).returncode == 0
    done = subprocess.run([program, "run"], capture_output=True, text=True, check=False)
    assert done.returncode == -6
    assert "single: PFX_IN(i + 1, N) fails: 19 is not from 0 to below 19" in done.stderr


def test_without_debug_it_is_nothing(tmp_path: Path) -> None:
    assert subprocess.run([build(tmp_path), "run"], check=False).returncode == 0
