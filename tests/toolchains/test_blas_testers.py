"""The testers of the reference BLAS, from Debian's package libblas-test, call a header's routines by CBLAS's names.

They try every layout, transposition and triangle at each combination of sizes, increments and factors: each result
against a bound of its error, what must stay as it was, and the number of every wrong argument.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from blas_library import LEVELS, Level, blas_header, blas_with
from headers import HERE, NUMBERS, at_any_level

from poly.blas import ROUTINES

LIBRARY = """#include <stdlib.h>
extern int RowMajorStrg;
void cblas_xerbla(int number, const char *routine, const char *form, ...);

/* In row-major order a tester turns numbers back that the reference has turned; ours are right as they are. */
void note(int number, const char *routine)
{
  const int order = RowMajorStrg;
  RowMajorStrg = 0;
  cblas_xerbla(number, routine, "");
  RowMajorStrg = order;
}
void *take(size_t bytes) { return malloc(bytes); }
void give(void *memory) { free(memory); }

#include "blas.h"

__attribute__((constructor)) static void choose(void)
{
  if (blas_force_isa((blas_isa)atoi(getenv("TRIED_ISA"))) != BLAS_OK) abort();
}
"""
"""It is loaded before the library that the testers are linked with, so that of the same names ours are called."""


assert {name for level in LEVELS for name in level.calls} == set(ROUTINES)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("testers")
    blas_header(folder, isas=HERE)
    return blas_with(LIBRARY, folder)


def verdict(level: Level, letter: str, library: Path, isa: str) -> str:
    """What the tester says of a library's routines."""
    program = next(Path("/usr/lib").glob(f"*/blas/x{letter}cblat{level.number}"), None)
    if program is None:
        pytest.skip("libblas-test is not installed")
    environment = os.environ | {"LD_PRELOAD": str(library), "TRIED_ISA": str(NUMBERS[isa])}
    done = subprocess.run(
        [program], input=level.told(letter), capture_output=True, text=True, env=environment, cwd=library.parent
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("isa", HERE)
@pytest.mark.parametrize("letter", ["s", "d"])
@pytest.mark.parametrize("level", LEVELS, ids=lambda level: f"level {level.number}")
def test_all_calls_pass(level: Level, letter: str, isa: str, library: Path) -> None:
    said = verdict(level, letter, library, isa)
    passed = re.findall(r"^ (\w+) +PASSED THE (\w+)-MAJOR +COMPUTATIONAL TESTS \( *(\d+) CALLS\)$", said, re.MULTILINE)
    wanted = {f"cblas_{letter}{name}": calls for name, calls in level.calls.items()}
    assert passed == [(name, order, str(calls)) for name, calls in wanted.items() for order in ("COLUMN", "ROW")], said
    assert re.findall(r"^ (\w+) +PASSED THE TESTS OF ERROR-EXITS$", said, re.MULTILINE) == list(wanted), said
    assert not re.search(r"FAIL|\*\*\*|SUSPECT", said), said


MISTAKES = {
    "gemm": ("if (m < 0) return 4;", "if (m < 0) return 5;", "INFO = 5 INSTEAD OF 4"),
    "gemv": ("_f64(rows, columns, alpha,", "_f64(rows, columns, 2 * alpha,", "LESS THAN HALF ACCURATE"),
    "syrk": ("j < (upper ? n : i + 1)", "j < n", "CHANGED INCORRECTLY"),
}
"""What is put for what, and what a tester says then."""


def test_mistakes_are_found(tmp_path: Path) -> None:
    """Which shows that it is our routines that are called."""
    path = at_any_level(blas_header(tmp_path, isas=["portable"]))
    text = path.read_text()
    for old, new, _ in MISTAKES.values():
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    library = blas_with(LIBRARY, tmp_path, level=["-O0"])
    said = {level.number: verdict(level, "d", library, "portable") for level in LEVELS}
    for level in LEVELS:
        for name in level.calls:
            assert MISTAKES[name][2] in said[level.number], said[level.number]
