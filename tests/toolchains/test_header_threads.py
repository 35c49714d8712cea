"""Threads call one kernel at once, and race for the choice of the instruction set: under ThreadSanitizer too."""

from __future__ import annotations

from pathlib import Path

import pytest
from header_programs import TOGETHER, program
from headers import (
    CLANG,
    CLANGXX,
    GCC,
    HERE,
    Toolchain,
    archer,
    at_any_level,
    build,
    header,
    implementation,
    need,
    quick,
    run,
)
from shared_nests import matmul

RACES = ("-fsanitize=thread", "-g")
CHOSEN = [HERE[0], HERE[-1]]
"""The instruction sets that callers come to run: the CPU's best one, and the portable one by force."""


@pytest.mark.parametrize(
    ("toolchain", "threads"), [(GCC, "openmp"), (CLANGXX, "openmp"), (CLANGXX, "pthreads"), (GCC, "none")], ids=str
)
def test_callers_at_once(toolchain: Toolchain, threads: str, tmp_path: Path) -> None:
    header(tmp_path, matmul, threads=threads, isas=CHOSEN)
    text = implementation("matmul") + program(TOGETHER, threads)
    binary = build(toolchain, text, tmp_path, "-O2", *["-fopenmp"] * (threads == "openmp" and toolchain is GCC))
    for _ in range(5):
        assert run(toolchain, binary) == "0 failures\n"


@pytest.mark.parametrize(
    ("toolchain", "threads"), [(GCC, "pthreads"), (GCC, "none"), (CLANG, "pthreads"), (CLANG, "openmp")], ids=str
)
def test_callers_do_not_race(toolchain: Toolchain, threads: str, tmp_path: Path) -> None:
    """gcc's OpenMP does not tell ThreadSanitizer what it waits for."""
    need(toolchain, RACES[0])
    at_any_level(header(tmp_path, matmul, threads=threads, isas=CHOSEN))
    text, shared = implementation("matmul") + program(TOGETHER, threads), threads == "openmp"
    binary = build(toolchain, text, tmp_path, *RACES, *quick(toolchain), *["-fopenmp"] * shared)
    for _ in range(2):
        assert run(toolchain, binary, **(archer() if shared else {})) == "0 failures\n"
