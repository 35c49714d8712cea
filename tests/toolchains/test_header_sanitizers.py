"""Headers under AddressSanitizer, UndefinedBehaviourSanitizer and valgrind, every loop's bounds checked too.

What these compilers add to kernels takes them long, so a header has no more in it than is run. Kernels are not
optimised: that takes clang five times as long as to run them as they are, and the accesses that it checks are the same.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from header_nests import KINDS, wide
from header_programs import CLIMB, program
from headers import (
    CHECKED_FLOPS,
    CLANG,
    GCC,
    HERE,
    INTEGERS,
    NUMBERS,
    SANITIZED,
    at_any_level,
    build,
    header,
    implementation,
    need_isa,
    need_tool,
    quick,
    run,
)
from shared_nests import matmul

import poly

CHECKED = (*SANITIZED, "-g")
STRICTLY = (*CHECKED, *INTEGERS)
SUMS = tuple(nest for nest in KINDS if nest.name in ("covariance", "gemv_like", "batched", "conv1d", "wide", "halves"))
"""Those with microkernels."""
LOOPS = tuple(nest for nest in KINDS if nest not in SUMS)


def test_products_touch_nothing_else(tmp_path: Path) -> None:
    """By every instruction set of this CPU."""
    header(tmp_path, matmul, threads="none", isas=HERE)
    binary = build(CLANG, implementation("matmul", "DEBUG") + program(CLIMB, "none"), tmp_path, *CHECKED, "-O0")
    for isa in HERE:
        assert f"isa {NUMBERS[isa]}: " in run(CLANG, binary, str(NUMBERS[isa]), "17", "70")


@pytest.mark.parametrize(("some", "threads"), [(LOOPS, "pthreads"), (SUMS, "none")])
def test_nests_of_every_kind_touch_nothing_else(some: tuple[poly.Nest, ...], threads: str, tmp_path: Path) -> None:
    header(tmp_path, *some, name="kinds", threads=threads, isas=HERE[:1], flops=CHECKED_FLOPS >> 2)
    binary = build(CLANG, implementation("kinds", "DEBUG", "SELFTEST"), tmp_path, *STRICTLY, "-O0")
    assert run(CLANG, binary, "--quick").endswith("\nPASS\n")


def test_gcc_finds_nothing_either(tmp_path: Path) -> None:
    at_any_level(header(tmp_path, wide, threads="pthreads", isas=["portable"], flops=CHECKED_FLOPS))
    binary = build(GCC, implementation("wide", "DEBUG", "SELFTEST"), tmp_path, *CHECKED, *quick(GCC))
    assert run(GCC, binary, "--quick").endswith("\nPASS\n")


def test_products_in_valgrind(tmp_path: Path) -> None:
    """It knows AVX2 and says so, so the choice at run time is tried as well: a CPU without AVX-512."""
    need_isa("avx2")
    need_tool("valgrind")
    at_any_level(header(tmp_path, matmul, threads="pthreads"))
    binary = build(GCC, implementation("matmul") + program(CLIMB, "pthreads"), tmp_path, *quick(GCC), "-g")
    checked = ("valgrind", "-q", "--error-exitcode=9", "--leak-check=full")
    for isa in ("0", "3"):
        assert "isa 3: " in run(GCC, binary, isa, "7", "20", wrapper=checked)
